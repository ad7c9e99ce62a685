package tracer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
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
