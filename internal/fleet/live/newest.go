package live

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// KeptFor is how far back a Newest goes, where its bounds let it.
const KeptFor = 30 * time.Second

// Bounds of the rows of each kind: some 15 MB together.
const (
	keptSpans   = 32_768
	keptSamples = 16_384
	keptRows    = 4096
	keptThreads = 1024
)

// Newest keeps the rows of a job's last moments, the oldest go first: what was there before
// a failure is known after it. It implements event.Sink, of the same events as an Evidence,
// which has them first and keeps their stacks.
type Newest struct {
	event.Discard
	evidence  *Evidence
	processes map[int32]event.Process
	threads   map[thread]event.Thread
	spans     lately[event.Span]
	samples   lately[event.Sample]
	memory    lately[event.Memory]
	slices    lately[event.Slice]
	flows     lately[event.Flow]
	io        lately[event.IO]
	counters  lately[event.Counter]
	warnings  lately[event.Warning]
	newestNS  int64
}

// NewNewest makes one.
func NewNewest(e *Evidence) *Newest {
	return &Newest{
		evidence: e, processes: map[int32]event.Process{}, threads: map[thread]event.Thread{},
		spans: lately[event.Span]{most: keptSpans}, samples: lately[event.Sample]{most: keptSamples}, memory: lately[event.Memory]{most: keptRows},
		slices: lately[event.Slice]{most: keptRows}, flows: lately[event.Flow]{most: keptRows}, io: lately[event.IO]{most: keptRows},
		counters: lately[event.Counter]{most: keptRows}, warnings: lately[event.Warning]{most: keptRows},
	}
}

// lately is a ring of rows.
type lately[T any] struct {
	rows []T
	next int // the oldest, once it is full
	most int
	over bool // rows have made room for later ones
}

func (l *lately[T]) add(rows ...T) {
	for i := range rows {
		if len(l.rows) < l.most {
			l.rows = append(l.rows, rows[i])
			continue
		}
		l.over, l.rows[l.next] = true, rows[i]
		l.next = (l.next + 1) % l.most
	}
}

// since are those from a time on, in the order in which they came.
func (l *lately[T]) since(ns int64, at func(*T) int64) (some []T) {
	for i := range l.rows {
		if row := &l.rows[(l.next+i)%len(l.rows)]; at(row) >= ns {
			some = append(some, *row)
		}
	}
	return some
}

// cut reports whether rows from a time on have made room for later ones.
func (l *lately[T]) cut(ns int64, at func(*T) int64) bool {
	return l.over && at(&l.rows[l.next]) > ns
}

// Spans implements event.Sink.
func (n *Newest) Spans(rows []event.Span) error {
	for i := range rows {
		n.newestNS = max(n.newestNS, rows[i].StartNS+max(rows[i].DurationNS, 0))
		n.touch(rows[i].PythonStackID)
		if d := rows[i].Detail; d != nil && d.StackID != nil {
			n.touch(*d.StackID)
		}
	}
	n.spans.add(rows...)
	return nil
}

// touch has the evidence keep a stack for as long as a row names it.
func (n *Newest) touch(stack int64) { n.evidence.stacks.touch(stack) }

// Samples implements event.Sink.
func (n *Newest) Samples(rows []event.Sample) error {
	for i := range rows {
		n.newestNS = max(n.newestNS, rows[i].TSNS)
		if rows[i].StackID != nil {
			n.touch(*rows[i].StackID)
		}
	}
	n.samples.add(rows...)
	return nil
}

// Memory implements event.Sink.
func (n *Newest) Memory(rows []event.Memory) error {
	for i := range rows {
		n.newestNS = max(n.newestNS, rows[i].TSNS)
		n.touch(rows[i].PythonStackID)
		if rows[i].StackID != nil {
			n.touch(*rows[i].StackID)
		}
	}
	n.memory.add(rows...)
	return nil
}

// Slices implements event.Sink.
func (n *Newest) Slices(rows []event.Slice) error { n.slices.add(rows...); return nil }

// Flows implements event.Sink.
func (n *Newest) Flows(rows []event.Flow) error { n.flows.add(rows...); return nil }

// IO implements event.Sink.
func (n *Newest) IO(rows []event.IO) error { n.io.add(rows...); return nil }

// Counters implements event.Sink.
func (n *Newest) Counters(rows []event.Counter) error { n.counters.add(rows...); return nil }

// Warning implements event.Sink.
func (n *Newest) Warning(row event.Warning) error { n.warnings.add(row); return nil }

// Process implements event.Sink.
func (n *Newest) Process(p event.Process) error {
	if p.EndedNS != nil {
		n.newestNS = max(n.newestNS, *p.EndedNS)
	}
	if _, known := n.processes[p.PID]; known || len(n.processes) < mostProcesses {
		n.processes[p.PID] = p
		return nil
	}
	for pid, of := range n.processes { // one that has ended makes room
		if of.EndedNS != nil {
			delete(n.processes, pid)
			n.processes[p.PID] = p
			break
		}
	}
	return nil
}

// Thread implements event.Sink.
func (n *Newest) Thread(t event.Thread) error {
	id := thread{t.PID, t.TID}
	if _, known := n.threads[id]; !known && len(n.threads) >= keptThreads {
		maps.DeleteFunc(n.threads, func(_ thread, t event.Thread) bool { return t.EndedNS != nil })
	}
	if _, known := n.threads[id]; known || len(n.threads) < keptThreads {
		n.threads[id] = t
	}
	return nil
}

// FromNS is the time from which on rows are written.
func (n *Newest) FromNS() int64 { return n.newestNS - KeptFor.Nanoseconds() }

// The times of rows: when they ended.
func spanEnd(s *event.Span) int64        { return s.StartNS + max(s.DurationNS, 0) }
func sampleTime(s *event.Sample) int64   { return s.TSNS }
func memoryTime(m *event.Memory) int64   { return m.TSNS }
func flowTime(f *event.Flow) int64       { return f.TSNS }
func ioTime(i *event.IO) int64           { return i.TSNS }
func counterTime(c *event.Counter) int64 { return c.TSNS }

// short are the tables of which rows from a time on are not kept any more.
func (n *Newest) short(from int64) (tables []string) {
	for _, of := range []struct {
		table string
		cut   bool
	}{
		{"span", n.spans.cut(from, spanEnd)}, {"sample", n.samples.cut(from, sampleTime)}, {"memory", n.memory.cut(from, memoryTime)},
		{"flow", n.flows.cut(from, flowTime)}, {"io", n.io.cut(from, ioTime)}, {"counter", n.counters.cut(from, counterTime)},
	} {
		if of.cut {
			tables = append(tables, of.table)
		}
	}
	return tables
}

// Write hands over what is kept, and warnings of what of the last moments is not.
func (n *Newest) Write(to event.Sink) (err error) {
	keep := func(failed error) { err = errors.Join(err, failed) }
	from := n.FromNS()
	for _, pid := range slices.Sorted(maps.Keys(n.processes)) {
		if p := n.processes[pid]; p.EndedNS == nil || *p.EndedNS >= from {
			keep(to.Process(p))
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(n.threads), func(a, b thread) int { return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.tid, b.tid)) }) {
		if t := n.threads[id]; t.EndedNS == nil || *t.EndedNS >= from {
			keep(to.Thread(t))
		}
	}
	spans, samples, memory := n.spans.since(from, spanEnd), n.samples.since(from, sampleTime), n.memory.since(from, memoryTime)
	written, stackless := map[int64]bool{}, int64(0)
	stack := func(id int64) {
		if id == 0 || written[id] {
			return
		}
		s := n.evidence.stacks.of(id)
		if s == nil {
			stackless++
			return
		}
		written[id] = true
		keep(to.Stacks([]event.Stack{s.row(id)}))
	}
	optional := func(id *int64) {
		if id != nil {
			stack(*id)
		}
	}
	inSlices := map[int64]bool{}
	for i := range spans {
		inSlices[spans[i].SliceID] = true
		stack(spans[i].PythonStackID)
		if d := spans[i].Detail; d != nil {
			optional(d.StackID)
		}
	}
	for i := range samples {
		optional(samples[i].StackID)
	}
	for i := range memory {
		inSlices[memory[i].SliceID] = true
		stack(memory[i].PythonStackID)
		optional(memory[i].StackID)
	}
	keep(to.Slices(n.slices.since(from, func(s *event.Slice) int64 {
		if inSlices[s.ID] {
			return from
		}
		return from - 1
	})))
	keep(to.Spans(spans))
	keep(to.Samples(samples))
	keep(to.Memory(memory))
	keep(to.OpenCalls(n.evidence.open))
	keep(to.Flows(n.flows.since(from, flowTime)))
	keep(to.IO(n.io.since(from, ioTime)))
	keep(to.Counters(n.counters.since(from, counterTime)))
	for _, w := range n.warnings.since(from, func(w *event.Warning) int64 { return w.TSNS }) {
		keep(to.Warning(w))
	}
	if stackless > 0 {
		keep(to.Warning(event.Warning{TSNS: n.newestNS, Kind: "incomplete", Source: "newest_stacks", Count: stackless, Detail: "rows of the last moments that name a stack which is not kept any more: it has no frames here"}))
	}
	if short := n.short(from); len(short) > 0 {
		keep(to.Warning(event.Warning{TSNS: n.newestNS, Kind: "incomplete", Source: "newest_rows", Count: int64(len(short)),
			Detail: fmt.Sprintf("tables of which there was more in the last %s than is kept: the oldest rows are not here: %s", KeptFor, strings.Join(short, ", "))}))
	}
	return err
}

// row is the stack as an event again.
func (s *keptStack) row(id int64) event.Stack {
	frames := make([]symbolize.Frame, len(s.frames))
	for i, f := range s.frames {
		frames[i] = *f
	}
	return event.Stack{ID: id, Status: s.status, Frames: frames, Folded: symbolize.Fold(frames)}
}
