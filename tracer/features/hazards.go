package features

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// CheckHazards returns an error that wraps ErrUnsupported where probes are known
// to do harm to one of these processes, or to the machine. What only return
// probes do is no reason to refuse: the recording goes on without those.
func CheckHazards(features *Set, pids []int) error {
	for _, h := range HazardsHere(features) {
		if h.Returns {
			continue
		}
		if err := h.refuse(pids); err != nil {
			return err
		}
	}
	return nil
}

// Hazard is one way in which probes are known to do harm on some kernels.
type Hazard struct {
	Name   string
	From   string // the first kernel version, "6.11"
	Before string // the first one that is free of it, "" while there is none
	Arch   string // GOARCH, "" for all
	Harm   string
	Source string // who saw it, and when
	// Returns: only return probes do harm; a recording can go on without them.
	Returns bool
	// unless says when it cannot happen here although the version matches.
	unless func(*Set) bool
	// hits says which processes it concerns; nil: all.
	hits func(pid int) bool
}

// Hazards are the known-bad kernels, each with its evidence. The versions are
// of mainline: a distribution may have carried a fix back, and is refused all
// the same.
var Hazards = []Hazard{
	{
		Name: "private stacks", From: "6.13",
		Harm:   "a probe program that is preempted shares a per-CPU stack with the next one, and the machine can panic",
		Source: "OpenTelemetry OBI issue 3056, August 2026; the programs guard themselves with bpf_preempt_disable where the kernel has it",
		unless: func(f *Set) bool { return f.PreemptGuard },
	},
	{
		Name: "uretprobe under seccomp", From: "6.11", Before: "6.14", Arch: "amd64",
		Harm:    "a return probe makes a system call in the job, for which a seccomp filter kills it",
		Source:  "opensnitch issue 1205 (6.11, systemd-timesyncd dumps core), October 2024; systemd issue 34615",
		Returns: true,
		hits:    underSeccomp,
	},
}

// HazardsHere lists the hazards of the kernel that runs.
func HazardsHere(features *Set) []Hazard {
	return HazardsOf(KernelRelease(), runtime.GOARCH, features)
}

func HazardsOf(release, arch string, features *Set) (found []Hazard) {
	version := kernelVersion(release)
	for _, h := range Hazards {
		switch {
		case h.Arch != "" && h.Arch != arch,
			version < kernelVersion(h.From),
			h.Before != "" && version >= kernelVersion(h.Before),
			h.unless != nil && h.unless(features):
			continue
		}
		found = append(found, h)
	}
	return found
}

// Concerns reports whether the hazard is one for this process.
func (h *Hazard) Concerns(pid int) bool { return h.hits == nil || h.hits(pid) }

// Some reports whether the hazard concerns only some processes, such as those
// with a seccomp filter.
func (h *Hazard) Some() bool { return h.hits != nil }

func (h *Hazard) refuse(pids []int) error {
	if h.hits == nil {
		return refuse(ErrUnsupported, "Linux %s is known to be unsafe for probes: %s (%s)", KernelRelease(), h.Harm, h.Source)
	}
	for _, pid := range pids {
		if h.hits(pid) {
			return refuse(ErrUnsupported, "Linux %s is known to be unsafe for probes in pid %d: %s (%s)", KernelRelease(), pid, h.Harm, h.Source)
		}
	}
	return nil
}

func KernelRelease() string {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return ""
	}
	return unix.ByteSliceToString(uts.Release[:])
}

// kernelVersion makes "6.18.44-custom" comparable: 6018.
func kernelVersion(release string) int {
	var major, minor int
	fmt.Sscanf(release, "%d.%d", &major, &minor)
	return major*1000 + minor
}
