package timeline

import (
	"math"
	"testing"
)

// reduces is a rank that works until a time, asks for an all-reduce, waits for it as gloo does,
// and goes on.
func reduces(t *testing.T, works, done int64) *StepGraph {
	t.Helper()
	return made(t, 410,
		Span{Begin: 0, End: works, Layer: "op", Name: "aten::mm", Sequence: -1},
		Span{Begin: works, End: works + 10, Layer: "collective", Category: "issue", Name: "allreduce", Sequence: 5, Communicator: 9},
		Span{Begin: works + 12, End: done + 1, Layer: "collective", Category: "work", Name: "execute", TID: 2, Sequence: 5, Communicator: 9},
		Span{Begin: works + 15, End: done, Layer: "collective", Category: "wait", Name: "wait", Sequence: 5, Communicator: 9},
		Span{Begin: done, End: 400, Layer: "op", Name: "aten::add", Sequence: -1})
}

func joined(t *testing.T, parts ...*StepGraph) *RanksGraph {
	t.Helper()
	var ranks []*int
	for i := range parts {
		ranks = append(ranks, &i)
	}
	r, err := JoinRanks(parts, ranks)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestARankThatComesLateKeepsTheOthersWaiting(t *testing.T) {
	r := joined(t, reduces(t, 100, 331), reduces(t, 300, 329))
	if r.Met != 1 || r.Apart != 0 || r.Graph.Dropped() != 0 {
		t.Fatalf("%d collectives joined, %d apart, %d edges dropped", r.Met, r.Apart, r.Graph.Dropped())
	}
	run := r.Graph.Replay(r.Times)
	if r.End(run, 0) != 410 || r.End(run, 1) != 410 {
		t.Fatalf("replayed %v and %v, measured 410", r.End(run, 0), r.End(run, 1))
	}
	// The late rank 150 earlier: so is the other one.
	early := r.Times.Clone()
	part := r.Part(early, 1)
	for _, n := range r.Parts[1].Under(0) {
		part.Own[n] = 150
	}
	if run := r.Graph.Replay(early); r.End(run, 0) != 260 || r.End(run, 1) != 260 {
		t.Errorf("with a faster rank 1 they end at %v and %v, want 260", r.End(run, 0), r.End(run, 1))
	}
	// The early rank's own work was hidden.
	none := r.Times.Clone()
	part = r.Part(none, 0)
	for _, n := range r.Parts[0].Under(0) {
		part.Own[n] = 0
	}
	if run := r.Graph.Replay(none); r.End(run, 0) != 410 {
		t.Errorf("without rank 0's work it ends at %v, want 410", r.End(run, 0))
	}
}

func TestThePathGoesThroughTheRankThatCameLast(t *testing.T) {
	zero := 0
	p := joined(t, reduces(t, 100, 331), reduces(t, 300, 329)).path(Thread{Rank: &zero})
	if first := p.Segments[0]; first.Name != "aten::mm" || *first.Rank != 1 || math.Abs(first.MS*1e6-300) > 1e-6 {
		t.Errorf("it begins with %+v of rank %d", first, *first.Rank)
	}
	if sum := p.HostMS + p.DeviceMS + p.BetweenMS; math.Abs(sum-p.PathMS) > 1e-12 || math.Abs(p.PathMS*1e6-410) > 1e-6 {
		t.Errorf("%v of %v ms", sum, p.PathMS)
	}
	shares := map[int]PathRank{}
	for _, s := range p.Ranks {
		shares[s.Rank] = s
	}
	if shares[1].Last != 1 || shares[0].Last != 0 || math.Abs(shares[0].WaitsMS*1e6-200) > 1e-6 || shares[1].WaitsMS != 0 {
		t.Errorf("%+v", shares)
	}
}

// Work of devices has no number of its own: the call that launched it does, or which of its
// name it is in the step.
func TestKernelsOfOneCollectiveAreJoined(t *testing.T) {
	of := func(begin, end int64, numbered bool) *StepGraph {
		sequence, communicator := int64(-1), int64(0)
		if numbered {
			sequence, communicator = 7, 3
		}
		return made(t, 210,
			Span{Begin: 1, End: 9, Layer: "collective", Category: "issue", Name: "record_param_comms", Sequence: sequence,
				Communicator: communicator},
			Span{Begin: 2, End: 8, Layer: "runtime", Category: "launch", Parent: 1, Sequence: -1},
			Span{Begin: begin, End: end, Layer: "device", Category: "collective", Name: "ncclDevKernel_AllReduce", Stream: 7, Launch: 2,
				Sequence: -1})
	}
	for _, numbered := range []bool{true, false} {
		r := joined(t, of(20, 200, numbered), of(150, 201, numbered))
		if r.Met != 1 {
			t.Fatalf("numbered %v: %d joined", numbered, r.Met)
		}
		own := r.Times.Own
		if got := [2]float64{own[r.First[0]+node(r.Parts[0], 2)], own[r.First[1]+node(r.Parts[1], 2)]}; got != [2]float64{50, 51} {
			t.Errorf("numbered %v: the transfers take %v, want 50 and 51", numbered, got)
		}
	}
	if r := joined(t, of(20, 100, true), of(150, 201, true)); r.Met != 0 || r.Apart != 1 {
		t.Errorf("a rank that left before the other came is joined to it: %d, %d", r.Met, r.Apart)
	}
}

func node(g *StepGraph, span int) int { return g.Owned(span)[0] }

// DistributedDataParallel waits for a future: no call says so.
func TestABackwardPassWaitsForTheCollectivesThatItAskedFor(t *testing.T) {
	g := made(t, 400,
		Span{Begin: 10, End: 300, Layer: "autograd", Category: "backward", Name: "Engine::execute", Sequence: -1},
		Span{Begin: 50, End: 60, Layer: "collective", Category: "issue", Name: "allreduce", Parent: 1, Sequence: 5},
		Span{Begin: 62, End: 290, Layer: "collective", Category: "work", Name: "execute", TID: 2, Sequence: 5})
	if got := g.last(); got != 400 {
		t.Fatalf("replayed %v", got)
	}
	if got := g.last(2); got >= 300 {
		t.Errorf("without the collective it ends at %v", got)
	}
}
