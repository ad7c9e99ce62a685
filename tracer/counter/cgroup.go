package counter

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// cgroupSource is the control groups that the job's processes are in, of
// version 2 and 1: what it may use, what it uses, and how often it was held back.
// https://docs.kernel.org/admin-guide/cgroup-v2.html, …/cgroup-v1/
type cgroupSource struct {
	files   Files
	unified string // where version 2 is mounted
	job     *job
	known   []controlGroup         // that the job was in, and that are still there
	members map[controlGroup]int32 // the one process of the job that was in each; several: -1
}

func openCgroup(f Files, j *job) (source, error) {
	s := &cgroupSource{files: f, unified: f.path("sys/fs/cgroup"), job: j, members: map[controlGroup]int32{}}
	if _, err := os.Stat(filepath.Join(s.unified, "cgroup.controllers")); err != nil {
		s.unified = f.path("sys/fs/cgroup/unified") // systemd's hybrid of both
	}
	return present(s, f.path("sys/fs/cgroup"))
}

// controlGroup is one directory of one hierarchy.
type controlGroup struct {
	controller string // of version 1; "" is version 2, which has one hierarchy for all
	path       string // as /proc/PID/cgroup has it
}

// v1 says which controllers of version 1 have something to read.
var v1Controllers = map[string]bool{"memory": true, "cpu": true, "cpuacct": true}

// parseCgroup reads /proc/PID/cgroup: "4:memory:/job", "0::/job".
func parseCgroup(text string) (groups []controlGroup) {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		if parts[0] == "0" && parts[1] == "" {
			groups = append(groups, controlGroup{"", parts[2]})
			continue
		}
		for _, controller := range strings.Split(parts[1], ",") {
			if v1Controllers[controller] {
				groups = append(groups, controlGroup{controller, parts[2]})
			}
		}
	}
	return groups
}

// groups lists the groups of all processes of the job, each once, also those
// whose last process has ended: what it used at last is in them.
func (s *cgroupSource) groups() []controlGroup {
	s.known = slices.DeleteFunc(s.known, func(g controlGroup) bool {
		_, err := os.Stat(s.dir(g))
		if err != nil {
			delete(s.members, g)
		}
		return err != nil
	})
	for _, pid := range s.job.processes() {
		text, err := procfile.Read(s.files.path("proc", fmt.Sprint(pid), "cgroup"), 0)
		if err != nil {
			continue // it has ended
		}
		for _, g := range parseCgroup(string(text)) {
			if s.root(g) {
				continue
			}
			if !slices.Contains(s.known, g) {
				s.known = append(s.known, g)
				s.members[g] = int32(pid)
			} else if s.members[g] != int32(pid) {
				s.members[g] = -1
			}
		}
	}
	return s.known
}

// root reports whether a group is the top of its hierarchy: the machine, of
// which the other sources tell. In a container "/" is not.
func (s *cgroupSource) root(g controlGroup) bool {
	if g.controller == "" {
		_, err := os.Stat(filepath.Join(s.dir(g), "cgroup.events"))
		return err != nil
	}
	_, err := os.Stat(filepath.Join(s.dir(g), "release_agent"))
	return err == nil
}

func (s *cgroupSource) dir(g controlGroup) string {
	if g.controller == "" {
		return filepath.Join(s.unified, g.path)
	}
	return s.files.path("sys/fs/cgroup", g.controller, g.path)
}

func (s *cgroupSource) read(r *round) (failed error) {
	for _, g := range s.groups() {
		at := machine.of(s.members[g])
		if g.controller == "" {
			firstOf(&failed, readUnified(r, at.within(g.path), s.dir(g)))
		} else {
			at = at.within(g.controller + ":" + g.path)
			firstOf(&failed, r.addGroup(at, s.dir(g), v1Files[g.controller], v1Keys[g.controller]))
			if g.controller == "cpu" {
				firstOf(&failed, r.addQuota(at, s.dir(g), "cpu.cfs_quota_us", "cpu.cfs_period_us"))
			}
		}
	}
	return failed
}

var unifiedFiles = []metric{
	{"memory.current", "cgroup_memory_used", Bytes, 1, false},
	{"memory.max", "cgroup_memory_limit", Bytes, 1, false},
	{"memory.swap.current", "cgroup_swap_used", Bytes, 1, false},
}

var unifiedKeys = map[string][]metric{
	"memory.stat": {
		{"anon", "cgroup_memory_anonymous", Bytes, 1, false},
		{"file", "cgroup_memory_file", Bytes, 1, false},
		{"shmem", "cgroup_memory_shared", Bytes, 1, false},
		{"pgmajfault", "cgroup_major_faults", Count, 1, true},
		{"workingset_refault_file", "cgroup_file_refaults", Count, 1, true},
	},
	"memory.events": {
		{"high", "cgroup_memory_high", Count, 1, true},
		{"max", "cgroup_memory_max", Count, 1, true},
		{"oom", "cgroup_memory_oom", Count, 1, true},
		{"oom_kill", "cgroup_memory_oom_kills", Count, 1, true},
	},
	"cpu.stat": {
		{"usage_usec", "cgroup_cpu_used", Nanoseconds, 1e3, true},
		{"user_usec", "cgroup_cpu_user", Nanoseconds, 1e3, true},
		{"system_usec", "cgroup_cpu_system", Nanoseconds, 1e3, true},
		{"nr_periods", "cgroup_cpu_periods", Count, 1, true}, // of its quota; none without one
		{"nr_throttled", "cgroup_cpu_throttles", Count, 1, true},
		{"throttled_usec", "cgroup_cpu_throttled", Nanoseconds, 1e3, true},
	},
}

// noLimit is above every limit: version 1 says "no limit" with a number near 2^63.
const noLimit = 1 << 62

var v1Files = map[string][]metric{
	"memory": {
		{"memory.usage_in_bytes", "cgroup_memory_used", Bytes, 1, false},
		{"memory.limit_in_bytes", "cgroup_memory_limit", Bytes, 1, false},
		{"memory.failcnt", "cgroup_memory_max", Count, 1, true},
	},
	"cpuacct": {{"cpuacct.usage", "cgroup_cpu_used", Nanoseconds, 1, true}},
}

var v1Keys = map[string]map[string][]metric{
	"memory": {"memory.stat": {
		{"total_rss", "cgroup_memory_anonymous", Bytes, 1, false},
		{"total_cache", "cgroup_memory_file", Bytes, 1, false},
		{"total_shmem", "cgroup_memory_shared", Bytes, 1, false},
		{"total_pgmajfault", "cgroup_major_faults", Count, 1, true},
	}},
	"cpu": {"cpu.stat": {
		{"nr_periods", "cgroup_cpu_periods", Count, 1, true}, // of its quota; none without one
		{"nr_throttled", "cgroup_cpu_throttles", Count, 1, true},
		{"throttled_time", "cgroup_cpu_throttled", Nanoseconds, 1, true},
	}},
}

func readUnified(r *round, at place, dir string) error {
	failed := r.addGroup(at, dir, unifiedFiles, unifiedKeys)
	firstOf(&failed, r.addQuota(at, dir, "cpu.max"))
	for _, resource := range pressureResources {
		text, err := r.read(filepath.Join(dir, resource+".pressure"))
		firstOf(&failed, err)
		addPressure(r, at, "cgroup_pressure_"+resource, text)
	}
	return failed
}

// addGroup reads one directory: files with a number, and files with keys.
func (r *round) addGroup(at place, dir string, files []metric, keyed map[string][]metric) (failed error) {
	for _, m := range files {
		text, err := r.read(filepath.Join(dir, m.file))
		firstOf(&failed, err)
		if v, ok := parseNumber(strings.TrimSpace(text)); ok && v < noLimit { // "max" is no number
			m.add(r, at, v)
		}
	}
	for file, metrics := range keyed {
		text, err := r.read(filepath.Join(dir, file))
		firstOf(&failed, err)
		r.addKeyed(at, parseKeyed(text), metrics)
	}
	return failed
}

// addQuota reads what a group may use of a CPU: a quota and the period that it is of, in one file or
// in two. Without a quota that is "max", or -1.
func (r *round) addQuota(at place, dir string, files ...string) (failed error) {
	var words []string
	for _, file := range files {
		text, err := r.read(filepath.Join(dir, file))
		firstOf(&failed, err)
		words = append(words, strings.Fields(text)...)
	}
	if len(words) != 2 {
		return failed
	}
	quota, limited := parseNumber(words[0])
	period, ok := parseNumber(words[1])
	if limited && ok && quota > 0 && period > 0 {
		r.gauge(at, "cgroup_cpu_quota", Percent, 100*quota/period)
	}
	return failed
}
