package tracer

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/places"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
)

// probe is what the manager knows of an entry of the probe table.
type probe struct {
	*probetable.Probe
	file     *tracedFile
	used     bool // the job is known to call it
	attached bool
	// before is what its place had counted for the probe that was there before.
	before        bpf.CallProbeCount
	thinnedBefore float64
	gone          bool // its place was given back: its row is written
}

// probeSet are the planned probes, each at its place in the kernel's table.
type probeSet struct {
	table  *probetable.Table
	places *places.Table
	own    []*probe // by index, as in the table
}

func newProbeSet(most places.Most) *probeSet {
	return &probeSet{table: &probetable.Table{}, places: places.New(most)}
}

func (t *probeSet) all() []*probe { return t.own }

func (t *probeSet) at(index uint32) *probe { return t.own[index] }

// add finds room for a file's probes; its base is the index of the first then.
func (t *probeSet) add(file *tracedFile, owner places.Owner) error {
	room, err := t.places.Take(owner, len(file.plan.Probes))
	if err != nil {
		return fmt.Errorf("no room for its %d probes: %w; narrow --probe, or raise --limit probes or files", len(file.plan.Probes), err)
	}
	file.room, file.base = room, uint32(room.Base)
	for _, entry := range t.table.Put(file.base, file.plan.Probes, &file.trust) {
		p := &probe{Probe: entry, file: file}
		if int(p.Index) < len(t.own) {
			t.own[p.Index] = p
		} else {
			t.own = append(t.own, p)
		}
	}
	return nil
}
