// Package jobs finds the jobs of a node and what they are called.
package jobs

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// Job is a job's processes on this node.
type Job struct {
	Name string `json:"name"` // the scheduler's, else the pod's, else the container's id, else that of the process group
	PIDs []int  `json:"pids"`
	User uint32 `json:"user"` // whose its processes are
	// Space is their container, else their pid namespace; "" for the node's own.
	Space string `json:"space,omitempty"`

	confirmed bool   // its name is that of a control group that a scheduler made
	began     uint64 // its first process, in ticks since boot
	key       string // Key, before it was called otherwise
}

// Identity is the Key by which a job was found, whatever it is called by now.
func (j *Job) Identity() string { return cmp.Or(j.key, j.Key()) }

// Discoverer looks for jobs. It remembers what it saw of each process, so that a look
// costs a stat a process, and none of the kernel's own threads, of which a large machine has
// thousands: maps are read again only of processes without a library, ever more seldom.
type Discoverer struct {
	libraries []string
	ranks     []int32 // only these; all without any
	seen      map[int]seen
	looks     int    // so many
	Own       int    // the process that looks, which is no job's
	namespace uint64 // of pids, of the process that looks
	podLogs   string // where a kubelet names containers
}

type seen struct {
	start      uint64
	kernel     bool // a thread of the kernel
	parent     int
	first, due int // looks: that which saw it first, and the next that it gets
	job        claim
}

// claim is which job a process says that it is of; its zero value: none.
type claim struct {
	name      string
	user      uint32
	space     string
	confirmed bool
}

// of is whose job it is: whether it is confirmed is no part of that.
func (c claim) of() claim { c.confirmed = false; return c }

// New makes one for processes that map one of the libraries; of some ranks only, if any are named.
func New(libraries []string, ranks []int32) *Discoverer {
	return &Discoverer{libraries: libraries, ranks: ranks, seen: map[int]seen{}, Own: os.Getpid(),
		namespace: process.PIDNamespace(os.Getpid()), podLogs: podLogs}
}

// Look returns the jobs that run now, in order of their names.
func (d *Discoverer) Look(unnamed string) ([]Job, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("looking for jobs: %w", err)
	}
	d.looks++
	alive := map[int]bool{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == d.Own {
			continue
		}
		s, ok := d.seen[pid]
		if s.kernel && d.looks < s.due {
			alive[pid] = true
			continue
		}
		start, kernel, err := process.Begun(pid)
		if err != nil {
			continue
		}
		alive[pid] = true
		if !ok || s.start != start {
			s = seen{start: start, kernel: kernel, first: d.looks, due: d.looks}
		}
		if s.job.name == "" && d.looks >= s.due {
			s.due = d.looks + dueAfter(d.looks-s.first)
			if s.kernel {
				s.due = d.looks + seldom
			} else if d.maps(pid) {
				s.job, s.parent = d.jobOf(pid, unnamed)
			}
		}
		d.seen[pid] = s
	}
	jobs := map[claim]*Job{}
	for pid, s := range d.seen {
		switch {
		case !alive[pid]:
			delete(d.seen, pid)
		case s.job.name != "" && (d.seen[s.parent].job.of() != s.job.of() || !alive[s.parent]):
			// Children of a process of the job are followed by the tracer: loader
			// workers come and go with every epoch.
			j := jobs[s.job.of()]
			if j == nil {
				j = &Job{Name: s.job.name, User: s.job.user, Space: s.job.space, began: s.start}
				jobs[s.job.of()] = j
			}
			j.PIDs, j.began, j.confirmed = append(j.PIDs, pid), min(j.began, s.start), j.confirmed || s.job.confirmed
		}
	}
	var all []Job
	for _, j := range jobs {
		slices.Sort(j.PIDs)
		all = append(all, *j)
	}
	slices.SortFunc(all, func(a, b Job) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key(), b.Key())) })
	return all, nil
}

// maps says whether a process maps one of the libraries to run it; a tracer that reads
// its symbols maps it, too. The file is the process's to fill: it is read up to a limit.
func (d *Discoverer) maps(pid int) bool {
	text, err := process.MapsText(pid)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(text) {
		slash := bytes.IndexByte(line, '/')
		_, permissions, _ := bytes.Cut(line, []byte{' '})
		if slash < 0 || len(permissions) < 4 || permissions[2] != 'x' {
			continue
		}
		base := filepath.Base(strings.TrimSpace(string(line[slash:])))
		for _, library := range d.libraries {
			if strings.HasPrefix(base, library) || strings.HasPrefix(base, strings.TrimSuffix(library, ".so")+"-") {
				return true
			}
		}
	}
	return false
}

// jobOf names the job of a process: children that it forks have its environment and
// its group, and so its job.
func (d *Discoverer) jobOf(pid int, unnamed string) (job claim, parent int) {
	p, err := process.Open(pid)
	if err != nil || len(d.ranks) > 0 && (p.Job.Rank == nil || !slices.Contains(d.ranks, *p.Job.Rank)) {
		return claim{}, 0
	}
	job = claim{user: process.User(pid), space: d.spaceOf(p)}
	pod := d.podOf(p.ContainerID, p.Cgroup)
	switch {
	case p.Job.JobID != nil:
		job.name, job.confirmed = *p.Job.JobID, confirms(p.Cgroup, *p.Job.JobID)
	case pod != "":
		job.name, job.confirmed = pod, true
	case unnamed != "":
		job.name = unnamed
	case p.ContainerID != "":
		job.name = p.ContainerID
	default:
		job.name = fmt.Sprintf("group-%d", groupLeader(pid))
	}
	return job, p.ParentPID
}

// groupLeader is the process group: what a shell started together.
func groupLeader(pid int) int {
	text := procfile.Line(fmt.Sprintf("/proc/%d/stat", pid))
	if i := strings.LastIndexByte(text, ')'); i > 0 {
		if fields := strings.Fields(text[i+1:]); len(fields) > 2 {
			if leader, err := strconv.Atoi(fields[2]); err == nil {
				return leader
			}
		}
	}
	return pid
}
