package snapshot

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/holders"
	"github.com/ebpfprof/ebpfprof/internal/exchange/pickle"
)

// Device is the memory of one device for Write: an arena's blocks.
type Device struct {
	Lives *blocks.Lives
	Paths map[int64]holders.Path
}

// Write writes a snapshot that PyTorch's viewer (pytorch.org/memory_viz) and its
// _memory_viz.py open: a trace for each device, and as segments the blocks that
// live when it ends. until ends it at a tick: with an arena's PeakTick the segments
// are what makes the peak; blocks.Alive takes everything.
func Write(w io.Writer, devices []Device, until func(*blocks.Lives) int64) error {
	p := &writer{Writer: pickle.NewWriter(w), known: map[pathKey]uint32{}}
	p.Dict()
	p.Text("segments")
	p.List()
	for i, d := range devices {
		p.segments(i, d, until(d.Lives))
	}
	p.EndList()
	p.Text("device_traces")
	p.List()
	for i, d := range devices {
		p.List()
		p.trace(i, d, until(d.Lives))
		p.EndList()
	}
	p.EndList()
	p.Text("allocator_settings")
	p.Dict()
	p.EndDict()
	p.EndDict()
	if err := p.Close(); err != nil {
		return fmt.Errorf("writing a memory snapshot: %w", err)
	}
	return nil
}

type pathKey struct {
	device int
	path   int64
}

type writer struct {
	*pickle.Writer
	known map[pathKey]uint32 // lists of frames
}

func (p *writer) number(key string, n int64) {
	p.Text(key)
	p.Int(n)
}

func (p *writer) text(key, value string) {
	p.Text(key)
	p.Text(value)
}

// segments writes each live block as a segment of its own, in the order of
// addresses: how the job's allocator laid them out was not recorded.
func (p *writer) segments(device int, d Device, until int64) {
	var alive []*blocks.Block
	for i := range d.Lives.Blocks {
		if b := &d.Lives.Blocks[i]; b.Born <= until && b.Died > until {
			alive = append(alive, b)
		}
	}
	slices.SortFunc(alive, func(a, b *blocks.Block) int { return cmp.Compare(a.Address, b.Address) })
	for _, b := range alive {
		p.Dict()
		p.number("device", int64(device))
		p.number("address", b.Address)
		p.number("total_size", b.Bytes)
		p.number("allocated_size", b.Bytes)
		p.number("active_size", b.Bytes)
		p.number("requested_size", b.Bytes)
		p.number("stream", 0)
		p.text("segment_type", "large")
		p.Text("segment_pool_id")
		p.List()
		p.Int(0)
		p.Int(0)
		p.EndList()
		p.frames(device, d, b.Path)
		p.Text("blocks")
		p.List()
		p.Dict()
		p.number("address", b.Address)
		p.number("size", b.Bytes)
		p.number("requested_size", b.Bytes)
		p.text("state", "active_allocated")
		p.frames(device, d, b.Path)
		p.EndDict()
		p.EndList()
		p.EndDict()
	}
}

// happening is a birth or a death.
type happening struct {
	tick  int64
	block int32
	death bool
}

func (p *writer) trace(device int, d Device, until int64) {
	var all []happening
	for i := range d.Lives.Blocks {
		b := &d.Lives.Blocks[i]
		// What was there before has no allocation in the trace, only its free.
		if b.Born > 0 && b.Born <= until {
			all = append(all, happening{b.Born, int32(i), false})
		}
		if b.Died != blocks.Alive && b.Died <= until {
			all = append(all, happening{b.Died, int32(i), true})
		}
	}
	slices.SortFunc(all, func(a, b happening) int {
		if a.tick == b.tick && a.death != b.death { // an address that was given out again: its free comes first
			if a.death {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.tick, b.tick)
	})
	for _, h := range all {
		b := &d.Lives.Blocks[h.block]
		if h.death {
			// The viewer wants both, and matches the second.
			p.entry(device, d, "free_requested", b, b.DiedNS)
			p.entry(device, d, "free_completed", b, b.DiedNS)
			continue
		}
		p.entry(device, d, "alloc", b, b.BornNS)
	}
}

func (p *writer) entry(device int, d Device, action string, b *blocks.Block, ns int64) {
	p.Dict()
	p.text("action", action)
	p.number("addr", b.Address)
	p.number("size", b.Bytes)
	p.number("stream", 0)
	p.number("time_us", ns/1000)
	p.frames(device, d, b.Path)
	p.EndDict()
}

// frames writes a stack once.
func (p *writer) frames(device int, d Device, path int64) {
	p.Text("frames")
	key := pathKey{device, path}
	if n, is := p.known[key]; is {
		p.Again(n)
		return
	}
	p.List()
	for _, f := range d.Paths[path] {
		file := f.File
		if file == "" {
			file = "??"
		}
		p.Dict()
		p.text("filename", file)
		p.number("line", f.Line)
		p.text("name", f.Function)
		p.EndDict()
	}
	p.EndList()
	p.known[key] = p.Memoize()
}
