package whatif

import (
	"cmp"
	"slices"
)

// clockError is by how many seconds the clocks of a trace may differ where times
// of transfers and computes are compared.
const clockError = 5e-5

// place names an operation within a step and dp_rank.
type place struct {
	stage  int
	optype OpType
	seq    int
}

// model are the dependencies within a step and dp_rank: all of them have the
// same. They are read off one step of dp_rank 0.
type model struct {
	after map[place][]place // always of the same stage
	pairs [][2]place        // a send and its receive
}

// stage is one stage's operations of the step, in order of time.
type stage struct {
	number   int
	ops      []Op
	computes []Op
	p2p      map[OpType][]transfer
}

// transfer is a send or receive with what decides whether it really happened.
type transfer struct {
	Op
	real bool
}

func placeOf(o Op) place { return place{o.Stage, o.Type, o.Seq} }

// newModel reads the dependencies off the operations of one step and dp_rank.
// separate says whether the job has all-reduces of separate gradients: it then
// scatters its gradients while it still computes.
func newModel(ops []Op, separate bool) *model {
	m := &model{after: map[place][]place{}}
	byStage := map[int][]Op{}
	stages, chunks := 0, 1
	for _, o := range ops {
		byStage[o.Stage] = append(byStage[o.Stage], o)
		stages, chunks = max(stages, o.Stage+1), max(chunks, o.Chunk+1)
	}
	all := make([]*stage, stages)
	for n := range all {
		all[n] = newStage(n, byStage[n])
		m.chain(all[n].computes)
		m.matchTransfers(all[n], stages, chunks)
		m.firstBackward(all[n])
		m.dataParallel(all[n], separate)
		m.tail(all[n], separate)
	}
	m.pair(all)
	return m
}

// byTime is the order of operations that all rules mean.
func byTime(a, b Op) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Type, b.Type))
}

func newStage(number int, ops []Op) *stage {
	s := &stage{number: number, ops: slices.SortedFunc(slices.Values(ops), byTime), p2p: map[OpType][]transfer{}}
	s.computes = s.of(ForwardCompute, BackwardCompute)
	return s
}

// of are the stage's operations of the types, in order of time.
func (s *stage) of(types ...OpType) (ops []Op) {
	for _, o := range s.ops {
		if slices.Contains(types, o.Type) {
			ops = append(ops, o)
		}
	}
	return ops
}

// inSequence are the operations of one type by their numbers.
func (s *stage) inSequence(t OpType) []Op {
	return slices.SortedFunc(slices.Values(s.of(t)), func(a, b Op) int { return cmp.Compare(a.Seq, b.Seq) })
}

func (m *model) add(op, dependency Op) {
	p := placeOf(op)
	m.after[p] = append(m.after[p], placeOf(dependency))
}

// chain says that each begins after the one before it.
func (m *model) chain(ops []Op) {
	for i := 1; i < len(ops); i++ {
		m.add(ops[i], ops[i-1])
	}
}

// matchTransfers gives each send the compute that it carries the result of, and
// each receive the compute that it feeds. What was recorded but never launched
// (before the first compute, after the last one) has none.
func (m *model) matchTransfers(s *stage, stages, chunks int) {
	for _, t := range []OpType{ForwardSend, ForwardRecv, BackwardSend, BackwardRecv} {
		ops := s.of(t)
		m.chain(ops)
		computes := s.inSequence(t.computed())
		launched := s.launched(t, ops)
		matched := matched(t, computes, countTrue(launched), stages, chunks)
		next := 0
		for i, o := range ops {
			transfer := transfer{Op: o}
			if launched[i] && next < len(matched) {
				k := matched[next]
				transfer.real = !ends(computes[k], t, stages, chunks)
				if t.send() {
					m.add(o, computes[k])
				} else {
					m.add(computes[k], o)
					if k > 0 {
						m.add(o, computes[k-1])
					}
				}
				next++
			}
			s.p2p[t] = append(s.p2p[t], transfer)
		}
	}
}

// matched are the computes, by their places, that so many launched transfers belong to.
// Each compute has one, also where nothing comes or goes, but the first receive of the first
// stage may not have been recorded, and some record none where nothing comes or goes.
func matched(t OpType, computes []Op, launched, stages, chunks int) (all []int) {
	var reals []int
	for k, c := range computes {
		all = append(all, k)
		if !ends(c, t, stages, chunks) {
			reals = append(reals, k)
		}
	}
	switch {
	case t.recv() && launched+1 == len(computes):
		return all[1:]
	case launched < len(computes) && launched == len(reals):
		return reals
	}
	return all
}

// launched says which of the transfers were not just recorded.
func (s *stage) launched(t OpType, ops []Op) []bool {
	computes := s.of(t.computed())
	launched := make([]bool, len(ops))
	if len(computes) == 0 {
		return launched
	}
	lastStart, firstEnd := computes[0].Start, computes[0].End()
	for _, c := range computes {
		lastStart, firstEnd = max(lastStart, c.Start), min(firstEnd, c.End())
	}
	for i, o := range ops {
		if t.recv() {
			launched[i] = o.Start <= lastStart+clockError
		} else {
			launched[i] = o.End() >= firstEnd-clockError
		}
	}
	return launched
}

func countTrue(all []bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}

// ends says whether the compute's chunk is the model's first or last one on the
// side of the transfer: nothing goes there, nothing comes from there.
func ends(compute Op, t OpType, stages, chunks int) bool {
	global := compute.GlobalChunk
	if global < 0 {
		global = max(compute.Chunk, 0)*stages + compute.Stage
	}
	_, way := t.peer()
	return global+way < 0 || global+way >= stages*chunks
}

// pair gives the i-th real send the i-th real receive of its neighbour.
func (m *model) pair(all []*stage) {
	for _, s := range all {
		for _, t := range []OpType{ForwardSend, BackwardSend} {
			other, way := t.peer()
			neighbour := all[(s.number+way+len(all))%len(all)]
			sends, receives := reals(s.p2p[t]), reals(neighbour.p2p[other])
			for i := range min(len(sends), len(receives)) {
				m.pairs = append(m.pairs, [2]place{placeOf(sends[i]), placeOf(receives[i])})
			}
		}
	}
}

func reals(transfers []transfer) (ops []Op) {
	for _, t := range transfers {
		if t.real {
			ops = append(ops, t.Op)
		}
	}
	return ops
}

// firstBackward: the earliest backward transfers are posted after the
// second-last forward compute of the pipeline's warm-up.
func (m *model) firstBackward(s *stage) {
	first := slices.IndexFunc(s.computes, func(o Op) bool { return o.Type == BackwardCompute })
	if first < 2 {
		return
	}
	for _, t := range []OpType{BackwardSend, BackwardRecv} {
		if ops := s.of(t); len(ops) > 0 {
			m.add(ops[0], s.computes[first-2])
		}
	}
}

// dataParallel: parameters are gathered before their chunk's first forward, and
// gradients are scattered after its last backward where that overlaps.
func (m *model) dataParallel(s *stage, separate bool) {
	m.chain(s.of(ParamsAllGather, GradsReduceScatter))
	gathers := map[int]Op{}
	for _, o := range s.inSequence(ParamsAllGather) {
		gathers[o.Chunk] = o // the last one of a chunk counts
	}
	for chunk, gather := range gathers {
		i := slices.IndexFunc(s.computes, func(o Op) bool { return o.Type == ForwardCompute && o.Chunk == chunk })
		if i >= 0 {
			m.add(s.computes[i], gather)
		}
	}
	if !separate {
		return
	}
	for _, o := range s.of(GradsReduceScatter) {
		chunk := slices.DeleteFunc(s.of(BackwardCompute), func(c Op) bool { return c.Chunk != o.Chunk })
		if len(chunk) > 0 {
			m.add(o, latest(chunk))
		}
	}
}

func latest(ops []Op) Op {
	return slices.MaxFunc(ops, func(a, b Op) int { return cmp.Compare(a.End(), b.End()) })
}

// tail is what follows the last compute; a stage skips what it lacks.
func (m *model) tail(s *stage, separate bool) {
	var chain []Op
	if len(s.computes) > 0 {
		chain = append(chain, latest(s.computes))
	}
	chain = append(chain, s.inSequence(GarbageCollection)...)
	scatters := s.inSequence(GradsReduceScatter)
	before := len(chain)
	chain = append(chain, s.inSequence(LayernormAllReduce)...)
	chain = append(chain, s.inSequence(EmbeddingAllReduce)...)
	if separate {
		chain = append(chain, s.inSequence(SeparateGradsAllReduce)...)
	} else {
		chain = append(chain, scatters...)
	}
	chain = append(chain, s.inSequence(OptimizerClip)...)
	chain = append(chain, s.inSequence(Optimizer)...)
	m.chain(chain)
	if separate && len(scatters) > 0 && before < len(chain) {
		m.add(chain[before], scatters[len(scatters)-1])
	}
}
