package whatif

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// A job's own rules and the replay's come to the same times, whatever its shape: nothing
// but the dependencies that the replay found was in its way.
func TestAReplayOfAMadeUpPipelineTakesAsLongAsItDid(t *testing.T) {
	for _, shape := range []struct{ dp, pp, vpp int }{{1, 1, 1}, {4, 1, 1}, {2, 2, 1}, {3, 4, 1}, {2, 2, 2}, {2, 4, 2}, {2, 4, 3}, {4, 8, 1}} {
		for _, separate := range []bool{false, true} {
			for _, noOps := range []bool{false, true} {
				for _, without := range [][]OpType{nil, {GarbageCollection}, {ParamsAllGather}, {EmbeddingAllReduce, LayernormAllReduce}} {
					p := even(shape.dp, shape.pp, shape.vpp).uneven(3)
					p.separate, p.noOps, p.without = separate, noOps, without
					j, err := newJob(p.trace())
					if err != nil {
						t.Fatal(err)
					}
					measured := j.measured()
					for n, replayed := range j.replay(func(Op) bool { return false }) {
						if math.Abs(replayed-measured[n]) > 1e-6 {
							t.Errorf("%+v, separate %v, no-ops %v, without %v: a step took %.6f s and is replayed in %.6f",
								shape, separate, noOps, without, measured[n], replayed)
						}
					}
				}
			}
		}
	}
}

// Each cause by shapes of jobs that have it.
func TestCausesOfMadeUpPipelines(t *testing.T) {
	worker := func(dp, stage, pp int) func(w, step, gmc int) bool {
		return func(w, _, gmc int) bool { return w == dp && gmc%pp == stage }
	}
	for name, c := range map[string]struct {
		job   *pipeline
		cause Cause
		first [2]int // dp_rank and stage of the slowest worker; negative: not asked
	}{
		"a slow worker of a pipeline":         {even(4, 4, 1).noisy(0.02).slow(2, worker(2, 1, 4)), SlowWorker, [2]int{2, 1}},
		"a slow worker of the last stage":     {even(8, 4, 1).noisy(0.02).slow(2, worker(5, 3, 4)), SlowWorker, [2]int{5, 3}},
		"a slow worker of interleaved chunks": {even(4, 4, 2).noisy(0.02).slow(2, worker(3, 2, 4)), SlowWorker, [2]int{3, 2}},
		"a slow worker without a pipeline":    {even(16, 1, 1).noisy(0.02).slow(1.6, worker(9, 0, 1)), SlowWorker, [2]int{9, 0}},
		"sequences of different length":       {even(8, 4, 1).uneven(1), SequenceImbalance, [2]int{-1, -1}},
		"the same without a pipeline":         {even(32, 1, 1).uneven(2), SequenceImbalance, [2]int{-1, -1}},
		"the same, interleaved":               {even(8, 2, 2).uneven(3), SequenceImbalance, [2]int{-1, -1}},
		"the same, and a last stage that is slow": {even(8, 4, 1).uneven(4).slow(1.3, func(_, _, gmc int) bool { return gmc == 3 }),
			SequenceImbalance, [2]int{-1, -1}},
		"a slow last stage": {even(16, 4, 1).noisy(0.1).slow(1.5, func(_, _, gmc int) bool { return gmc == 3 }), SlowStage,
			[2]int{-1, 3}},
		"a slow last chunk": {even(16, 4, 2).noisy(0.1).slow(1.8, func(_, _, gmc int) bool { return gmc == 7 }), SlowStage,
			[2]int{-1, 3}},
		"a slow stage that is not the last": {even(16, 4, 1).noisy(0.1).slow(1.5, func(_, _, gmc int) bool { return gmc == 1 }), Unknown,
			[2]int{-1, 1}},
		"an even job":                    {even(8, 4, 1).noisy(0.01), Unknown, [2]int{-1, -1}},
		"an even job without a pipeline": {even(8, 1, 1).noisy(0.01), Unknown, [2]int{-1, -1}},
	} {
		for _, separate := range []bool{false, true} {
			p := c.job
			p.separate, p.noOps = separate, p.vpp > 1
			a := analyse(t, p.trace(), Meta{DPSize: p.dp, PPSize: p.pp, VPPSize: p.vpp})
			said := fmt.Sprintf("%s, separate %v: S %.3f, M_W %s, M_S %s, r %s, cause %s, first %+v", name, separate, a.S,
				number(a.MW, "null"), number(a.MS, "null"), number(a.Correlation, "null"), a.Cause, a.Workers[0])
			t.Log(said)
			if w := a.Workers[0]; a.Cause != c.cause || c.first[0] >= 0 && w.DPRank != c.first[0] || c.first[1] >= 0 && w.Stage != c.first[1] {
				t.Error(said)
			}
			if (a.MS == nil) != (p.pp == 1) || (a.MW == nil) != (a.S < 1.03) || a.Replaced != (3*p.dp*p.pp+99)/100 {
				t.Errorf("%s; %d replaced", said, a.Replaced)
			}
		}
	}
}

// otherColumns are the same rows as others write them: in another order, with what is not known
// as null, or as a float that is no number, which pandas makes of integers with nulls.
type otherColumns struct {
	GMC      *float64 `parquet:"gmc"`
	Extra    string   `parquet:"extra"`
	OpType   string   `parquet:"optype"`
	MB       *float64 `parquet:"mb_id"`
	Duration float64  `parquet:"duration"`
	Seq      int64    `parquet:"seq_id"`
	Start    float64  `parquet:"start_ts"`
	Stage    float64  `parquet:"stage"`
	MC       *float64 `parquet:"mc"`
	Step     int32    `parquet:"step"`
	Rank     int64    `parquet:"rank"`
	DPRank   int64    `parquet:"dp_rank"`
}

func TestATraceIsTheSameHoweverItsColumnsAreWritten(t *testing.T) {
	p := even(4, 4, 2).uneven(5).slow(2, func(w, _, gmc int) bool { return w == 1 && gmc%4 == 2 })
	p.noOps, p.steps = true, []int64{3, 17, 18, 40}
	made := p.trace()
	meta := Meta{DPSize: 4, PPSize: 4, VPPSize: 2}
	want := analyse(t, &Trace{Ops: slices.Clone(made.Ops)}, meta)
	nan := math.NaN()
	for name, null := range map[string]*float64{"null": nil, "no number": &nan, "-1": func() *float64 { v := -1.0; return &v }()} {
		unless := func(n int) *float64 {
			if n < 0 {
				return null
			}
			v := float64(n)
			return &v
		}
		var rows []otherColumns
		for _, o := range made.Ops {
			rows = append(rows, otherColumns{unless(o.GlobalChunk), "x", string(o.Type), unless(o.MicroBatch), o.Duration, int64(o.Seq), o.Start,
				float64(o.Stage), unless(o.Chunk), int32(o.Step), int64(o.Rank), int64(o.DPRank)})
		}
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		path := filepath.Join(t.TempDir(), "trace.parquet")
		if err := parquet.WriteFile(path, rows, parquet.MaxRowsPerRowGroup(1000), parquet.Compression(&parquet.Snappy)); err != nil {
			t.Fatal(err)
		}
		trace, err := ReadTrace(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := analyse(t, trace, meta)
		if math.Abs(got.S-want.S) > 1e-9 || math.Abs(*got.MW-*want.MW) > 1e-9 || math.Abs(*got.MS-*want.MS) > 1e-9 || got.Cause != want.Cause ||
			got.Workers[0].Rank != want.Workers[0].Rank || len(got.Warnings) != len(want.Warnings) {
			t.Errorf("%s: S %v, M_W %v, M_S %v, %s, %+v, %q; want S %v, M_W %v, M_S %v, %s, %+v", name, got.S, *got.MW, *got.MS, got.Cause,
				got.Workers[0], got.Warnings, want.S, *want.MW, *want.MS, want.Cause, want.Workers[0])
		}
	}
}

// A recording that begins within a step, has lost a worker's part of one, and ends within
// one says of the whole steps what it would without the others.
func TestStepsThatAreNotWholeAreLeftOut(t *testing.T) {
	p := even(4, 2, 1).uneven(6)
	p.steps = []int64{1, 2, 3, 4, 5, 6}
	made := p.trace()
	rows := func(keep func(Op) bool) (rows []otherColumns) {
		for _, o := range made.Ops {
			if keep(o) {
				mb := float64(o.MicroBatch)
				rows = append(rows, otherColumns{nil, "", string(o.Type), &mb, o.Duration, int64(o.Seq), o.Start, float64(o.Stage), nil, int32(o.Step),
					int64(o.Rank), int64(o.DPRank)})
			}
		}
		return rows
	}
	read := func(keep func(Op) bool) *Trace {
		trace, err := ReadTrace(writeTrace(t, rows(keep)...))
		if err != nil {
			t.Fatal(err)
		}
		return trace
	}
	cut := func(o Op) bool {
		switch o.Step {
		case 1:
			return o.Type != ForwardCompute
		case 4:
			return o.DPRank != 0
		case 6:
			return o.Type != Optimizer && o.Type != OptimizerClip || o.DPRank != 3
		}
		return true
	}
	meta := Meta{DPSize: 4, PPSize: 2}
	got, want := analyse(t, read(cut), meta), analyse(t, read(func(o Op) bool { return o.Step != 1 && o.Step != 4 && o.Step != 6 }), meta)
	if got.S != want.S || *got.MW != *want.MW || len(got.Steps) != 3 || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0],
		"3 of 6 steps") {
		t.Errorf("S %v of %d steps, want %v; %q", got.S, len(got.Steps), want.S, got.Warnings)
	}
}
