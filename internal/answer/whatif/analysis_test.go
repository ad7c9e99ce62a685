package whatif

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// cluster is a job without a pipeline: dp workers that each compute batches
// forward and backward, meet in the clip and step the optimizer. compute is the
// forward time of a micro-batch in seconds; backward takes twice that.
func cluster(dp, steps, batches int, compute func(dp, step, batch int) float64) *Trace {
	t := new(Trace)
	for step := range steps {
		latest := 0.0
		first := len(t.Ops)
		for d := range dp {
			now := 0.0
			add := func(kind OpType, seq, batch int, duration float64) {
				chunk := 0
				if !kind.compute() {
					chunk = -1
				}
				t.Ops = append(t.Ops, Op{DPRank: d, Rank: d, Step: int64(step), Type: kind, Seq: seq, Start: now,
					Duration: duration, Chunk: chunk, GlobalChunk: chunk, MicroBatch: batch})
				now += duration
			}
			for b := range batches {
				add(ForwardCompute, b, b, compute(d, step, b))
				add(BackwardCompute, b, b, 2*compute(d, step, b))
			}
			add(OptimizerClip, 0, -1, 0)
			latest = max(latest, now)
		}
		for i := first; i < len(t.Ops); i++ {
			if o := &t.Ops[i]; o.Type == OptimizerClip {
				o.Duration = latest + 0.01 - o.Start
			}
		}
	}
	return t
}

func analyse(t *testing.T, trace *Trace, m Meta) *Analysis {
	t.Helper()
	a, err := Analyse(trace, m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestOneSlowWorkerIsNamedAndExplainsEverything(t *testing.T) {
	const dp = 8
	trace := cluster(dp, 3, 4, func(d, _, _ int) float64 {
		if d == 5 {
			return 0.4
		}
		return 0.2
	})
	a := analyse(t, trace, Meta{DPSize: dp, PPSize: 1})
	// 4 batches of 3 × 0.4 s; with all at the mean of 0.225 s. The transfer of the clip is 0.01 s.
	want := (4*3*0.4 + 0.01) / (4*3*0.225 + 0.01)
	if math.Abs(a.S-want) > 1e-9 {
		t.Errorf("S %v, want %v", a.S, want)
	}
	// One worker without a pipeline: S_w is the lesser of its dp_rank's and of the whole stage's.
	if w := a.Workers[0]; w.DPRank != 5 || w.Rank != 5 || math.Abs(w.S-want) > 1e-9 {
		t.Errorf("slowest worker %+v", w)
	}
	if a.MW == nil || math.Abs(*a.MW-1) > 0.2 || a.Cause != SlowWorker || a.Replaced != 1 {
		t.Errorf("M_W %v, cause %s, replaced %d", *a.MW, a.Cause, a.Replaced)
	}
	if a.MS != nil {
		t.Errorf("M_S %v without a pipeline", *a.MS)
	}
	if !strings.Contains(a.Verdict(), "rank 5") {
		t.Errorf("verdict: %s", a.Verdict())
	}
}

func TestEvenJobHasNoWorkersToAskAbout(t *testing.T) {
	a := analyse(t, cluster(4, 2, 4, func(int, int, int) float64 { return 0.1 }), Meta{DPSize: 4, PPSize: 1})
	if math.Abs(a.S-1) > 1e-9 || a.MW != nil || a.MS != nil || a.Cause != Unknown || a.Correlation != nil {
		t.Errorf("S %v, M_W %v, M_S %v, cause %s, correlation %v", a.S, a.MW, a.MS, a.Cause, a.Correlation)
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"M_W":null,"M_S":null`) {
		t.Errorf("JSON: %s", text)
	}
	if !strings.Contains(a.Verdict(), "even") {
		t.Errorf("verdict: %s", a.Verdict())
	}
}

func TestAmongEqualWorkersTheLowerRankIsSlowest(t *testing.T) {
	a := &Analysis{Workers: []WorkerSlowdown{
		{DPRank: 1, S: 2}, {DPRank: 0, Stage: 1, S: 2}, {DPRank: 0, S: 2}, {DPRank: 2, S: 3}}}
	a.sort()
	for i, want := range [][2]int{{2, 0}, {0, 0}, {0, 1}, {1, 0}} {
		if w := a.Workers[i]; w.DPRank != want[0] || w.Stage != want[1] {
			t.Errorf("place %d: dp_rank %d stage %d, want %v", i, w.DPRank, w.Stage, want)
		}
	}
}

// Lengths differ from batch to batch and worker to worker; no worker is slow by itself.
func TestMicroBatchesOfDifferentLengthAreAnImbalanceOfSequences(t *testing.T) {
	trace := cluster(40, 2, 6, func(d, step, b int) float64 { return 0.1 + 0.05*float64((d*7+step*3+b*5)%11) })
	a := analyse(t, trace, Meta{DPSize: 40, PPSize: 1})
	if a.Correlation == nil || *a.Correlation < 0.999 || a.Cause != SequenceImbalance || a.Replaced != 2 {
		t.Errorf("correlation %v, cause %s, M_W %v, replaced %d", a.Correlation, a.Cause, *a.MW, a.Replaced)
	}
}

func TestCausesAreTriedInTheirOrder(t *testing.T) {
	p := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		mw, r, ms *float64
		want      Cause
	}{
		{p(0.5), p(1), p(1), SlowWorker},
		{p(0.49), p(0.9), p(1), SequenceImbalance},
		{p(0.49), p(0.89), p(0.5), SlowStage},
		{p(0.49), p(0.89), p(0.49), Unknown},
		{nil, nil, nil, Unknown},
	} {
		if got := (&Analysis{MW: c.mw, MS: c.ms, Correlation: c.r}).cause(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// A member that ended before the last one began did not take part: 10 ms and
// more are another clock's and count as no time, less is kept.
func TestTransferThatEndedBeforeItsPeerBegan(t *testing.T) {
	for _, c := range []struct{ early, want float64 }{{0.009, -0.009}, {0.010, 0}, {0.5, 0}} {
		j := &job{ops: []Op{
			{Type: OptimizerClip, Start: 0, Duration: 1},
			{DPRank: 1, Type: OptimizerClip, Start: 1 + c.early, Duration: 2},
		}}
		if own := j.ownTimes([][]int{{0, 1}}); math.Abs(own[0]-c.want) > 1e-12 || math.Abs(own[1]-2) > 1e-12 {
			t.Errorf("%v s before: own times %v, want %v and 2", c.early, own, c.want)
		}
	}
}

func TestIdealIsTheMeanOfWorkAndTheMedianOfTransfers(t *testing.T) {
	j := &job{}
	for _, kind := range []OpType{ForwardCompute, GarbageCollection, Optimizer, LayernormAllReduce, ForwardSend} {
		for i, d := range []float64{1, 2, 9} {
			j.ops = append(j.ops, Op{Type: kind, Seq: i, Duration: d})
		}
	}
	j.times.Own = j.ownTimes(nil)
	for i, ideal := range j.idealTimes() {
		want := 4.0
		if t := j.ops[i].Type; t == LayernormAllReduce || t == ForwardSend {
			want = 2
		}
		if ideal != want {
			t.Errorf("%s: ideal %v, want %v", j.ops[i].Type, ideal, want)
		}
	}
}

func TestDescriptionOfAnotherJobIsRefused(t *testing.T) {
	trace := cluster(4, 1, 2, func(int, int, int) float64 { return 0.1 })
	for _, m := range []Meta{{DPSize: 8, PPSize: 1}, {DPSize: 4, PPSize: 2}} {
		if _, err := Analyse(trace, m); err == nil || !strings.Contains(err.Error(), "another job") {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

func TestPictureShowsTheSlowWorker(t *testing.T) {
	trace := cluster(4, 2, 4, func(d, _, _ int) float64 { return 0.1 + 0.1*float64(d/3) })
	var text strings.Builder
	if err := analyse(t, trace, Meta{DPSize: 4, PPSize: 1}).WriteText(&text); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text.String(), "\n")
	if !strings.HasPrefix(lines[0], "A step takes") {
		t.Errorf("the first line is no verdict: %s", lines[0])
	}
	for _, want := range []string{"        3  ██", "        0  ··", "backward-compute"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
}
