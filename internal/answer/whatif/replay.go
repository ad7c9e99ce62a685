package whatif

import (
	"fmt"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/model/graph"
)

// noTransfer: an operation that ended this many seconds before the last of its
// group began did not transfer anything; its clock is another.
const noTransfer = -0.010

// job is a trace made ready for replays.
type job struct {
	ops    []Op
	graph  *graph.Graph
	times  graph.Times // measured own times, without launch delays
	ideal  []float64   // own times if all were alike
	steps  []int64     // numbers, ascending
	step   []int32     // of an operation: its place in steps
	absent int         // dependencies whose operation another step or dp_rank lacks
	model  *model
}

// opID finds an operation.
type opID struct {
	step int64
	dp   int
	place
}

func newJob(t *Trace) (*job, error) {
	j := &job{ops: t.Ops}
	j.numberSteps()
	j.model = newModel(j.pattern(), slices.ContainsFunc(j.ops, func(o Op) bool { return o.Type == SeparateGradsAllReduce }))
	groups, err := j.link()
	if err != nil {
		return nil, err
	}
	j.times = graph.Times{Delay: make([]float64, len(j.ops)), Own: j.ownTimes(groups)}
	j.ideal = j.idealTimes()
	return j, nil
}

// link makes the graph, and says which operations get on together. The model, not the
// clocks, says what depends on what.
func (j *job) link() (groups [][]int, err error) {
	b := graph.Builder{KeepBackward: true}
	at := make(map[opID]int, len(j.ops))
	for i, o := range j.ops {
		b.Add(graph.Node{Start: o.Start, End: o.End()})
		at[opID{o.Step, o.DPRank, placeOf(o)}] = i
	}
	for i, o := range j.ops {
		for _, dependency := range j.model.after[placeOf(o)] {
			if d, ok := at[opID{o.Step, o.DPRank, dependency}]; ok {
				b.After(i, d)
			} else {
				j.absent++
			}
		}
	}
	groups = j.groups(j.model, at)
	for _, g := range groups {
		b.Group(g...)
	}
	if j.graph, err = b.Graph(); err != nil {
		return nil, fmt.Errorf("%w: the operations of a step wait for one another: %w", ErrBadTrace, err)
	}
	return groups, nil
}

func (j *job) numberSteps() {
	seen := map[int64]bool{}
	for _, o := range j.ops {
		if !seen[o.Step] {
			seen[o.Step] = true
			j.steps = append(j.steps, o.Step)
		}
	}
	slices.Sort(j.steps)
	for _, o := range j.ops {
		n, _ := slices.BinarySearch(j.steps, o.Step)
		j.step = append(j.step, int32(n))
	}
}

// pattern are the operations that the model is read off: the first step of dp_rank 0.
func (j *job) pattern() (ops []Op) {
	first := int64(math.MaxInt64)
	for _, o := range j.ops {
		if o.DPRank == 0 {
			first = min(first, o.Step)
		}
	}
	for _, o := range j.ops {
		if o.DPRank == 0 && o.Step == first {
			ops = append(ops, o)
		}
	}
	return ops
}

// groups are the operations that get on together.
func (j *job) groups(m *model, at map[opID]int) (groups [][]int) {
	stages := 0
	for _, o := range j.ops {
		stages = max(stages, o.Stage+1)
	}
	receives := map[place]place{}
	for _, p := range m.pairs {
		receives[p[0]] = p[1]
	}
	together := map[opID][]int{}
	for i, o := range j.ops {
		id := opID{o.Step, o.DPRank, placeOf(o)}
		switch o.Type {
		case ForwardSend, BackwardSend:
			receive, ok := receives[id.place]
			if r, there := at[opID{o.Step, o.DPRank, receive}]; ok && there {
				groups = append(groups, []int{i, r})
			}
			continue
		case EmbeddingAllReduce: // of the first and the last stage of a dp_rank
			if o.Stage != 0 && o.Stage != stages-1 {
				continue
			}
			id.stage = -1
		case ParamsAllGather, GradsReduceScatter, SeparateGradsAllReduce: // of the dp_ranks of a stage
			id.dp = -1
		case OptimizerClip: // of all workers
			id.dp, id.stage = -1, -1
		default:
			continue
		}
		together[id] = append(together[id], i)
	}
	for _, g := range together {
		if len(g) > 1 {
			groups = append(groups, g)
		}
	}
	return groups
}

// ownTimes are durations, and for members of a group what is left of them after
// the last member has begun.
func (j *job) ownTimes(groups [][]int) []float64 {
	own := make([]float64, len(j.ops))
	for i, o := range j.ops {
		own[i] = o.Duration
	}
	for _, g := range groups {
		last := j.ops[g[0]].Start
		for _, i := range g {
			last = max(last, j.ops[i].Start)
		}
		for _, i := range g {
			if own[i] = j.ops[i].End() - last; own[i] <= noTransfer {
				own[i] = 0
			}
		}
	}
	return own
}

// idealTimes gives each operation the average of its type over all workers,
// steps and micro-batches.
func (j *job) idealTimes() []float64 {
	byType := map[OpType][]float64{}
	for i, o := range j.ops {
		byType[o.Type] = append(byType[o.Type], j.times.Own[i])
	}
	typical := map[OpType]float64{}
	for t, times := range byType {
		typical[t] = t.typical()(times)
	}
	ideal := make([]float64, len(j.ops))
	for i, o := range j.ops {
		ideal[i] = typical[o.Type]
	}
	return ideal
}

// replay is the time of each step if the operations that isIdeal names take
// their ideal time and the others the measured one.
func (j *job) replay(isIdeal func(Op) bool) stepTimes {
	own := make([]float64, len(j.ops))
	for i, o := range j.ops {
		if own[i] = j.times.Own[i]; isIdeal(o) {
			own[i] = j.ideal[i]
		}
	}
	run := j.graph.Replay(graph.Times{Delay: j.times.Delay, Own: own})
	return j.spans(func(i int) (float64, float64) { return run.Start[i], run.End[i] })
}

// measured is the time of each step as it was.
func (j *job) measured() stepTimes {
	return j.spans(func(i int) (float64, float64) { return j.ops[i].Start, j.ops[i].End() })
}

// spans is the time from the first start to the last end, a step each.
func (j *job) spans(of func(i int) (start, end float64)) stepTimes {
	first, last := make([]float64, len(j.steps)), make([]float64, len(j.steps))
	begun := make([]bool, len(j.steps))
	for i := range j.ops {
		n := j.step[i]
		start, end := of(i)
		if !begun[n] {
			first[n], last[n], begun[n] = start, end, true
		}
		first[n], last[n] = min(first[n], start), max(last[n], end)
	}
	for n := range last {
		last[n] -= first[n]
	}
	return last
}

// stepTimes are seconds, a step each, in the order of job.steps.
type stepTimes []float64

func (s stepTimes) mean() float64 { return mean(s) }
