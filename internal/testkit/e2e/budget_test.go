package e2e

import (
	"fmt"
	"math"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// budgetSeconds is how long the budget is watched: ten slices and more, of which the
// first wait for half a minute until they are weighed.
const budgetSeconds = "40"

// How many slices there are, and how long they are, depends on what else the machine
// does. So these tests are parts of one that is not parallel: they have nothing beside
// them but each other, whose jobs are recorded for a small part of the time.
func TestSlices(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"BudgetHolds":                              budgetHolds,
		"BudgetOfLongStepsCountsEachPassRight":     budgetOfLongStepsCountsEachPassRight,
		"AnchorGroupsThatExceedTheBudgetAreSliced": anchorGroupsThatExceedTheBudgetAreSliced,
		"ARecordingWithADemotionHasNoDataRace":     aRecordingWithADemotionHasNoDataRace,
	} {
		t.Run(name, test)
	}
}

func budgetHolds(t *testing.T) {
	harness.Debian.Beside(t)
	perRegion := harness.Profile[harness.Profiled](t, harness.Debian.Job("mlp.py", "--steps", "50")...).Operators
	job := harness.StartJob(t, harness.Debian.Job("mlp.py", "--seconds", budgetSeconds)...)
	tracing := harness.Attach(t, nil, job.Process.Pid)
	job.GoOn(t)
	told := job.FinishJob(t)
	r := tracing.Finish(t)
	r.Lossless(t)

	steps := told.Steps
	passesAreWholeOrWeighed(t, r, told)
	own := (job.ProcessState.UserTime() + job.ProcessState.SystemTime()).Seconds()
	t.Logf("%d steps in %.1f s, %.1f s of a CPU", steps, float64(told.End.Monotonic-told.Begin.Monotonic)/1e9, own)

	weighted := map[string]float64{}
	rows, recorded := r.Rows(t, "SELECT name, sum(weight), count(*) FROM span WHERE layer = 'op' AND %s GROUP BY ALL", r.Within(t, told)),
		int64(0)
	for _, row := range rows {
		weighted[row[0].(string)] = row[1].(float64)
		recorded += harness.Integer(t, row[2])
	}
	room := roomOfSlices(t, r, steps)
	total := 0.0
	for name, n := range perRegion {
		want := float64(n) / 50 * float64(steps)
		total += want
		if off := weighted[name]/want - 1; math.Abs(off) > room {
			t.Errorf("%s: the weights add up to %.0f, %.1f %% off the truth, %.0f", name, weighted[name], 100*off, want)
		}
		delete(weighted, name)
	}
	for name, n := range weighted {
		if n > total/1000 {
			t.Errorf("%s: the weights add up to %.0f, the job never calls it", name, n)
		}
	}
	if float64(recorded) > total/2 {
		t.Errorf("%d of %.0f calls are rows of their own: that was not in slices", recorded, total)
	}

	slices := r.Number(t, "SELECT count(*) FROM warning WHERE kind = 'slice'")
	thinned := r.Number(t, "SELECT sum(thinned) FROM probe WHERE layer = 'op'")
	// The budget is of the job's own time: beside others there is less to slice.
	if want := min(6, int64(own/10)); slices < want {
		t.Errorf("%d slices in the warning table, want %d or more", slices, want)
	}
	if hits := r.Number(t, "SELECT sum(hits) FROM probe WHERE layer = 'op'"); math.Abs(float64(hits+thinned)/total-1) > 0.05 {
		t.Errorf("%d hits and %d thinned, of %.0f calls", hits, thinned, total)
	}
	t.Logf("%d slices: %d of %.0f calls have a row, ±%.1f %%", slices, recorded, total, 100*room)
}

// roomOfSlices is how far off the weights of a recording may be, as a share. At its ends
// a slice may be wrong by a step: where few slices stand for much, as on a machine that
// gives the job little time, that is more than 5 %.
func roomOfSlices(t *testing.T, r *harness.Recording, steps int64) float64 {
	t.Helper()
	ends := 0.0
	for _, row := range r.Rows(t, "SELECT sqrt(sum(power(represented / recorded, 2))) FROM slice WHERE phase = 'training' AND recorded > 0 "+
		"GROUP BY probe_group") {
		ends = max(ends, row[0].(float64))
	}
	return max(0.05, 2*ends/float64(steps))
}

// A slice of a few long steps begins and ends somewhere in them: its forward passes
// may be three, its backward passes two.
func budgetOfLongStepsCountsEachPassRight(t *testing.T) {
	harness.PyPI.Beside(t) // its scopes tell where the optimizer begins and ends
	job := harness.StartJob(t, harness.PyPI.Job("mlp.py", "--seconds", "15", "--layers", "50", "--pause", "0.05")...)
	tracing := harness.Attach(t, nil, job.Process.Pid)
	job.GoOn(t)
	told := job.FinishJob(t)
	r := tracing.Finish(t)
	r.Lossless(t)

	if n := r.Number(t, "SELECT count(*) FROM warning WHERE kind = 'slice' AND detail LIKE '%% steps, each place in a step by how often it "+
		"was seen:%%'"); n < 1 {
		t.Error("no slice was weighed place by place")
	}
	const layers = 51
	perStep := map[string]float64{
		"aten::addmm": layers, "AddmmBackward0": layers, // forward, backward
		"aten::addcmul_": 2 * layers, "aten::log_softmax": 1, // optimizer, forward
	}
	for _, row := range r.Rows(t, `SELECT name, sum(weight), count(*) FROM span
		WHERE name IN ('aten::addmm', 'AddmmBackward0', 'aten::addcmul_', 'aten::log_softmax') AND %s GROUP BY ALL`, r.Within(t, told)) {
		want := perStep[row[0].(string)] * float64(told.Steps)
		if off := row[1].(float64)/want - 1; math.Abs(off) > 0.1 {
			t.Errorf("%s: the weights add up to %.0f, %.1f %% off the truth, %.0f", row[0], row[1], 100*off, want)
		}
		if recorded := harness.Integer(t, row[2]); float64(recorded) > want/2 {
			t.Errorf("%s: %d of %.0f calls are rows of their own: that was not in slices", row[0], recorded, want)
		}
		t.Logf("%s: %d rows stand for %.0f of %.0f", row[0], row[2], row[1], want)
		delete(perStep, row[0].(string))
	}
	if len(perStep) != 0 {
		t.Errorf("no rows of %v", perStep)
	}
}

// The backward passes are the last of the anchors that give way, so the budget is what they
// alone take, of which hits may be half: no machine has room for them then. A short step
// makes that so much that slices follow each other soon.
func anchorGroupsThatExceedTheBudgetAreSliced(t *testing.T) {
	harness.PyPI.Beside(t)
	short := harness.PyPI.Job("mlp.py", "--layers", "0", "--optimizer", "sgd")
	price := priced(t, harness.RecordReady(t, priceOf("backward"), append(short, "--steps", "5000")...))
	job := harness.StartJob(t, append(short, "--seconds", "25")...)
	tracing := harness.Attach(t, []string{"--level", "anchor", "--budget", fmt.Sprintf("%.4f%%", price)}, job.Process.Pid)
	job.GoOn(t)
	told := job.FinishJob(t)
	r := tracing.Finish(t)
	r.Lossless(t)

	if n := r.Number(t, "SELECT count(*) FROM warning WHERE kind = 'slice' AND source = 'scope'"); n != 1 {
		t.Fatalf("%d warnings say that the scopes are in slices, want 1", n)
	}
	if n := r.Number(t, "SELECT count(*) FROM warning WHERE kind = 'slice' AND detail LIKE '%% autograd nodes: a row stands for%%'"); n < 1 {
		t.Error("no slice was weighed by the autograd nodes that the job's memory tells")
	}
	room := roomOfSlices(t, r, told.Steps)
	for _, row := range r.Rows(t, `SELECT name, sum(weight), count(*) FROM span
		WHERE (layer = 'scope' OR category = 'backward') AND %s GROUP BY ALL`, r.Within(t, told)) {
		weighted, recorded := row[1].(float64), harness.Integer(t, row[2])
		if off := weighted/float64(told.Steps) - 1; math.Abs(off) > room {
			t.Errorf("%s: the weights add up to %.0f, %.1f %% off the job's %d steps, where %.1f may be", row[0], weighted, 100*off, told.Steps,
				100*room)
		}
		if recorded > told.Steps/2 {
			t.Errorf("%s: %d of %d calls are rows of their own: that was not in slices", row[0], recorded, told.Steps)
		}
		t.Logf("%s: %d rows stand for %.0f of %d", row[0], recorded, weighted, told.Steps)
	}
	if n := r.Number(t, "SELECT count(DISTINCT name) FROM span WHERE layer = 'scope'"); n < 3 {
		t.Errorf("%d scopes, want three", n)
	}
	// A scope of one slice is not the parent of what another one saw.
	if n := r.Number(t, `SELECT count(*) FROM span s JOIN span p ON p.span_id = s.parent_id
		WHERE s.ts_ns > p.ts_ns + coalesce(p.duration_ns, 1000000000)`); n != 0 {
		t.Errorf("%d spans began after the end of their parents", n)
	}
}

// priceOf are the flags of a recording that tells what every call of a group takes: nothing
// else is recorded, and all of that.
func priceOf(group string) []string {
	return []string{"--level", "anchor", "--probe", group, "--budget", "off"}
}

// priced is what its probes cost, percent of the job's time, at the price of a hit on this machine.
func priced(t *testing.T, r *harness.Recording) float64 {
	t.Helper()
	row := r.Rows(t, "SELECT coalesce(cost_probes_percent, overhead_percent), hits FROM session")[0]
	percent, hits := row[0].(float64), harness.Integer(t, row[1])
	if percent <= 0 || hits < 20 {
		t.Fatalf("%d hits took %g %% of the job's time: nothing to go by", hits, percent)
	}
	t.Logf("%d hits took %.4f %% of the job's time", hits, percent)
	return percent
}

func TestWithoutABudgetNothingIsWeighted(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		r := harness.Shared(t, harness.Unbudgeted, training(v, "mlp")...)
		if n := r.Number(t, "SELECT (SELECT count(*) FROM span WHERE weight <> 1) + (SELECT count(*) FROM memory WHERE weight <> 1) + (SELECT "+
			"count(*) FROM warning WHERE kind = 'slice')"); n != 0 {
			t.Errorf("%d rows that stand for others, or slices", n)
		}
	})
}

// passesAreWholeOrWeighed: every backward pass has a row. Where others have most of
// the CPUs it may not: a hit costs more there, the budget is of the job's own time,
// and the passes alone may be too much of it. Then one warning says that they are
// in slices, and their weights are as right as those of operators.
func passesAreWholeOrWeighed(t *testing.T, r *harness.Recording, told harness.Truth) {
	t.Helper()
	row := r.Rows(t, "SELECT count(*), coalesce(sum(weight), 0) FROM span WHERE category = 'backward' AND %s", r.Within(t, told))[0]
	rows, weighted := harness.Integer(t, row[0]), row[1].(float64)
	switch sliced := r.Number(t, "SELECT count(*) FROM warning WHERE kind = 'slice' AND source = 'backward'"); sliced {
	case 0:
		if rows != told.Steps || weighted != float64(told.Steps) {
			t.Errorf("%d backward passes that stand for %.0f, the job says %d", rows, weighted, told.Steps)
		}
	case 1:
		t.Logf("the backward passes are in slices too: %d rows stand for %.0f of %d", rows, weighted, told.Steps)
		if off := weighted/float64(told.Steps) - 1; math.Abs(off) > roomOfSlices(t, r, told.Steps) {
			t.Errorf("the weights of the backward passes add up to %.0f, %.1f %% off the job's %d steps", weighted, 100*off, told.Steps)
		}
	default:
		t.Errorf("%d warnings that the backward passes are in slices, want 1 at the most", sliced)
	}
}
