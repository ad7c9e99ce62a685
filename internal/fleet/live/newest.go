package live

import (
	"cmp"
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
	evidence  *Evidence
	processes map[int32]event.Process
	threads   map[thread]event.Thread
	spans     lately[event.Span]
	samples   lately[event.Sample]
	memory    lately[event.Memory]
	slices    lately[event.Slice]
	flows     lately[event.Flow]
	io        lately[event.IO]
	shorts    lately[event.ShortProcess]
	counters  lately[event.Counter]
	warnings  lately[event.Warning]
	newestNS  int64
}

// NewNewest makes one.
func NewNewest(e *Evidence) *Newest {
	return &Newest{
		evidence: e, processes: map[int32]event.Process{}, threads: map[thread]event.Thread{},
		spans: lately[event.Span]{most: keptSpans}, samples: lately[event.Sample]{most: keptSamples},
		memory: lately[event.Memory]{most: keptRows},
		slices: lately[event.Slice]{most: keptRows}, flows: lately[event.Flow]{most: keptRows}, io: lately[event.IO]{most: keptRows},
		shorts:   lately[event.ShortProcess]{most: keptRows},
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

// Write implements event.Sink.
func (n *Newest) Write(b *event.Batch) error {
	for i := range b.Processes {
		n.addProcess(b.Processes[i])
	}
	for i := range b.Threads {
		n.addThread(b.Threads[i])
	}
	n.slices.add(b.Slices...)
	n.addSamples(b.Samples)
	n.io.add(b.IO...)
	n.shorts.add(b.ShortProcesses...)
	n.addSpans(b.Spans)
	n.addMemory(b.Memory)
	n.flows.add(b.Flows...)
	n.counters.add(b.Counters...)
	for i := range b.Warnings {
		n.warnings.add(b.Warnings[i])
	}
	return nil
}

func (n *Newest) addSpans(rows []event.Span) {
	for i := range rows {
		n.newestNS = max(n.newestNS, rows[i].StartNS+max(rows[i].DurationNS, 0))
		n.touch(rows[i].PythonStackID)
		if d := rows[i].Detail; d != nil && d.StackID != nil {
			n.touch(*d.StackID)
		}
	}
	n.spans.add(rows...)
}

// touch has the evidence keep a stack for as long as a row names it.
func (n *Newest) touch(stack int64) { n.evidence.stacks.touch(stack) }

func (n *Newest) addSamples(rows []event.Sample) {
	for i := range rows {
		n.newestNS = max(n.newestNS, rows[i].TSNS)
		if rows[i].StackID != nil {
			n.touch(*rows[i].StackID)
		}
	}
	n.samples.add(rows...)
}

func (n *Newest) addMemory(rows []event.Memory) {
	for i := range rows {
		n.newestNS = max(n.newestNS, rows[i].TSNS)
		n.touch(rows[i].PythonStackID)
		if rows[i].StackID != nil {
			n.touch(*rows[i].StackID)
		}
	}
	n.memory.add(rows...)
}

func (n *Newest) addProcess(p event.Process) {
	if p.EndedNS != nil {
		n.newestNS = max(n.newestNS, *p.EndedNS)
	}
	if _, known := n.processes[p.PID]; known || len(n.processes) < mostProcesses {
		n.processes[p.PID] = p
		return
	}
	for pid, of := range n.processes { // one that has ended makes room
		if of.EndedNS != nil {
			delete(n.processes, pid)
			n.processes[p.PID] = p
			break
		}
	}
}

func (n *Newest) addThread(t event.Thread) {
	id := thread{t.PID, t.TID}
	if _, known := n.threads[id]; !known && len(n.threads) >= keptThreads {
		maps.DeleteFunc(n.threads, func(_ thread, t event.Thread) bool { return t.EndedNS != nil })
	}
	if _, known := n.threads[id]; known || len(n.threads) < keptThreads {
		n.threads[id] = t
	}
}

// FromNS is the time from which on rows are written.
func (n *Newest) FromNS() int64 { return n.newestNS - KeptFor.Nanoseconds() }

// The times of rows: when they ended.
func spanEnd(s *event.Span) int64           { return s.StartNS + max(s.DurationNS, 0) }
func sampleTime(s *event.Sample) int64      { return s.TSNS }
func memoryTime(m *event.Memory) int64      { return m.TSNS }
func flowTime(f *event.Flow) int64          { return f.TSNS }
func ioTime(i *event.IO) int64              { return i.TSNS }
func shortTime(p *event.ShortProcess) int64 { return p.EndNS }

func counterTime(c *event.Counter) int64 { return c.TSNS }

// short are the tables of which rows from a time on are not kept any more.
func (n *Newest) short(from int64) (tables []string) {
	for _, of := range []struct {
		table string
		cut   bool
	}{
		{"span", n.spans.cut(from, spanEnd)}, {"sample", n.samples.cut(from, sampleTime)}, {"memory", n.memory.cut(from, memoryTime)},
		{"flow", n.flows.cut(from, flowTime)}, {"io", n.io.cut(from, ioTime)}, {"short_process", n.shorts.cut(from, shortTime)},
		{"counter", n.counters.cut(from, counterTime)},
	} {
		if of.cut {
			tables = append(tables, of.table)
		}
	}
	return tables
}

// CopyTo hands over what is kept, and warnings of what of the last moments is not.
func (n *Newest) CopyTo(to event.Sink) error {
	from := n.FromNS()
	b := &event.Batch{
		Samples: n.samples.since(from, sampleTime), IO: n.io.since(from, ioTime), ShortProcesses: n.shorts.since(from, shortTime),
		Spans:  n.spans.since(from, spanEnd),
		Memory: n.memory.since(from, memoryTime), Flows: n.flows.since(from, flowTime), Counters: n.counters.since(from, counterTime),
		OpenCalls: []event.OpenCalls{n.evidence.open},
		Warnings:  n.warnings.since(from, func(w *event.Warning) int64 { return w.TSNS }),
	}
	n.who(b, from)
	inSlices := map[int64]bool{}
	for i := range b.Spans {
		inSlices[b.Spans[i].SliceID] = true
	}
	for i := range b.Memory {
		inSlices[b.Memory[i].SliceID] = true
	}
	b.Slices = n.slices.since(from, func(s *event.Slice) int64 {
		if inSlices[s.ID] {
			return from
		}
		return from - 1
	})
	if stackless := n.stacksOf(b); stackless > 0 {
		b.Warnings = append(b.Warnings, event.Warning{TSNS: n.newestNS, Kind: "incomplete", Source: "newest_stacks", Count: stackless,
			Detail: "rows of the last moments that name a stack which is not kept any more: it has no frames here"})
	}
	if short := n.short(from); len(short) > 0 {
		b.Warnings = append(b.Warnings, event.Warning{TSNS: n.newestNS, Kind: "incomplete", Source: "newest_rows", Count: int64(len(short)),
			Detail: fmt.Sprintf("tables of which there was more in the last %s than is kept: the oldest rows are not here: %s", KeptFor,
				strings.Join(short, ", "))})
	}
	return to.Write(b)
}

// who adds the processes and threads that there were from a time on.
func (n *Newest) who(b *event.Batch, from int64) {
	for _, pid := range slices.Sorted(maps.Keys(n.processes)) {
		if p := n.processes[pid]; p.EndedNS == nil || *p.EndedNS >= from {
			b.Processes = append(b.Processes, p)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(n.threads), func(a, b thread) int {
		return cmp.Or(cmp.Compare(a.pid, b.pid),
			cmp.Compare(a.tid, b.tid))
	}) {
		if t := n.threads[id]; t.EndedNS == nil || *t.EndedNS >= from {
			b.Threads = append(b.Threads, t)
		}
	}
}

// stacksOf adds the stacks that rows of a batch name, and counts those that are not kept.
func (n *Newest) stacksOf(b *event.Batch) (stackless int64) {
	written := map[int64]bool{}
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
		b.Stacks = append(b.Stacks, s.row(id))
	}
	optional := func(id *int64) {
		if id != nil {
			stack(*id)
		}
	}
	for i := range b.Spans {
		stack(b.Spans[i].PythonStackID)
		if d := b.Spans[i].Detail; d != nil {
			optional(d.StackID)
		}
	}
	for i := range b.Samples {
		optional(b.Samples[i].StackID)
	}
	for i := range b.Memory {
		stack(b.Memory[i].PythonStackID)
		optional(b.Memory[i].StackID)
	}
	return stackless
}

// row is the stack as an event again.
func (s *keptStack) row(id int64) event.Stack {
	frames := make([]symbolize.Frame, len(s.frames))
	for i, f := range s.frames {
		frames[i] = *f
	}
	return event.Stack{ID: id, Status: s.status, Frames: frames, Folded: symbolize.Fold(frames)}
}
