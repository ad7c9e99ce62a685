package probes

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/slots"
)

// Probe is what the Set knows of an entry of the probe table.
type Probe struct {
	*probetable.Probe
	file     *File
	used     bool // the job is known to call it
	expected bool // it was announced before
	// unusedUntil is when it was last known that the job had never called it, nanoseconds
	// since the Unix epoch; 0 where that was never known.
	unusedUntil int64
	firstIn     int64 // when it was first put in for a slice, likewise; 0: never
	attached    bool
	// before is what its slot had counted for the probe that was there before.
	before        bpf.CallProbeCount
	thinnedBefore float64
	gone          bool // its slot was freed: its row is written
}

// Attached reports whether the probe has been put in.
func (p *Probe) Attached() bool { return p.attached }

// entries are the planned probes by their slots in the kernel's table.
type entries struct {
	kernel *kernel.Programs
	table  *probetable.Table
	slots  *slots.Table
	own    []*Probe // by index, as in the table
}

func newEntries(c *Config) entries {
	return entries{kernel: c.Kernel, table: c.Table, slots: slots.New(c.Most)}
}

// Table is what the decoder reads.
func (e *entries) Table() *probetable.Table { return e.table }

// All are the probes by their indices.
func (e *entries) All() []*Probe { return e.own }

func (e *entries) at(index uint32) *Probe { return e.own[index] }

// Slots are what of the table has an owner.
func (e *entries) Slots() slots.Amount { return e.slots.Used() }

// add finds slots for a file's probes, at the cost of who maps it.
func (e *entries) add(f *File, owner slots.Owner, c *Config) error {
	room, err := e.slots.Reserve(owner, len(f.plan.Probes))
	if err != nil {
		return fmt.Errorf("no room for its %d probes: %w; narrow --probe, or raise --limit probes or files", len(f.plan.Probes), err)
	}
	f.room, f.base = room, uint32(room.Base)
	for _, entry := range e.table.Put(f.base, f.plan.Probes, &f.trust) {
		p := &Probe{Probe: entry, file: f}
		if int(p.Index) >= len(e.own) {
			e.own = append(e.own, p)
			continue
		}
		e.own[p.Index] = p
		p.before, _ = e.kernel.Count(p.Index)
		c.Decoder.Write(func(event.Sink) error {
			p.thinnedBefore = c.Thinned[p.Index]
			return nil
		})
	}
	return nil
}

// renew makes the entries of some of a file's probes anew, which have been planned meanwhile.
func (e *entries) renew(f *File, which []int) {
	indices := make([]uint32, len(which))
	for n, i := range which {
		indices[n] = f.base + uint32(i)
	}
	for _, entry := range e.table.Renew(indices) {
		e.own[entry.Index].Probe = entry
	}
}

// ownerOf is who pays for what a process maps.
func ownerOf(p *process.Process) slots.Owner {
	return slots.Owner{PID: p.PID, Start: p.StartTicks, User: process.User(p.PID)}
}

// counted is what a probe has counted.
func (e *entries) counted(index uint32) (bpf.CallProbeCount, error) {
	c, err := e.kernel.Count(index)
	if err == nil && int(index) < len(e.own) {
		before := &e.at(index).before
		c.Entries -= before.Entries
		c.Exits -= before.Exits
		c.Lost -= before.Lost
		c.Passed -= before.Passed
	}
	return c, err
}
