package tracer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// What a recording keeps at the most, in one place. A table that is full, or a
// process that has used up its share of one, costs rows or names, never the
// recording: each has a reason in the warning table (docs/limits.md). Those of
// the kernel's tables are in bpf/maps.h and bpf/lives.h; a test compares them.
const (
	// MaxProcesses are traced at once.
	MaxProcesses = 4096
	// maxTracedFiles bounds the files with probes, or that could have had some: each
	// takes a descriptor and a mapping. A job of eight processes with all runtimes
	// has a dozen, for they share them.
	maxTracedFiles = 1024
	// MaxThreads have calls at once, MaxWaitingThreads are off the CPU at once.
	MaxThreads        = 16384
	MaxWaitingThreads = 16384
	// MaxThreadsOfProcess and MaxWaitsOfProcess are one process's share of those.
	MaxThreadsOfProcess = 4096
	MaxWaitsOfProcess   = 4096
	// MaxIOThreads read and write, one process's share of them is MaxIOThreadsOfProcess.
	MaxIOThreads          = 16384
	MaxIOThreadsOfProcess = 4096
	// MaxOfUser is what the processes of one user may have of each of these tables: a
	// neighbour always finds one process's share.
	MaxOfUser = 12288
	// MaxOpenScopes are open at once, MaxScopesOfProcess those of one process.
	MaxOpenScopes      = 4096
	MaxScopesOfProcess = 1024
	// MaxScopesOfUser is one user's share of them.
	MaxScopesOfUser = 3072
)

// Limit is one that a recording may be given another value for: Options.Limits.
type Limit struct {
	Name    string
	What    string
	Default int
	Most    int // that the kernel's tables and their numbers allow
}

// Limits lists them. docs/limits.md has these and those that are fixed.
var Limits = []Limit{
	{"processes", "processes traced at once", MaxProcesses, MaxProcesses},
	{"stacks", "different stacks in one recording", stacks.MaxStacks, 1 << 26},
	{"files", "files with probes", maxTracedFiles, 1 << 14},
	{"probes", "functions with probes, in all files", kernel.MaxSpecs, 1 << 16},
	{"unwind-mib", "MiB of the kernel's memory for unwind tables", 256, 256},
	{"process-mib", "MiB kept of one process's code: Python's with its line tables, generated code", 64, 4096},
}

// ErrUnknownLimit is wrapped by the error for a limit that is not in Limits.
var ErrUnknownLimit = errors.New("unknown limit")

// ParseLimits reads settings such as "stacks=65536". The error for a name that there
// is not wraps ErrUnknownLimit.
func ParseLimits(settings []string) (map[string]int, error) {
	set := map[string]int{}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		i := slices.IndexFunc(Limits, func(l Limit) bool { return l.Name == name })
		if i < 0 {
			var names []string
			for _, l := range Limits {
				names = append(names, l.Name)
			}
			return nil, fmt.Errorf("%w %q: choose of %s", ErrUnknownLimit, name, strings.Join(names, ", "))
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > Limits[i].Most {
			return nil, fmt.Errorf("limit %s is %q: give a number from 1 to %d", name, value, Limits[i].Most)
		}
		set[name] = n
	}
	return set, nil
}

// limit is what a limit is in a recording.
func (o *Options) limit(name string) int {
	if n, ok := o.Limits[name]; ok {
		return n
	}
	for _, l := range Limits {
		if l.Name == name {
			return l.Default
		}
	}
	panic("no limit is called " + name)
}

// tellUse says how much of the limits is used, for doctor and whoever else asks while
// the recording goes on (internal/record/mapfill).
func (s *Session) tellUse() error {
	slots := s.probes.Slots()
	used := map[string]int{
		"processes": s.job.Processes(),
		"stacks":    s.stats.stackRows(),
		"files":     slots.Files,
		"probes":    slots.Slots,
	}
	if s.sampling.walks != nil {
		used["process-mib"] = (s.sampling.walks.Kept() + 1<<20 - 1) >> 20
		used["unwind-mib"] = (s.sampling.walks.Used().Bytes + 1<<20 - 1) >> 20
	}
	uses := make([]bpf.LimitUse, len(Limits))
	for i, l := range Limits {
		uses[i] = bpf.NewLimitUse(l.Name, used[l.Name], s.options.limit(l.Name))
	}
	return s.kernel.LimitUse.Tell(uses)
}
