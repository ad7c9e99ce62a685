// Package analysis puts the answers about memory together: from a dataset, or
// from an imported snapshot, to what `ebpfprof memory` and `memory plan` say. It
// owns their JSON.
package analysis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/holders"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/hot"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/pool"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// ErrNoSuchArena is returned when a filter leaves nothing.
var ErrNoSuchArena = errors.New("no allocator events of such a process")

// Memory is the answer of `ebpfprof memory`. Where memory ran out there may be no arenas.
type Memory struct {
	Dataset     string     `json:"dataset"`
	Warnings    []string   `json:"warnings"`
	OutOfMemory []Shortage `json:"out_of_memory"` // when memory ran out, the last time first
	Arenas      []*Arena   `json:"arenas"`

	origin origin
}

// Arena is the memory of one process, space and device.
type Arena struct {
	Session string `json:"session_id"`
	PID     int32  `json:"pid"`
	Space   string `json:"space"`
	Level   string `json:"level"`
	Device  *int32 `json:"device_id"`

	PeakBytes   int64  `json:"peak_bytes"` // of what was allocated while recording
	PeakNS      int64  `json:"peak_ns"`
	BeforeBytes *int64 `json:"before_bytes"`         // in use before, as the allocator said
	SaidBytes   *int64 `json:"allocator_said_bytes"` // the most in use, as the allocator said
	EndBytes    int64  `json:"end_bytes"`
	Allocations int64  `json:"allocations"`
	Frees       int64  `json:"frees"`
	OutOfMemory int64  `json:"out_of_memory"`

	Steps         int              `json:"steps"`
	StepsFrom     string           `json:"steps_from"`
	PerStep       float64          `json:"allocations_per_step"`
	AllocationUS  *float64         `json:"allocation_us_per_step"` // null where allocations were not timed
	FreeUS        *float64         `json:"free_us_per_step"`       // likewise of frees
	BeginNS       int64            `json:"begin_ns"`
	EndNS         int64            `json:"end_ns"`
	Partial       bool             `json:"partial"`
	FreedUnknown  int64            `json:"frees_of_unknown_blocks"`
	Reused        int64            `json:"addresses_given_out_twice"`
	Unsized       int64            `json:"allocations_without_a_size"`
	SlicedEvents  int64            `json:"events_in_slices"`
	Holders       holders.Shares   `json:"holders"`
	Growth        []holders.Growth `json:"growth"`
	Fragmentation Fragmentation    `json:"fragmentation"`
	Curve         []Point          `json:"curve"`

	lives   *blocks.Lives
	steps   hot.Steps
	context *holders.Context
	pooled  chan pool.Result // of all blocks; nil if not asked for
}

// Point is live bytes from an instant on.
type Point struct {
	NS  int64 `json:"ns"`
	Min int64 `json:"min_bytes"`
	Max int64 `json:"max_bytes"`
}

// Fragmentation is what a caching allocator would hold beyond what is live, in a
// simulation of PyTorch's, and what the job's own said.
type Fragmentation struct {
	SimulatedReserved int64   `json:"simulated_reserved_bytes"`
	RecordedReserved  *int64  `json:"recorded_reserved_bytes"`
	Hard              int64   `json:"hard_bytes"` // at the end, pinned by live blocks
	Soft              int64   `json:"soft_bytes"` // at the end, could be given back
	Pinning           int     `json:"pinning_blocks"`
	OldestLine        string  `json:"oldest_pinning_line"`
	OldestSeconds     float64 `json:"oldest_pinning_seconds"`
}

const curvePoints = 1000

// Load reads a dataset, or a memory snapshot of PyTorch, and makes the blocks of each arena.
func Load(ctx context.Context, path string, pid int32) (*Memory, error) {
	d, err := open(path)
	if err != nil {
		return nil, err
	}
	m, err := load(ctx, d, path, choice{keep: func(a blocks.Arena) bool { return pid == 0 || a.PID == pid }, pool: true})
	if errors.Is(err, ErrNoSuchArena) {
		err = fmt.Errorf("pid %d: %w", pid, err)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return m, nil
}

// Of is the memory of an opened dataset, of the arenas that keep chooses, without
// the fragmentation that a pool would have. The dataset stays open.
func Of(ctx context.Context, db *dataset.DB, keep func(blocks.Arena) bool) (*Memory, error) {
	return load(ctx, source.Of(db), db.Root(), choice{keep: keep})
}

// Whole is the memory of an opened dataset, as Load has it. The dataset stays open.
func Whole(ctx context.Context, db *dataset.DB) (*Memory, error) {
	return load(ctx, source.Of(db), db.Root(), choice{keep: func(blocks.Arena) bool { return true }, pool: true})
}

// choice of arenas, and whether a pool is simulated for them.
type choice struct {
	keep func(blocks.Arena) bool
	pool bool
}

func load(ctx context.Context, d origin, path string, c choice) (*Memory, error) {
	arenas, events, err := d.Events(ctx)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, source.ErrNoEvents
	}
	m := &Memory{Dataset: path, Warnings: append([]string{}, d.Warnings()...), OutOfMemory: []Shortage{}, Arenas: []*Arena{}, origin: d}
	lost, err := d.Lost(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range lost {
		m.Warnings = append(m.Warnings, "lost while recording: "+l)
	}
	anchors, method, err := d.Anchors(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range blocks.Framework(blocks.Build(arenas, events)) {
		if !c.keep(l.Arena) {
			continue
		}
		a := newArena(l, hot.Cut(l, anchors[l.Arena.PID], method))
		if c.pool {
			a.pooled = make(chan pool.Result, 1)
			go func() { a.pooled <- pool.Simulate(hot.PoolRequests(l, everything), pool.Options{}) }()
		}
		m.Arenas = append(m.Arenas, a)
	}
	if err := m.shortages(ctx, c.keep); err != nil {
		return nil, err
	}
	if len(m.Arenas) == 0 && len(m.OutOfMemory) == 0 {
		return nil, ErrNoSuchArena
	}
	for _, a := range m.Arenas {
		if err := a.look(ctx, d); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Close releases what Load opened.
func (m *Memory) Close() error { return m.origin.Close() }

func newArena(l *blocks.Lives, steps hot.Steps) *Arena {
	a := &Arena{
		Session: l.Arena.Session, PID: l.Arena.PID, Space: l.Arena.Space, Level: l.Arena.Level, PeakBytes: l.Peak, PeakNS: l.PeakNS,
		Allocations: l.Allocations, Frees: l.Frees, OutOfMemory: l.OutOfMemory, BeginNS: l.BeginNS, EndNS: l.EndNS,
		Partial: l.Partial(), FreedUnknown: l.FreedUnknown, Reused: l.Reused, Unsized: l.NoSize, SlicedEvents: l.Sliced,
		Steps: steps.Whole(), StepsFrom: steps.Method, lives: l, steps: steps,
	}
	if l.Arena.Device != blocks.Unknown {
		a.Device = &l.Arena.Device
	}
	if l.Before != blocks.Unknown {
		a.BeforeBytes = &l.Before
	}
	if l.AllocatedPeak != blocks.Unknown {
		a.SaidBytes = &l.AllocatedPeak
	}
	if l.ReservedPeak != blocks.Unknown {
		a.Fragmentation.RecordedReserved = &l.ReservedPeak
	}
	for i := range l.Blocks {
		if l.Blocks[i].Died == blocks.Alive {
			a.EndBytes += l.Blocks[i].Bytes
		}
	}
	for _, p := range l.Curve(curvePoints) {
		a.Curve = append(a.Curve, Point(p))
	}
	a.perStep()
	return a
}

func (a *Arena) perStep() {
	if a.Steps == 0 {
		return
	}
	first, last := a.steps.Cuts[0], a.steps.Cuts[a.Steps]
	var births, deaths timed
	for i := range a.lives.Blocks {
		b := &a.lives.Blocks[i]
		if b.Born > first && b.Born <= last {
			births.add(b.AllocationTookNS)
		}
		if b.Died > first && b.Died <= last {
			deaths.add(b.FreeTookNS)
		}
	}
	a.PerStep = float64(births.all) / float64(a.Steps)
	a.AllocationUS, a.FreeUS = births.perStep(a.Steps), deaths.perStep(a.Steps)
}

// timed adds up how long calls took; some of them were not measured.
type timed struct{ all, measured, ns int64 }

func (t *timed) add(ns int64) {
	t.all++
	if ns != blocks.Unknown {
		t.measured++
		t.ns += ns
	}
}

// perStep is the time in all of them in µs, nil where none was measured.
func (t *timed) perStep(steps int) *float64 {
	if t.measured == 0 {
		return nil
	}
	us := float64(t.ns) / 1e3 / float64(t.measured) * float64(t.all) / float64(steps)
	return &us
}

// look finds the stacks and spans of the blocks that the answers speak of: those
// at the peak, those at the end, and what lives across steps.
func (a *Arena) look(ctx context.Context, d origin) error {
	atPeak, instants := a.lives.At(a.lives.PeakTick), a.instants()
	noted := slices.Clone(atPeak)
	for i := range a.lives.Blocks {
		if crosses(&a.lives.Blocks[i], instants) {
			noted = append(noted, i)
		}
	}
	a.context = &holders.Context{StepsNS: a.steps.CutsNS, Spans: map[int64]holders.Span{}, Paths: map[int64]holders.Path{}}
	if err := a.note(ctx, d, noted); err != nil {
		return err
	}
	a.Holders = a.context.Holders(a.lives.Blocks, atPeak)
	a.Growth = a.context.Growths(a.lives.Blocks, instants)
	if a.pooled != nil {
		a.fragment()
	}
	return nil
}

// note reads the stacks and spans of some blocks.
func (a *Arena) note(ctx context.Context, d origin, positions []int) error {
	paths, spans := map[int64]bool{}, map[int64]bool{}
	for _, i := range positions {
		b := &a.lives.Blocks[i]
		paths[b.Path], spans[b.BornIn], spans[b.DiedIn] = true, true, true
	}
	delete(spans, 0)
	found, err := d.Spans(ctx, a.lives.Arena.Session, keys(spans))
	if err != nil {
		return err
	}
	for id, s := range found {
		a.context.Spans[id] = s
		paths[s.Path] = true
	}
	delete(paths, 0)
	more, err := d.Paths(ctx, a.lives.Arena.Session, keys(paths))
	if err != nil {
		return err
	}
	maps.Copy(a.context.Paths, more)
	return nil
}

// instants are the ends of steps, or without steps twenty equal stretches.
func (a *Arena) instants() []int64 {
	if a.Steps > 0 {
		return a.steps.CutsNS
	}
	const stretches = 20
	var all []int64
	for k := range int64(stretches) {
		all = append(all, a.BeginNS+(a.EndNS-a.BeginNS)*(k+1)/stretches)
	}
	return all
}

func crosses(b *blocks.Block, instants []int64) bool {
	at, _ := slices.BinarySearch(instants, b.BornNS)
	return b.Died == blocks.Alive || at < len(instants) && instants[at] < b.DiedNS
}

func keys(set map[int64]bool) []int64 {
	all := make([]int64, 0, len(set))
	for k := range set {
		all = append(all, k)
	}
	return all
}

func (a *Arena) fragment() {
	r := <-a.pooled
	f := &a.Fragmentation
	f.SimulatedReserved, f.Hard, f.Soft, f.Pinning = r.Reserved, r.Hard, r.Soft, len(r.Pinning)
	oldest := -1
	for _, i := range r.Pinning {
		if oldest < 0 || a.lives.Blocks[i].Born < a.lives.Blocks[oldest].Born {
			oldest = i
		}
	}
	if oldest >= 0 {
		b := &a.lives.Blocks[oldest]
		f.OldestLine, f.OldestSeconds = a.context.Line(b), float64(a.EndNS-b.BornNS)/1e9
	}
}

func everything(int) bool { return true }

// Alignment of an arena's blocks.
func (a *Arena) Alignment() int64 {
	if a.Space == "host" {
		return solve.AlignmentCPU
	}
	return solve.AlignmentCUDA
}
