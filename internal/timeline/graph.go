package timeline

import (
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/graph"
)

// Segment is a node of a step's graph: a stretch of a thread that one span owns,
// a stretch between spans, or work on a device.
type Segment struct {
	Span     int // into StepGraph.Spans; -1 between spans
	TID      int // of a thread's segments
	Device   bool
	From, To int64 // since the step's begin, ns
}

// StepGraph is a step that can be replayed. Its graph's times are nanoseconds
// since the step's begin.
type StepGraph struct {
	Step     Step
	Spans    []Span
	Segments []Segment // one each node
	Graph    *graph.Graph
	Times    graph.Times // as measured

	owned map[int][]int // segments by the span that owns them
	below map[int][]int // spans by the span that is their parent
	above map[int]int   // the parent of a span
}

// NewStepGraph makes the graph of a step of which these are the spans.
//
// The training thread is cut into segments without a hole, each of the innermost
// span there, that follow one another. Work on a device follows the call that
// launched it and what is before it on its stream. A call that synchronises waits
// for the device's work that ended during it; a backward pass waits for the
// threads that run its nodes.
func NewStepGraph(t Thread, s Step, spans []Span) (*StepGraph, error) {
	g := &StepGraph{Step: s, Spans: spans, owned: map[int][]int{}, below: map[int][]int{}, above: map[int]int{}}
	b := &builder{StepGraph: g, begin: s.Begin, until: max(s.Until(), s.Begin), before: map[int]int{},
		lanes: map[int64]int{}}
	b.index()
	b.thread(t.TID)
	b.backwardThreads(t.TID)
	b.devices()
	b.synchronisations()
	var err error
	if g.Graph, err = b.nodes.Graph(); err != nil {
		return nil, fmt.Errorf("step %d: %w", s.Number, err)
	}
	g.Times = g.Graph.Measured()
	return g, nil
}

// Under are the segments that a span owns, with those of the spans inside it and
// of the device work that they launched.
func (g *StepGraph) Under(span int) (segments []int) {
	segments = append(segments, g.owned[span]...)
	for _, inner := range g.below[span] {
		segments = append(segments, g.Under(inner)...)
	}
	return segments
}

// Owned are the segments of the span itself.
func (g *StepGraph) Owned(span int) []int { return g.owned[span] }

// Outermost says whether the span is of a layer that none of the spans around it is of.
func (g *StepGraph) Outermost(span int) bool {
	for p := g.Parent(span); p >= 0; p = g.Parent(p) {
		if g.Spans[p].Layer == g.Spans[span].Layer {
			return false
		}
	}
	return true
}

// Parent is the span around it, -1 without one in the step.
func (g *StepGraph) Parent(span int) int {
	if p, ok := g.above[span]; ok {
		return p
	}
	return -1
}

type builder struct {
	*StepGraph
	nodes        graph.Builder
	begin, until int64
	byID         map[int64]int
	before       map[int]int // of a span: the thread's segment before its first one
	onDevice     []int       // segments, in order of their end
	lanes        map[int64]int
}

// index finds parents once; device work stands under its launch.
func (b *builder) index() {
	b.byID = make(map[int64]int, len(b.Spans))
	for i, s := range b.Spans {
		b.byID[s.ID] = i
	}
	for i, s := range b.Spans {
		above := s.Parent
		if s.OnDevice() {
			above = s.Launch
		}
		if p, ok := b.byID[above]; ok && above != 0 && p != i {
			b.below[p], b.above[i] = append(b.below[p], i), p
		}
	}
}

// add makes a node of the segment, lane by lane.
func (b *builder) add(span, tid int, device bool, from, to int64) int {
	n := b.nodes.Add(graph.Node{Start: float64(from), End: float64(to), Lane: b.lane(span, tid, device)})
	b.Segments = append(b.Segments, Segment{span, tid, device, from, to})
	if span >= 0 {
		b.owned[span] = append(b.owned[span], n)
	}
	return n
}

func (b *builder) stream(span int) int64 {
	if span < 0 {
		return 0
	}
	return b.Spans[span].Stream<<8 + int64(b.Spans[span].Device)
}

// lane numbers threads as they are and streams below zero.
func (b *builder) lane(span, tid int, device bool) int {
	if !device {
		return tid
	}
	n, ok := b.lanes[b.stream(span)]
	if !ok {
		n = -1 - len(b.lanes)
		b.lanes[b.stream(span)] = n
	}
	return n
}

// thread cuts the training thread over the whole period.
func (b *builder) thread(tid int) { b.cut(tid, 0, b.until-b.begin, -1) }

// cut makes segments of a thread from one time to another, each after the one
// before it, the first after the segment given. It returns the last one, -1 for
// none.
func (b *builder) cut(tid int, from, to int64, after int) (last int) {
	type open struct {
		span int
		end  int64
	}
	var stack []open
	now := from
	last = after
	owner := func() int {
		if len(stack) == 0 {
			return -1
		}
		return stack[len(stack)-1].span
	}
	advance := func(t int64) {
		if t = min(t, to); t > now {
			n := b.add(owner(), tid, false, now, t)
			if last >= 0 {
				b.nodes.After(n, last)
			}
			now, last = t, n
		}
	}
	for i, s := range b.Spans {
		if s.TID != tid || s.Layer == "device" || s.Begin-b.begin < from || s.Begin-b.begin >= to {
			continue
		}
		for len(stack) > 0 && stack[len(stack)-1].end <= s.Begin-b.begin {
			advance(stack[len(stack)-1].end)
			stack = stack[:len(stack)-1]
		}
		advance(s.Begin - b.begin)
		b.before[i] = last
		end := s.End - b.begin
		if len(stack) > 0 {
			end = min(end, stack[len(stack)-1].end) // ends with what it lies in
		}
		stack = append(stack, open{i, end})
	}
	for len(stack) > 0 {
		advance(stack[len(stack)-1].end)
		stack = stack[:len(stack)-1]
	}
	advance(to)
	return last
}

// backwardThreads are those that run nodes while the training thread waits in
// its backward pass.
func (b *builder) backwardThreads(main int) {
	for i, s := range b.Spans {
		if s.TID != main || s.Layer != "autograd" || s.Category != "backward" || len(b.owned[i]) == 0 {
			continue
		}
		from, to := map[int]int64{}, map[int]int64{}
		for _, other := range b.Spans {
			if other.TID == main || other.Layer == "device" || other.Begin < s.Begin || other.End > s.End {
				continue
			}
			if _, ok := from[other.TID]; !ok {
				from[other.TID] = other.Begin - b.begin
			}
			to[other.TID] = max(to[other.TID], other.End-b.begin)
		}
		waits := b.owned[i][len(b.owned[i])-1]
		for _, tid := range slices.Sorted(keys(from)) {
			if last := b.cut(tid, from[tid], to[tid], b.before[i]); last >= 0 && last != b.before[i] {
				b.nodes.Waits(waits, last)
			}
		}
	}
}

func keys(m map[int]int64) func(func(int) bool) {
	return func(yield func(int) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// devices: work follows the segment before its launch (it may begin before the
// call returns) and the work before it on its stream.
func (b *builder) devices() {
	last := map[int64]int{} // by stream
	latest := map[int64][]int{}
	waitFor := map[int64]int64{} // stream: the stream that its next work waits for
	for i, s := range b.Spans {
		if s.Layer == "device" && s.Category == "sync" && s.WaitStream >= 0 {
			waitFor[b.stream(i)] = s.WaitStream<<8 + int64(s.Device)
			continue
		}
		launch, launched := b.byID[s.Launch]
		if !s.OnDevice() || s.Launch == 0 || !launched {
			continue
		}
		n := b.add(i, 0, true, s.Begin-b.begin, s.End-b.begin)
		if before, ok := b.before[launch]; ok && before >= 0 {
			b.nodes.After(n, before)
		}
		stream := b.stream(i)
		if k, ok := last[stream]; ok {
			b.nodes.After(n, k)
		}
		if other, ok := waitFor[stream]; ok {
			for _, k := range slices.Backward(latest[other]) {
				if b.Segments[k].To <= b.Segments[n].From {
					b.nodes.After(n, k)
					break
				}
			}
			delete(waitFor, stream)
		}
		last[stream] = n
		latest[stream] = append(latest[stream], n)
		b.onDevice = append(b.onDevice, n)
	}
	slices.SortStableFunc(b.onDevice, func(x, y int) int { return int(b.Segments[x].To - b.Segments[y].To) })
}

// synchronisations: a call that waits for a device ends after what it waited for.
func (b *builder) synchronisations() {
	for i, s := range b.Spans {
		waits := s.Layer == "runtime" && slices.Contains([]string{"sync", "copy", "free", "set"}, s.Category)
		if !waits || len(b.owned[i]) == 0 {
			continue
		}
		n := b.owned[i][len(b.owned[i])-1]
		call := b.Segments[n]
		for _, k := range slices.Backward(b.onDevice) {
			work := b.Segments[k]
			own := b.Spans[work.Span].Launch == s.ID
			switch {
			case work.To > call.To:
				continue // not waited for: it goes on
			case work.To <= call.From:
			case s.Category == "sync" && (s.Stream < 0 || s.Stream == b.Spans[work.Span].Stream), own:
				b.nodes.Waits(n, k)
			default:
				continue
			}
			break
		}
	}
}
