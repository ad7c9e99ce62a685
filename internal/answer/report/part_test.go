package report

import (
	"math"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestAStepsReportIsOfThatStep in all that it says: its steps, phases, samples.
func TestAStepsReportIsOfThatStep(t *testing.T) {
	const ms = 1_000_000
	j := scripted.New()
	for step := range int64(12) {
		j.Load(ms)
		j.Sample("on_cpu", (step+1)*ms, scripted.Python("forward", "/home/me/model.py", 17))
		j.Op("aten::mm", 2*ms)
		j.Backward(3*ms + step*ms/10)
		j.Optimize(ms)
	}
	db, err := dataset.Open(scripted.Write(t, j))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	n := 5
	r, err := Build(t.Context(), db, Options{Step: &n})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Steps; s == nil || s.Count != 1 || math.Abs(s.MeanMS-7.5) > 1e-9 {
		t.Errorf("steps %+v", s)
	}
	shares := map[string]float64{}
	for _, p := range r.Phases {
		shares[p.Phase] = p.Percent
	}
	if math.Abs(shares["backward"]-100*3.5/7.5) > 1e-6 || math.Abs(shares["forward"]-100*2/7.5) > 1e-6 {
		t.Errorf("phases %v of %s", shares, r.PhasesOf)
	}
	if len(r.Threads) != 1 || r.Threads[0].CPUMS != 6 || len(r.Lines) != 1 || r.Lines[0].CPUMS == nil || *r.Lines[0].CPUMS != 6 {
		t.Errorf("threads %+v, lines %+v: the step has one sample of 6 ms", r.Threads, r.Lines)
	}
	if len(r.Operators) == 0 || r.Operators[0].Calls != 1 {
		t.Errorf("operators %+v", r.Operators)
	}
	// Afterwards the dataset is whole again.
	if r, err := Build(t.Context(), db, Options{}); err != nil || r.Steps.Count != 12 || r.Threads[0].CPUMS != 78 {
		t.Errorf("%v: %+v, %+v", err, r.Steps, r.Threads)
	}
}
