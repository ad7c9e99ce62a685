package whatif

import (
	"math"
	"math/rand/v2"
	"slices"
)

// pipeline is a made-up job of pp stages with vpp model chunks each, on dp ranks, in the
// schedule of one forward, one backward, interleaved where vpp > 1. It knows by its own
// rules when each operation begins, so that a replay must come to the same times.
type pipeline struct {
	dp, pp, vpp, batches int
	steps                []int64
	separate             bool // gradients are scattered while it computes; others are reduced later
	noOps                bool // sends and receives of the model's ends are recorded, too
	without              []OpType

	forward  func(w, step, gmc, batch int) float64 // seconds; w is the dp_rank
	backward func(w, step, gmc, batch int) float64
	transfer func(w, step, stage int, t OpType) float64
}

// ordered is a compute of a stage in its order.
type ordered struct {
	forward      bool
	chunk, batch int
}

// order is what a stage computes, one after the other.
func (p *pipeline) order(stage int) (all []ordered) {
	var forwards, backwards []ordered
	if p.vpp == 1 {
		for b := range p.batches {
			forwards, backwards = append(forwards, ordered{true, 0, b}), append(backwards, ordered{false, 0, b})
		}
	} else { // in rounds of pp micro-batches, a chunk after the other
		for first := 0; first < p.batches; first += p.pp {
			for c := range p.vpp {
				for b := first; b < min(first+p.pp, p.batches); b++ {
					forwards = append(forwards, ordered{true, c, b})
					backwards = append(backwards, ordered{false, p.vpp - 1 - c, b})
				}
			}
		}
	}
	warm := p.pp - stage - 1
	if p.vpp > 1 {
		warm = 2*warm + (p.vpp-1)*p.pp
	}
	warm = min(warm, len(forwards))
	all = append(all, forwards[:warm]...)
	for i, b := range backwards {
		if warm+i < len(forwards) {
			all = append(all, forwards[warm+i])
		}
		all = append(all, b)
	}
	return all
}

// build is one step's part of a dp_rank while it is made.
type build struct {
	p       *pipeline
	w, step int
	ops     []Op
	orders  [][]ordered
	done    map[node]*Op
}

// node names an operation of a build: a transfer belongs to the compute that it feeds or
// is fed by.
type node struct {
	kind         OpType
	stage        int
	chunk, batch int
}

func (b *build) end(n node) float64 {
	if o := b.do(n); o != nil {
		return o.End()
	}
	return 0
}

// sequence is the place of a compute among those of its kind on its stage, and the one before.
func (b *build) sequence(stage int, forward bool, chunk, batch int) (seq int, before *ordered) {
	for _, o := range b.orders[stage] {
		if o.forward != forward {
			continue
		}
		if o.chunk == chunk && o.batch == batch {
			return seq, before
		}
		seq, before = seq+1, &o
	}
	panic("not in the order")
}

// do makes an operation and all that it follows; nil is one that does not exist.
func (b *build) do(n node) *Op {
	if o, ok := b.done[n]; ok {
		return o
	}
	var o *Op
	if n.kind.compute() {
		o = b.compute(n)
	} else {
		o = b.move(n)
	}
	b.done[n] = o
	return o
}

func (b *build) compute(n node) *Op {
	p, forward := b.p, n.kind == ForwardCompute
	mine := ordered{forward, n.chunk, n.batch}
	start := b.gathered(n, forward)
	if i := slices.Index(b.orders[n.stage], mine); i > 0 {
		last := b.orders[n.stage][i-1]
		start = max(start, b.end(node{kindOf(last.forward), n.stage, last.chunk, last.batch}))
	}
	recv := ForwardRecv
	duration := p.forward
	if !forward {
		recv, duration = BackwardRecv, p.backward
	}
	start = max(start, b.end(node{recv, n.stage, n.chunk, n.batch}))
	gmc := n.chunk*p.pp + n.stage
	seq, _ := b.sequence(n.stage, forward, n.chunk, n.batch)
	return &Op{Stage: n.stage, Type: n.kind, Seq: seq, Start: start, Duration: duration(b.w, b.step, gmc, n.batch),
		Chunk: n.chunk, GlobalChunk: gmc, MicroBatch: n.batch}
}

func kindOf(forward bool) OpType {
	if forward {
		return ForwardCompute
	}
	return BackwardCompute
}

// gathered is when a chunk's parameters are there: gathers follow one another from 0 on.
func (b *build) gathered(n node, forward bool) float64 {
	if !forward || slices.Contains(b.p.without, ParamsAllGather) {
		return 0
	}
	return float64(n.chunk+1) * b.p.transfer(b.w, b.step, n.stage, ParamsAllGather)
}

// begun is when a send or receive is ready.
func (b *build) begun(n node) float64 {
	forward := n.kind.forward()
	_, before := b.sequence(n.stage, forward, n.chunk, n.batch)
	start := 0.0
	if n.kind.send() {
		start = b.end(node{kindOf(forward), n.stage, n.chunk, n.batch})
	}
	for before != nil { // the one before it of its own kind that exists
		if last := b.do(node{n.kind, n.stage, before.chunk, before.batch}); last != nil {
			start = max(start, last.End())
			break
		}
		_, before = b.sequence(n.stage, forward, before.chunk, before.batch)
	}
	if _, before = b.sequence(n.stage, forward, n.chunk, n.batch); n.kind.recv() && before != nil {
		start = max(start, b.end(node{kindOf(forward), n.stage, before.chunk, before.batch}))
	}
	return start
}

func (b *build) move(n node) *Op {
	p := b.p
	other, way := n.kind.peer()
	gmc := n.chunk*p.pp + n.stage
	peer := gmc + way
	none := peer < 0 || peer >= p.pp*p.vpp
	if none && !p.noOps {
		return nil
	}
	start := b.begun(n)
	end := start + 1e-6
	if !none {
		there := node{other, peer % p.pp, peer / p.pp, n.batch}
		end = max(start, b.begun(there)) + p.transfer(b.w, b.step, n.stage, n.kind)
	}
	return &Op{Stage: n.stage, Type: n.kind, Start: start, Duration: end - start, Chunk: -1, GlobalChunk: -1, MicroBatch: -1}
}

// trace makes all of it. Rows are numbered as the format says, by their begins.
func (p *pipeline) trace() *Trace {
	t := new(Trace)
	clock := 100.0
	for s, number := range p.steps {
		var all [][]Op
		for w := range p.dp {
			all = append(all, p.worker(w, s))
		}
		step := p.tail(s, all)
		last := 0.0
		for i := range step {
			o := &step[i]
			last = max(last, o.End())
			o.Start, o.Step, o.Rank = o.Start+clock, number, o.Stage*p.dp*8+o.DPRank*8
		}
		clock += last + 1
		t.Ops = append(t.Ops, slices.DeleteFunc(step, func(o Op) bool { return slices.Contains(p.without, o.Type) })...)
	}
	return t
}

// worker are the computes and transfers of a dp_rank's stages, and its gathers.
func (p *pipeline) worker(w, step int) []Op {
	b := &build{p: p, w: w, step: step, done: map[node]*Op{}}
	for stage := range p.pp {
		b.orders = append(b.orders, p.order(stage))
	}
	for stage, order := range b.orders {
		for _, o := range order {
			kinds := []OpType{ForwardRecv, ForwardCompute, ForwardSend}
			if !o.forward {
				kinds = []OpType{BackwardRecv, BackwardCompute, BackwardSend}
			}
			for _, kind := range kinds {
				b.do(node{kind, stage, o.chunk, o.batch})
			}
		}
		for c := range p.vpp {
			long := p.transfer(w, step, stage, ParamsAllGather)
			b.ops = append(b.ops, Op{Stage: stage, Type: ParamsAllGather, Seq: c, Start: float64(c) * long, Duration: long, Chunk: c,
				GlobalChunk: -1, MicroBatch: -1})
		}
	}
	for _, o := range b.done {
		if o != nil {
			b.ops = append(b.ops, *o)
		}
	}
	for i := range b.ops {
		b.ops[i].DPRank = w
	}
	for stage := range p.pp {
		for _, kind := range []OpType{ForwardSend, ForwardRecv, BackwardSend, BackwardRecv} {
			var mine []int
			for i, o := range b.ops {
				if o.Stage == stage && o.Type == kind {
					mine = append(mine, i)
				}
			}
			slices.SortFunc(mine, func(x, y int) int { return int(math.Copysign(1, b.ops[x].Start-b.ops[y].Start)) })
			for seq, i := range mine {
				b.ops[i].Seq = seq
			}
		}
	}
	return b.ops
}

// tail adds what follows the computes, over all dp_ranks of a step.
func (p *pipeline) tail(step int, workers [][]Op) (all []Op) {
	type place struct{ w, stage int }
	now := map[place]float64{}
	has := func(t OpType) bool { return !slices.Contains(p.without, t) }
	add := func(w, stage int, t OpType, seq, chunk int, start, end float64) {
		all = append(all, Op{DPRank: w, Stage: stage, Type: t, Seq: seq, Start: start, Duration: end - start, Chunk: chunk, GlobalChunk: -1,
			MicroBatch: -1})
	}
	// meet has members of each group that key tells apart wait for one another.
	meet := func(t OpType, seq, chunk int, starts map[place]float64, key func(place) int) {
		last := map[int]float64{}
		for at, start := range starts {
			last[key(at)] = max(last[key(at)], start)
		}
		for at, start := range starts {
			end := last[key(at)] + p.transfer(at.w, step, at.stage, t)
			add(at.w, at.stage, t, seq, chunk, start, end)
			starts[at] = end
		}
	}
	chunkEnd := map[place][]float64{}
	gathered := map[place]float64{}
	for w, ops := range workers {
		all = append(all, ops...)
		for _, o := range ops {
			at := place{w, o.Stage}
			if o.Type == ParamsAllGather && has(ParamsAllGather) {
				gathered[at] = max(gathered[at], o.End())
			}
			if !o.Type.compute() {
				continue
			}
			now[at] = max(now[at], o.End())
			if chunkEnd[at] == nil {
				chunkEnd[at] = make([]float64, p.vpp)
			}
			if o.Type == BackwardCompute {
				chunkEnd[at][o.Chunk] = max(chunkEnd[at][o.Chunk], o.End())
			}
		}
	}
	stageOf := func(at place) int { return at.stage }
	alone := func(t OpType, long float64) {
		if !has(t) {
			return
		}
		for at := range now {
			add(at.w, at.stage, t, 0, -1, now[at], now[at]+long)
			now[at] += long
		}
	}
	alone(GarbageCollection, 0.001)
	if p.separate && has(GradsReduceScatter) {
		scattered := map[place]float64{}
		for c := range p.vpp {
			chunk := p.vpp - 1 - c
			for at := range now {
				scattered[at] = max(scattered[at], gathered[at], chunkEnd[at][chunk])
			}
			meet(GradsReduceScatter, c, chunk, scattered, stageOf)
		}
		for at := range now {
			now[at] = max(now[at], scattered[at])
		}
	}
	alone(LayernormAllReduce, 0.002)
	if has(EmbeddingAllReduce) {
		ends := map[place]float64{}
		for at, v := range now {
			if at.stage == 0 || at.stage == p.pp-1 {
				ends[at] = v
			}
		}
		meet(EmbeddingAllReduce, 0, -1, ends, func(at place) int { return at.w })
		for at, v := range ends {
			now[at] = v
		}
	}
	if p.separate {
		meet(SeparateGradsAllReduce, 0, -1, now, stageOf)
	} else if has(GradsReduceScatter) {
		for c := range p.vpp {
			meet(GradsReduceScatter, c, c, now, stageOf)
		}
	}
	if has(OptimizerClip) {
		meet(OptimizerClip, 0, -1, now, func(place) int { return 0 })
	}
	alone(Optimizer, 0.01)
	return all
}

// even is a job whose workers and stages are alike.
func even(dp, pp, vpp int) *pipeline {
	p := &pipeline{dp: dp, pp: pp, vpp: vpp, batches: 8, steps: []int64{3, 4, 5}}
	p.forward = func(int, int, int, int) float64 { return 0.1 / float64(vpp) }
	p.backward = func(int, int, int, int) float64 { return 0.2 / float64(vpp) }
	p.transfer = func(_, _, _ int, t OpType) float64 {
		if t == ForwardSend || t == ForwardRecv || t == BackwardSend || t == BackwardRecv {
			return 0.0005
		}
		return 0.004
	}
	return p
}

// uneven gives each micro-batch of each dp_rank a length of its own, forward and backward
// alike: sequences of different length.
func (p *pipeline) uneven(seed uint64) *pipeline {
	r := rand.New(rand.NewPCG(seed, 1))
	length := map[[3]int]float64{}
	for w := range p.dp {
		for s := range p.steps {
			for b := range p.batches {
				length[[3]int{w, s, b}] = 0.4 + 1.2*r.Float64()
			}
		}
	}
	forward, backward := p.forward, p.backward
	p.forward = func(w, s, g, b int) float64 { return forward(w, s, g, b) * length[[3]int{w, s, b}] }
	p.backward = func(w, s, g, b int) float64 { return backward(w, s, g, b) * length[[3]int{w, s, b}] }
	return p
}

// noisy has every compute vary by itself.
func (p *pipeline) noisy(by float64) *pipeline {
	r := rand.New(rand.NewPCG(7, 7))
	forward, backward := p.forward, p.backward
	p.forward = func(w, s, g, b int) float64 { return forward(w, s, g, b) * (1 + by*(r.Float64()-0.5)) }
	p.backward = func(w, s, g, b int) float64 { return backward(w, s, g, b) * (1 + by*(r.Float64()-0.5)) }
	return p
}

// slow has the computes that a rule names take a factor longer.
func (p *pipeline) slow(factor float64, which func(w, step, gmc int) bool) *pipeline {
	forward, backward := p.forward, p.backward
	p.forward = func(w, s, g, b int) float64 {
		if which(w, s, g) {
			return forward(w, s, g, b) * factor
		}
		return forward(w, s, g, b)
	}
	p.backward = func(w, s, g, b int) float64 {
		if which(w, s, g) {
			return backward(w, s, g, b) * factor
		}
		return backward(w, s, g, b)
	}
	return p
}
