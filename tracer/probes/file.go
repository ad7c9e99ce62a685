package probes

import (
	"maps"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
	"github.com/ebpfprof/ebpfprof/tracer/slots"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// File is one library file and the probes that are on it. Processes that
// map the same inode share it.
type File struct {
	id     process.FileID
	source *plan.Source // nil: no process maps it any more
	plan   *plan.Plan
	base   uint32 // index of the file's first probe
	room   slots.Range
	// unusedSince is when it was first seen that no traced process maps the file.
	unusedSince time.Time
	// firstPID is the process in which the file was found first.
	firstPID int32
	// mapped is the library as each traced process maps it.
	mapped   map[int]*process.Library
	looked   looks // which of its functions they use
	expected expectation
	// exclusive: only traced processes map the file, so that one link without a
	// pid serves them and every child from its first instruction on.
	exclusive bool
	anchor    map[string]map[int]*kernel.Links // by group and pid, 0 when exclusive
	detail    map[int]*kernel.Links            // by pid
	trust     tensor.Trust                     // in the layout of its tensors; the decoder's
}

func newFile(found *Found) *File {
	pid := found.Process.PID
	return &File{
		id: found.Library.ID(), source: found.Source, plan: found.Plan, firstPID: int32(pid),
		mapped: map[int]*process.Library{pid: found.Library},
		anchor: map[string]map[int]*kernel.Links{}, detail: map[int]*kernel.Links{},
	}
}

// BuildID is the file's.
func (f *File) BuildID() string { return f.plan.BuildID }

// Path is where the process in which it was found first has it.
func (f *File) Path() string { return f.plan.Path }

// tiers lists every set of links that is on the file.
func (f *File) tiers() []map[int]*kernel.Links {
	return append(slices.Collect(maps.Values(f.anchor)), f.detail)
}

// pids are whom to attach to: everyone, or each traced process.
func (f *File) pids() []int {
	if f.exclusive {
		return []int{0}
	}
	return slices.Sorted(maps.Keys(f.mapped))
}

// runner is the process that putting probes in for a pid stalls most: itself,
// or for 0 the first of those that map the file.
func (f *File) runner(pid int) int {
	if pid != 0 || len(f.mapped) == 0 {
		return pid
	}
	return slices.Min(slices.Collect(maps.Keys(f.mapped)))
}

var _ progress.Library = (*File)(nil)

// File is the library's file.
func (f *File) File() *elf.File { return f.plan.ELF }

// Bias is what the loader added to the file's addresses in a process.
func (f *File) Bias(pid int) (uint64, bool) {
	library := f.mapped[pid]
	if library == nil {
		return 0, false
	}
	return library.Bias(f.plan.ELF)
}
