package analysis_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/analysis"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

const ms = int64(1_000_000)

// training is a loop of 40 steps of 10 ms, of which softmax takes so much at model.py:17,
// and as much again in an operator inside it.
func training(softmax int64) *scripted.Job {
	j := scripted.New()
	for step := range 40 {
		j.Load(ms / 10)
		j.Op("aten::mm", 8*ms-2*softmax).SequenceNumber = int64(2 * step)
		if softmax > 0 {
			j.Sample("on_cpu", softmax, scripted.Python("forward", "/home/me/model.py", 17))
			j.Op("aten::softmax", softmax/2, func() { j.Op("aten::_softmax", softmax) })
		}
		j.Backward(ms/10, func() { j.Node("MmBackward0", int64(2*step), ms) })
		j.Optimize(ms / 2)
		j.Wait(ms / 4)
	}
	return j
}

func open(t *testing.T, job *scripted.Job) *analysis.Recording {
	t.Helper()
	r, err := analysis.Open(context.Background(), scripted.Write(t, job))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// TestARuleOfSomebodyElsesIsJudgedAsOurs: three quarters of 4 ms, at the line that the calls come from.
func TestARuleOfSomebodyElsesIsJudgedAsOurs(t *testing.T) {
	r := open(t, training(2*ms))
	result, err := analysis.Run(context.Background(), r, analysis.Options{Rules: []analysis.Rule{softmax{}}})
	if err != nil || len(result.Findings) != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	f := result.Findings[0]
	if math.Abs(*f.HeadroomMS-3) > 0.01 || f.Severity != "high" || *f.File != "/home/me/model.py" || *f.Line != 17 ||
		f.Name != "aten::softmax" {
		t.Errorf("%+v: %v ms at %v:%v", f, *f.HeadroomMS, *f.File, *f.Line)
	}
	rows, err := r.Query(context.Background(), f.EvidenceSQL)
	if err != nil || !rows.Next() {
		t.Errorf("the evidence has no row: %v", err)
	}
	rows.Close()
	var text, machine bytes.Buffer
	if err := errors.Join(result.WriteText(&text), result.WriteJSON(&machine)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "attention is written by hand (attention_by_hand, high)") {
		t.Error(text.String())
	}
	var list []map[string]any
	if err := json.Unmarshal(machine.Bytes(), &list); err != nil || len(list) != 1 || list[0]["rule"] != "attention_by_hand" {
		t.Errorf("%v: %s", err, machine.String())
	}
}

func TestBuiltInRulesAreAskedBeside(t *testing.T) {
	r := open(t, training(2*ms))
	result, err := analysis.Run(context.Background(), r, analysis.Options{Rules: []analysis.Rule{softmax{}}, BuiltIn: true})
	if err != nil || result.Findings[0].Rule != "attention_by_hand" || len(result.Findings) < 2 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	result, err := analysis.Run(context.Background(), open(t, training(ms/100)), analysis.Options{Rules: []analysis.Rule{softmax{}}})
	if err != nil || len(result.Findings)+len(result.Abstained) != 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

// rule is made of a function.
type rule func(context.Context, *analysis.Recording) ([]analysis.Accusation, error)

func (rule) Name() string { return "made" }
func (f rule) Look(ctx context.Context, r *analysis.Recording) ([]analysis.Accusation, error) {
	return f(ctx, r)
}

// TestSpansOutsideOfStepsClaimNothing: there is nothing to replay.
func TestSpansOutsideOfStepsClaimNothing(t *testing.T) {
	accuse := func(spans ...int64) *analysis.Result {
		result, err := analysis.Run(context.Background(), open(t, training(2*ms)), analysis.Options{Rules: []analysis.Rule{
			rule(func(context.Context, *analysis.Recording) ([]analysis.Accusation, error) {
				return []analysis.Accusation{{Title: "something", Name: "it", Advice: "Do.", EvidenceSQL: "SELECT 1", Spans: spans}}, nil
			})}})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	if r := accuse(1 << 40); len(r.Findings) != 0 || len(r.Abstained) != 1 || len(r.Untold) == 0 {
		t.Errorf("%+v", r)
	}
	if r := accuse(); len(r.Findings) != 1 || r.Findings[0].HeadroomMS != nil || r.Findings[0].Severity != "info" {
		t.Errorf("without spans: %+v", r)
	}
}

func TestErrorsComeBack(t *testing.T) {
	ctx := context.Background()
	if _, err := analysis.Open(ctx, t.TempDir()); !errors.Is(err, analysis.ErrNotDataset) {
		t.Error(err)
	}
	if _, err := analysis.Open(ctx, "/nowhere/at/all"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	broken := errors.New("broken")
	r := open(t, training(ms))
	_, err := analysis.Run(ctx, r,
		analysis.Options{Rules: []analysis.Rule{rule(func(context.Context, *analysis.Recording) ([]analysis.Accusation, error) {
			return nil, broken
		})}})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	none := scripted.New()
	none.Op("aten::mm", ms)
	still := open(t, none)
	result, err := analysis.Run(ctx, still, analysis.Options{Rules: []analysis.Rule{softmax{}}})
	if _, noSteps := still.PID(); err != nil || len(result.Untold) == 0 || !errors.Is(noSteps, analysis.ErrNoSteps) {
		t.Errorf("%+v, %v, %v", result, err, noSteps)
	}
}

// TestContextsAddUp: what is below a context is in its total, and leads back to it.
func TestContextsAddUp(t *testing.T) {
	r := open(t, training(2*ms))
	root, err := r.Contexts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	sum, seen := 0.0, 0
	for c := range root.All(analysis.HostNS) {
		sum += c.Own(analysis.HostNS).Sum
		if path := c.Path(); len(path) > 0 && path[len(path)-1] != c {
			t.Errorf("the path of %s ends elsewhere", c.Name)
		}
		if c.Name == "aten::softmax" {
			seen++
			if own, total := c.Own(analysis.HostNS), c.Total(analysis.HostNS); own.Sum != 40*2e6 || own.Count != 40 || own.Mean != 2e6 ||
				own.Stddev != 0 || total != 2*own.Sum {
				t.Errorf("%+v, in all %v", own, total)
			}
		}
	}
	if seen == 0 || math.Abs(sum-root.Total(analysis.HostNS)) > 1 {
		t.Errorf("%d contexts; %v of %v", seen, sum, root.Total(analysis.HostNS))
	}
	for c := range root.All(analysis.HostNS) {
		if c.Kind != analysis.Root {
			break // and the walk ends
		}
	}
	if all := r.Steps(); len(all) != 40 || !all[3].Whole || all[3].EndNS <= all[3].BeginNS {
		t.Errorf("%d steps", len(all))
	}
	if ids, err := r.Int64s(context.Background(), "SELECT span_id, name FROM span WHERE name = 'aten::softmax'"); err != nil ||
		len(ids) != 40 {
		t.Errorf("%d ids, %v", len(ids), err)
	}
}
