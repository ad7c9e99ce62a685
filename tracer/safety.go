package tracer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// The kill switch: with this file there, or this variable set, nothing attaches
// on the machine. The file's first line is the reason that users get to read.
const (
	DisableFile     = "/etc/ebpfprof/disable"
	DisableVariable = "EBPFPROF_DISABLE"
)

// refusal is a sentence with a kind: ErrNotPermitted or ErrUnsupported.
type refusal struct {
	kind     error
	sentence string
}

func (r *refusal) Error() string { return r.sentence }
func (r *refusal) Unwrap() error { return r.kind }

func refuse(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}

// CheckHazards returns an error that wraps ErrUnsupported where probes are known
// to do harm to one of these processes, or to the machine. What only return
// probes do is no reason to refuse: the recording goes on without those.
func CheckHazards(features *Features, pids []int) error {
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

// CheckKillSwitch returns an error that wraps ErrNotPermitted when an
// administrator has switched attaching off.
func CheckKillSwitch() error {
	if v := os.Getenv(DisableVariable); v != "" && v != "0" {
		return refuse(ErrNotPermitted, "attaching is switched off: the environment has %s=%s", DisableVariable, v)
	}
	return killSwitch(DisableFile)
}

func killSwitch(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	// A switch that cannot be read is still a switch.
	why, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if why != "" {
		why = " (" + why + ")"
	}
	return refuse(ErrNotPermitted, "attaching is switched off on this machine: %s exists%s", path, why)
}

// The inode numbers of the first namespaces are constants of the kernel:
// include/linux/proc_ns.h, PROC_PID_INIT_INO and PROC_USER_INIT_INO.
const (
	initialPIDNamespace  = "pid:[4026531836]"
	initialUserNamespace = "user:[4026531837]"
)

// CheckNamespaces returns an error where the tracer's own namespaces are in the
// way (ErrUnsupported, ErrNotPermitted): the kernel's programs see the pids of the first pid namespace, /proc
// those of ours; and BPF asks for capabilities in the first user namespace.
func CheckNamespaces() error {
	if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil && ns != initialPIDNamespace {
		return refuse(ErrUnsupported, "ebpfprof runs in a pid namespace of its own, where /proc shows other pids than probes see: run it on the host, or in a container with the host's pid namespace (docker run --pid=host)")
	}
	if ns, err := os.Readlink("/proc/self/ns/user"); err == nil && ns != initialUserNamespace {
		return refuse(ErrNotPermitted, "ebpfprof runs in a user namespace, whose capabilities do not count for BPF: run it as root of the host")
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
	unless func(*Features) bool
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
		unless: func(f *Features) bool { return f.PreemptGuard },
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
func HazardsHere(features *Features) []Hazard {
	return hazardsOf(kernelRelease(), runtime.GOARCH, features)
}

func hazardsOf(release, arch string, features *Features) (found []Hazard) {
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
		return refuse(ErrUnsupported, "Linux %s is known to be unsafe for probes: %s (%s)", kernelRelease(), h.Harm, h.Source)
	}
	for _, pid := range pids {
		if h.hits(pid) {
			return refuse(ErrUnsupported, "Linux %s is known to be unsafe for probes in pid %d: %s (%s)", kernelRelease(), pid, h.Harm, h.Source)
		}
	}
	return nil
}

// underSeccomp reports whether a process has a seccomp filter, as in most
// containers.
func underSeccomp(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && strings.Contains(string(status), "\nSeccomp:\t2\n")
}

func kernelRelease() string {
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
