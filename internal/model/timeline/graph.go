package timeline

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/model/graph"
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
	End      End         // of the bounds of device times, where those are all that is known
	// Hits are how many passes of the tracer's own probes lie in each segment: of the two of a
	// call one at its begin and one at its end, some of each on either side of its edge.
	Hits []float64

	owned map[int][]int // segments by the span that owns them
	below map[int][]int // spans by the span that is their parent
	above map[int]int   // the parent of a span
	main  int           // the training thread
}

// NewStepGraph makes the graph of a step of which these are the spans.
//
// The training thread is cut into segments without a hole, each of the innermost
// span there, that follow one another. Work on a device follows the call that
// launched it and what is before it on its stream. A call that synchronises waits
// for the device's work that ended during it; a backward pass waits for the
// threads that run its nodes. Other threads that launch work are cut, too.
//
// Work of which only bounds are known takes the least time that it can have taken.
func NewStepGraph(t Thread, s Step, spans []Span) (*StepGraph, error) {
	return NewStepGraphAt(t, s, spans, Least)
}

// NewStepGraphAt is NewStepGraph at either end of the bounds.
func NewStepGraphAt(t Thread, s Step, spans []Span, end End) (*StepGraph, error) {
	g := &StepGraph{Step: s, Spans: place(spans, s.Begin, end), End: end, owned: map[int][]int{}, below: map[int][]int{}, above: map[int]int{}}
	b := &builder{StepGraph: g, begin: s.Begin, until: max(s.Until(), s.Begin), before: map[int]int{},
		lanes: map[lane]int{}, queues: map[lane][]launched{}, byCorrelation: map[int64]int{}, threads: map[int]bool{}}
	b.index()
	b.main = t.TID
	b.moveBackward()
	b.findWorks()
	b.thread(t.TID)
	b.backwardThreads(t.TID)
	b.otherThreads()
	b.works()
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
	lanes        map[lane]int
	queues       map[lane][]launched // in the order of the calls
	// byCorrelation are calls of the runtime, for events.
	byCorrelation map[int64]int
	threads       map[int]bool // that are cut, beside the training thread
	moved         int          // the thread that is taken for the training thread; 0 is none
	onLane        []int        // by span: the thread's lane that it is cut into
	runs          []int        // collectives that a library's threads run, in order of time
}

// index finds parents once; device work stands under its launch.
func (b *builder) index() {
	b.byID = make(map[int64]int, len(b.Spans))
	b.onLane = make([]int, len(b.Spans))
	for i, s := range b.Spans {
		b.byID[s.ID], b.onLane[i] = i, s.TID
		if s.Layer == "runtime" && s.Correlation != 0 {
			b.byCorrelation[s.Correlation] = i
		}
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
	b.Hits = append(b.Hits, 0)
	if span >= 0 {
		b.owned[span] = append(b.owned[span], n)
	}
	return n
}

// lane numbers threads as they are and streams below zero.
func (b *builder) lane(span, tid int, device bool) int {
	if !device {
		return tid
	}
	on := lane{b.Spans[span].Device, b.Spans[span].Stream}
	n, ok := b.lanes[on]
	if !ok {
		n = -1 - len(b.lanes)
		b.lanes[on] = n
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
	edges := 0.0 // what of hits lies in the next segment
	hit := func(before, behind float64) {
		if last >= 0 && last != after {
			b.Hits[last] += before
		}
		edges += behind
	}
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
			b.Hits[n], edges = b.Hits[n]+edges, 0
		}
	}
	for i, s := range b.Spans {
		if b.onLane[i] != tid || s.Layer == "device" || s.Begin-b.begin < from || s.Begin-b.begin >= to {
			continue
		}
		for len(stack) > 0 && stack[len(stack)-1].end <= s.Begin-b.begin {
			advance(stack[len(stack)-1].end)
			hit(b.Spans[stack[len(stack)-1].span].endHits())
			stack = stack[:len(stack)-1]
		}
		advance(s.Begin - b.begin)
		b.before[i] = last
		hit(b.beginHits(i))
		end := s.End - b.begin
		if len(stack) > 0 {
			end = min(end, stack[len(stack)-1].end) // ends with what it lies in
		}
		stack = append(stack, open{i, end})
	}
	for len(stack) > 0 {
		advance(stack[len(stack)-1].end)
		hit(b.Spans[stack[len(stack)-1].span].endHits())
		stack = stack[:len(stack)-1]
	}
	advance(to)
	return last
}
