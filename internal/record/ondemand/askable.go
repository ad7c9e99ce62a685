package ondemand

import (
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Askable says in a sentence why a process's profiler cannot be asked for a trace, "" if it can: as far as its libraries
// and the environment it was started with say.
func Askable(p *process.Process) string {
	libraries, err := p.Libraries()
	if err != nil {
		return fmt.Sprintf("its libraries cannot be read: %v", err)
	}
	return unaskable(p.OwnProfiler(libraries))
}

func unaskable(f process.Profiler) string {
	switch {
	case !f.Mapped:
		return "it maps no PyTorch, whose profiler would be asked"
	case !f.Client && f.PyTorch != "":
		return fmt.Sprintf("its PyTorch %s has no client for traces on demand: PyTorch's own builds have one since 2.0", f.PyTorch)
	case !f.Client:
		return "its PyTorch has no client for traces on demand: PyTorch's own builds have one since 2.0"
	case !f.Asks:
		return fmt.Sprintf("it was not started with %s=1: start the job with that variable to have device times", process.DaemonVariable)
	case f.Directory != "":
		return fmt.Sprintf("it looks for its daemon in a directory (%s), which ebpfprof does not enter: start it without that variable",
			process.DaemonDirectoryVariable)
	}
	return ""
}

// family are processes and all below them.
func family(targets []int) (all []int) {
	for _, pid := range targets {
		all = append(all, pid)
		below, _ := process.Children(pid)
		all = append(all, below...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// countAskable is how many of some processes and those below them can be asked.
func countAskable(targets []int) (n int) {
	for _, pid := range family(targets) {
		if p, err := process.Open(pid); err == nil && Askable(p) == "" {
			n++
		}
	}
	return n
}

// silence says why no process asked for a trace.
func (d *Daemon) silence() string {
	why := ""
	for _, pid := range family(d.options.Targets) {
		p, err := process.Open(pid)
		if err != nil {
			continue
		}
		switch sentence := Askable(p); {
		case sentence == "":
			return fmt.Sprintf("no device times: pid %d did not ask for a configuration while it was recorded; "+
				"its profiler does so every five seconds, so record for 15 s or more", pid)
		case why == "" || p.PID == d.options.Targets[0]:
			why = fmt.Sprintf("no device times of pid %d: %s", pid, sentence)
		}
	}
	if why == "" {
		why = "no device times: the job exited before its profiler asked for a configuration"
	}
	return why
}
