package whatif

import (
	"slices"
	"testing"
)

// op is an operation of stage s that lasts from start to end.
func op(s int, t OpType, seq int, start, end float64) Op {
	return Op{Stage: s, Type: t, Seq: seq, Start: start, Duration: end - start, Chunk: -1, GlobalChunk: -1, MicroBatch: -1}
}

// of puts a compute or a collective into its model chunk.
func (o Op) of(chunk, global, batch int) Op {
	o.Chunk, o.GlobalChunk, o.MicroBatch = chunk, global, batch
	return o
}

func (m *model) depends(on, dependency place) bool { return slices.Contains(m.after[on], dependency) }

func (m *model) paired(a, b place) bool { return slices.Contains(m.pairs, [2]place{a, b}) }

// interleaved is one micro-batch through two stages of two chunks each: chunks
// 0 and 2 of the model on stage 0, 1 and 3 on stage 1. Every compute has its
// sends and receives, also where nothing comes or goes.
func interleaved() []Op {
	ops := []Op{
		op(0, ForwardCompute, 0, 1, 2).of(0, 0, 0), op(0, ForwardCompute, 1, 5, 6).of(1, 2, 0),
		op(0, BackwardCompute, 0, 11, 13).of(1, 2, 0), op(0, BackwardCompute, 1, 17, 19).of(0, 0, 0),
		op(1, ForwardCompute, 0, 3, 4).of(0, 1, 0), op(1, ForwardCompute, 1, 7, 8).of(1, 3, 0),
		op(1, BackwardCompute, 0, 8, 10).of(1, 3, 0), op(1, BackwardCompute, 1, 14, 16).of(0, 1, 0),
		op(0, ForwardRecv, 0, 0, 0.1), op(0, ForwardRecv, 1, 4, 5),
		op(0, ForwardSend, 0, 2, 3), op(0, ForwardSend, 1, 6, 7),
		op(1, ForwardRecv, 0, 2, 3), op(1, ForwardRecv, 1, 6, 7),
		op(1, ForwardSend, 0, 4, 5), op(1, ForwardSend, 1, 8, 8.1),
		op(0, BackwardRecv, 0, 10, 11), op(0, BackwardRecv, 1, 16, 17),
		op(0, BackwardSend, 0, 13, 14), op(0, BackwardSend, 1, 19, 19.1),
		op(1, BackwardRecv, 0, 7, 7.1), op(1, BackwardRecv, 1, 13, 14),
		op(1, BackwardSend, 0, 10, 11), op(1, BackwardSend, 1, 16, 17),
	}
	return ops
}

func TestInterleavedChunksPairAroundTheRingAndItsEndsStandAlone(t *testing.T) {
	m := newModel(interleaved(), false)
	for _, pair := range [][2]place{
		{{0, ForwardSend, 0}, {1, ForwardRecv, 0}},
		{{1, ForwardSend, 0}, {0, ForwardRecv, 1}}, // from the last stage to the first: the next chunk
		{{0, ForwardSend, 1}, {1, ForwardRecv, 1}},
		{{1, BackwardSend, 0}, {0, BackwardRecv, 0}},
		{{0, BackwardSend, 0}, {1, BackwardRecv, 1}},
		{{1, BackwardSend, 1}, {0, BackwardRecv, 1}},
	} {
		if !m.paired(pair[0], pair[1]) {
			t.Errorf("%v is not paired with %v", pair[0], pair[1])
		}
	}
	if len(m.pairs) != 6 {
		t.Errorf("%d pairs, want 6: %v", len(m.pairs), m.pairs)
	}
	// What goes nowhere still follows its compute.
	if !m.depends(place{1, ForwardSend, 1}, place{1, ForwardCompute, 1}) {
		t.Error("the last chunk's send does not follow its compute")
	}
	if !m.depends(place{0, ForwardCompute, 0}, place{0, ForwardRecv, 0}) {
		t.Error("the first chunk's compute does not follow its receive")
	}
}

func TestModelChunkOfTheWholeModelFollowsFromTheStageWhereItIsMissing(t *testing.T) {
	ops := interleaved()
	for i := range ops {
		ops[i].GlobalChunk = -1
	}
	if m := newModel(ops, false); len(m.pairs) != 6 || !m.paired(place{1, ForwardSend, 0}, place{0, ForwardRecv, 1}) {
		t.Errorf("pairs %v", m.pairs)
	}
}

func TestFirstReceiveOfTheFirstStageMayBeMissing(t *testing.T) {
	ops := slices.DeleteFunc(interleaved(), func(o Op) bool { return o.Stage == 0 && o.Type == ForwardRecv && o.Seq == 0 })
	m := newModel(ops, false)
	if !m.depends(place{0, ForwardCompute, 1}, place{0, ForwardRecv, 1}) || len(m.pairs) != 6 {
		t.Errorf("the second compute follows %v; %d pairs", m.after[place{0, ForwardCompute, 1}], len(m.pairs))
	}
}

func TestTransfersThatWereRecordedButNotLaunchedStandAlone(t *testing.T) {
	ops := append(interleaved(),
		op(1, ForwardRecv, 2, 7.2, 7.3), // after the last forward compute began
		op(0, BackwardSend, 2, 9, 9.5))  // ended before the first backward compute did
	m := newModel(ops, false)
	for _, extra := range []place{{1, ForwardRecv, 2}, {0, BackwardSend, 2}} {
		for _, pair := range m.pairs {
			if pair[0] == extra || pair[1] == extra {
				t.Errorf("%v is paired: %v", extra, pair)
			}
		}
	}
	if len(m.pairs) != 6 || !m.depends(place{0, BackwardSend, 0}, place{0, BackwardCompute, 0}) {
		t.Errorf("%d pairs, the first backward send follows %v", len(m.pairs), m.after[place{0, BackwardSend, 0}])
	}
}

func TestTransfersFollowTheirComputesAndOneAnother(t *testing.T) {
	m := newModel(interleaved(), false)
	for _, c := range []struct{ on, dependency place }{
		{place{0, ForwardSend, 0}, place{0, ForwardCompute, 0}},      // compute → send
		{place{1, ForwardCompute, 0}, place{1, ForwardRecv, 0}},      // receive → compute
		{place{1, ForwardRecv, 1}, place{1, ForwardCompute, 0}},      // compute i−1 → receive i
		{place{1, BackwardRecv, 1}, place{1, BackwardCompute, 0}},    //
		{place{0, ForwardSend, 1}, place{0, ForwardSend, 0}},         // sends in a chain
		{place{0, BackwardCompute, 0}, place{0, ForwardCompute, 1}},  // computes in a chain
		{place{0, BackwardCompute, 1}, place{0, BackwardCompute, 0}}, //
	} {
		if !m.depends(c.on, c.dependency) {
			t.Errorf("%v does not follow %v, but %v", c.on, c.dependency, m.after[c.on])
		}
	}
}

func TestEarliestBackwardTransfersFollowTheSecondLastForwardBeforeTheFirstBackward(t *testing.T) {
	m := newModel(interleaved(), false)
	// Stage 0 computes forward 0, forward 1, backward 0: the second-last forward is 0.
	for _, transfer := range []place{{0, BackwardRecv, 0}, {0, BackwardSend, 0}} {
		if !m.depends(transfer, place{0, ForwardCompute, 0}) {
			t.Errorf("%v follows %v", transfer, m.after[transfer])
		}
	}
	// With a single forward before the first backward there is none.
	m = newModel([]Op{
		op(0, ForwardCompute, 0, 0, 1).of(0, 0, 0), op(0, BackwardCompute, 0, 1, 2).of(0, 0, 0),
		op(0, BackwardSend, 0, 2, 3),
	}, false)
	if m.depends(place{0, BackwardSend, 0}, place{0, ForwardCompute, 0}) {
		t.Error("the backward send follows the only forward")
	}
}

// tailOps is a stage with everything after its computes, two chunks of parameters and gradients.
func tailOps(separate bool) []Op {
	ops := []Op{
		op(0, ParamsAllGather, 0, 0, 1).of(0, -1, -1), op(0, ParamsAllGather, 1, 1, 2).of(1, -1, -1),
		op(0, ForwardCompute, 0, 1, 2).of(0, 0, 0), op(0, ForwardCompute, 1, 2, 3).of(1, 1, 0),
		op(0, BackwardCompute, 0, 3, 4).of(1, 1, 0), op(0, BackwardCompute, 1, 4, 6).of(0, 0, 0),
		op(0, GarbageCollection, 0, 6, 6.1), op(0, LayernormAllReduce, 0, 7, 8), op(0, EmbeddingAllReduce, 0, 8, 9),
		op(0, OptimizerClip, 0, 12, 13), op(0, Optimizer, 0, 13, 14),
	}
	if separate {
		return append(ops, op(0, GradsReduceScatter, 0, 4, 5).of(1, -1, -1),
			op(0, GradsReduceScatter, 1, 6, 7).of(0, -1, -1),
			op(0, SeparateGradsAllReduce, 0, 9, 10))
	}
	return append(ops, op(0, GradsReduceScatter, 0, 9, 10).of(0, -1, -1),
		op(0, GradsReduceScatter, 1, 10, 11).of(1, -1, -1))
}

func TestStepEndsInAChain(t *testing.T) {
	m := newModel(tailOps(false), false)
	chain := []place{{0, BackwardCompute, 1}, {0, GarbageCollection, 0}, {0, LayernormAllReduce, 0},
		{0, EmbeddingAllReduce, 0}, {0, GradsReduceScatter, 0}, {0, GradsReduceScatter, 1}, {0, OptimizerClip, 0}, {0, Optimizer, 0}}
	for i := 1; i < len(chain); i++ {
		if !m.depends(chain[i], chain[i-1]) {
			t.Errorf("%v follows %v, not %v", chain[i], m.after[chain[i]], chain[i-1])
		}
	}
	if !m.depends(place{0, ForwardCompute, 1}, place{0, ParamsAllGather, 1}) {
		t.Error("the second chunk's forward does not follow its gather")
	}
	if !m.depends(place{0, GradsReduceScatter, 0}, place{0, ParamsAllGather, 1}) {
		t.Error("gathers and scatters are not in one chain")
	}
}

func TestSeparateGradientsReplaceTheScattersOfTheTail(t *testing.T) {
	m := newModel(tailOps(true), true)
	for _, c := range []struct{ on, dependency place }{
		{place{0, GradsReduceScatter, 0}, place{0, BackwardCompute, 0}}, // of chunk 1
		{place{0, GradsReduceScatter, 1}, place{0, BackwardCompute, 1}}, // of chunk 0
		{place{0, LayernormAllReduce, 0}, place{0, GradsReduceScatter, 1}},
		{place{0, LayernormAllReduce, 0}, place{0, GarbageCollection, 0}},
		{place{0, SeparateGradsAllReduce, 0}, place{0, EmbeddingAllReduce, 0}},
		{place{0, OptimizerClip, 0}, place{0, SeparateGradsAllReduce, 0}},
	} {
		if !m.depends(c.on, c.dependency) {
			t.Errorf("%v follows %v, not %v", c.on, m.after[c.on], c.dependency)
		}
	}
	if m.depends(place{0, GradsReduceScatter, 0}, place{0, EmbeddingAllReduce, 0}) {
		t.Error("the scatters are in the tail")
	}
}

func TestStageSkipsWhatItLacksInTheTail(t *testing.T) {
	ops := slices.DeleteFunc(tailOps(false), func(o Op) bool {
		return o.Type == GarbageCollection || o.Type == EmbeddingAllReduce
	})
	m := newModel(ops, false)
	if !m.depends(place{0, LayernormAllReduce, 0}, place{0, BackwardCompute, 1}) ||
		!m.depends(place{0, GradsReduceScatter, 0}, place{0, LayernormAllReduce, 0}) {
		t.Errorf("after the computes: %v; scatters after %v",
			m.after[place{0, LayernormAllReduce, 0}], m.after[place{0, GradsReduceScatter, 0}])
	}
}
