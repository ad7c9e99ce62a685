package tracer

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// probe is one entry of the kernel's probe table.
type probe struct {
	index   uint32
	file    *tracedFile
	planned *PlannedProbe // its spec's flags are the manager's
	stack   bool          // its records carry the kernel's name of a stack
	// used: the job is known to call it. Guarded by the manager.
	used     bool
	attached bool
	// idle: it had no hit in the last slice that it was in.
	idle bool
	// covered is up to when its rows stand for its calls.
	covered sliceMark
	thinned float64        // calls that the rows stand for beyond themselves
	total   *OperatorTotal // of its name; the decoder's
	// slicedSince is the epoch from which an anchor probe is in slices; 0 is none.
	slicedSince atomic.Uint32
}

// sliced reports whether a row of the epoch stands for more calls than itself.
func (p *probe) sliced(epoch uint32) bool {
	if p.planned.Group.Tier == catalog.Detail {
		return true
	}
	since := p.slicedSince.Load()
	return since > 0 && epoch >= since
}

// probeTable gives every planned probe its place in the kernel's table. The
// decoder reads it, a million times a second, while the manager appends to it:
// so a reader takes no lock, but a slice that nobody changes any more.
type probeTable struct {
	mu     sync.Mutex
	probes atomic.Pointer[[]*probe]
}

func (t *probeTable) all() []*probe {
	if probes := t.probes.Load(); probes != nil {
		return *probes
	}
	return nil
}

func (t *probeTable) at(index uint32) *probe { return t.all()[index] }

// find is at for an index that may be none; it returns nil then.
func (t *probeTable) find(index uint32) *probe {
	if probes := t.all(); int(index) < len(probes) {
		return probes[index]
	}
	return nil
}

// add makes room for a file's probes and returns the index of the first.
func (t *probeTable) add(file *tracedFile) (uint32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	probes := slices.Clone(t.all())
	base := uint32(len(probes))
	if len(probes)+len(file.plan.Probes) > referenceSpec {
		return 0, fmt.Errorf("%s has %d probes, and only %d are left of the kernel's table: narrow --probe", file.plan.Path, len(file.plan.Probes), referenceSpec-len(probes))
	}
	for i := range file.plan.Probes {
		probes = append(probes, &probe{index: base + uint32(i), file: file, planned: &file.plan.Probes[i], stack: file.plan.Probes[i].takesStack()})
	}
	t.probes.Store(&probes)
	return base, nil
}
