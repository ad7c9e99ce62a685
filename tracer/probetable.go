package tracer

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/places"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

// probe is one entry of the kernel's probe table.
type probe struct {
	index   uint32
	file    *tracedFile
	planned *plan.Probe // its spec's flags are the manager's
	stack   bool        // its records carry the kernel's name of a stack
	// used: the job is known to call it. Guarded by the manager.
	used     bool
	attached bool
	total    *OperatorTotal // of its name; the decoder's
	// before is what its place had counted for the probe that was there before.
	before        bpf.CallProbeCount
	thinnedBefore float64
	gone          bool // its place was given back: its row is written
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
	places *places.Table // the manager's
}

func newProbeTable(most places.Most) *probeTable { return &probeTable{places: places.New(most)} }

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

// add finds room for a file's probes; its base is the index of the first then.
func (t *probeTable) add(file *tracedFile, owner places.Owner) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	room, err := t.places.Take(owner, len(file.plan.Probes))
	if err != nil {
		return fmt.Errorf("no room for its %d probes: %w; narrow --probe, or raise --limit probes or files", len(file.plan.Probes), err)
	}
	file.room, file.base = room, uint32(room.Base)
	probes := slices.Clone(t.all())
	for i := range file.plan.Probes {
		p := &probe{index: file.base + uint32(i), file: file, planned: &file.plan.Probes[i], stack: file.plan.Probes[i].TakesStack()}
		if int(p.index) < len(probes) {
			probes[p.index] = p
		} else {
			probes = append(probes, p)
		}
	}
	t.probes.Store(&probes)
	return nil
}
