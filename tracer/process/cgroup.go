package process

import (
	"bytes"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// cgroup is what the lines of /proc/PID/cgroup say.
type cgroup struct {
	path      string // "" at the root
	container string
	slurmJob  string
	slurmStep string // "0", "batch", "extern", "interactive"
}

// parseCgroup reads lines "hierarchy:controllers:path". The path that is kept
// is version 2's (hierarchy 0), or, where it is the root, the longest of
// version 1's.
func parseCgroup(lines []byte) cgroup {
	var c cgroup
	unified := ""
	for line := range bytes.Lines(lines) {
		fields := strings.SplitN(strings.TrimSuffix(string(line), "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		path := fields[2]
		if fields[0] == "0" && path != "/" {
			unified = path
		}
		if len(path) > len(c.path) && path != "/" {
			c.path = path
		}
		if id := containerID(path); id != "" {
			c.container = id
		}
		if job, step := slurmJob(path); job != "" {
			c.slurmJob, c.slurmStep = job, step
		}
	}
	if unified != "" {
		c.path = unified
	}
	return c
}

// runtimePrefixes are what container runtimes put before the id in the name of
// a systemd scope. Their monitors ("crio-conmon-…") have more before it.
var runtimePrefixes = []string{"docker-", "cri-containerd-", "containerd-", "crio-", "libpod-", "nerdctl-"}

// containerID finds the innermost container in a cgroup path:
//
//	…/kubepods-burstable-pod1f2e.slice/cri-containerd-<64 hex>.scope   systemd driver
//	/kubepods/burstable/pod1f2e/<64 hex>                               cgroupfs driver
//	…/kubepods-pod1f2e.slice:cri-containerd:<64 hex>                   the two mixed up
//	/system.slice/docker-<64 hex>.scope, /docker/<64 hex>, …/libpod-<64 hex>.scope
//	/lxc/NAME, /lxc.payload.NAME, /lxc.payload/NAME
func containerID(path string) string {
	parts := strings.FieldsFunc(path, func(c rune) bool { return c == '/' || c == ':' })
	for i := len(parts) - 1; i >= 0; i-- {
		part := strings.TrimSuffix(parts[i], ".scope")
		for _, prefix := range runtimePrefixes {
			if id, ok := strings.CutPrefix(part, prefix); ok {
				part = id
				break
			}
		}
		if isContainerHash(part) {
			return part
		}
		if name, ok := strings.CutPrefix(parts[i], "lxc.payload."); ok {
			return name
		}
		if i > 0 && (parts[i-1] == "lxc" || parts[i-1] == "lxc.payload") {
			return parts[i]
		}
	}
	return ""
}

func isContainerHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// slurmJob finds the job and step in Slurm's cgroups:
//
//	/system.slice/slurmstepd.scope/job_12/step_0/user/task_3     version 2
//	/system.slice/node7_slurmstepd.scope/job_12/…                several slurmd
//	/slurm/uid_1000/job_12/step_batch/task_0                     version 1
func slurmJob(path string) (job, step string) {
	slurm := false
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, "slurm") || strings.HasSuffix(part, "slurmstepd.scope") {
			slurm = true
		}
		if id, ok := strings.CutPrefix(part, "job_"); ok && slurm && id != "" && strings.Trim(id, "0123456789") == "" {
			job = id
		}
		if id, ok := strings.CutPrefix(part, "step_"); ok && job != "" {
			step = id
		}
	}
	return job, step
}

// readCgroup returns the zero cgroup where proc has none.
func (p *Process) readCgroup() cgroup {
	lines, err := procfile.Read(p.path("cgroup"), 0)
	if err != nil {
		return cgroup{}
	}
	return parseCgroup(lines)
}
