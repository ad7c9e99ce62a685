// Package probetable is the table by which the kernel's records name the probe that they
// are of: an entry for each planned probe, at the index that is in its cookies. Two
// goroutines meet in it. The manager (package probes) puts entries in; the decoder finds
// them, a million times a second, so it takes no lock but reads a slice that is never
// changes any more.
//
// The package is no part of the public API: it may change with any version.
package probetable

import (
	"slices"
	"sync/atomic"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// Probe is one entry of the kernel's table of probes. It does not change, but for when
// its rows are in slices.
type Probe struct {
	Index   uint32
	Planned *plan.Probe // its spec's flags are the manager's, the decoder reads none of them
	Stack   bool        // its records carry the kernel's name of a stack
	// Trust is in the layout of the tensors that its file's functions are called with.
	// The decoder's.
	Trust *tensor.Trust
	// slicedSince is the epoch from which an anchor probe is in slices; 0 is none.
	slicedSince atomic.Uint32
}

// Sliced reports whether a row of the epoch stands for more calls than itself.
func (p *Probe) Sliced(epoch uint32) bool {
	if p.Planned.Group.Tier == spec.Detail {
		return true
	}
	since := p.slicedSince.Load()
	return since > 0 && epoch >= since
}

// SliceFrom has the rows of an anchor probe be in slices from an epoch on.
func (p *Probe) SliceFrom(epoch uint32) { p.slicedSince.Store(epoch) }

// Table gives the probes by their indices. Its zero value has none.
type Table struct {
	probes atomic.Pointer[[]*Probe]
}

// All are the entries by their indices. Those whose place was given back are there until
// it is another's.
func (t *Table) All() []*Probe {
	if probes := t.probes.Load(); probes != nil {
		return *probes
	}
	return nil
}

// Find returns nil for an index that there is not.
func (t *Table) Find(index uint32) *Probe {
	if probes := t.All(); int(index) < len(probes) {
		return probes[index]
	}
	return nil
}

// Put makes entries for a file's probes, the first at base. It is the manager's.
func (t *Table) Put(base uint32, planned []plan.Probe, trust *tensor.Trust) []*Probe {
	probes := slices.Clone(t.All())
	for i := range planned {
		p := &Probe{Index: base + uint32(i), Planned: &planned[i], Stack: planned[i].TakesStack(), Trust: trust}
		if int(p.Index) < len(probes) {
			probes[p.Index] = p
		} else {
			probes = append(probes, p)
		}
	}
	t.probes.Store(&probes)
	return probes[base : int(base)+len(planned)]
}

// Renew makes the entries of probes anew that nothing was recorded of yet. It is the
// manager's.
func (t *Table) Renew(indices []uint32) []*Probe {
	probes := slices.Clone(t.All())
	renewed := make([]*Probe, len(indices))
	for n, i := range indices {
		old := probes[i]
		renewed[n] = &Probe{Index: i, Planned: old.Planned, Stack: old.Planned.TakesStack(), Trust: old.Trust}
		probes[i] = renewed[n]
	}
	t.probes.Store(&probes)
	return renewed
}
