package timeline

import (
	"context"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

func open(t *testing.T, dir string) *dataset.DB {
	t.Helper()
	db, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func find(t *testing.T, db *dataset.DB) []Thread {
	t.Helper()
	threads, err := Steps(context.Background(), db)
	if err != nil {
		t.Fatal(err)
	}
	return threads
}

// iterator is what a new iterator of a loader does.
func iterator(j *scripted.Job) {
	for _, name := range []string{"aten::empty", "aten::random_", "aten::item"} {
		j.Op(name, 100)
	}
}

// train is a step of 10 µs: 1 loading, 4 of five operators, 3 backward, 1 optimizer, 1 between.
func train(j *scripted.Job) {
	j.Load(1000)
	for range 5 {
		j.Op("aten::mm", 800)
	}
	j.Backward(3000)
	j.Optimize(1000)
	j.Wait(1000)
}

func evaluate(j *scripted.Job) {
	j.Load(1000)
	for range 5 {
		j.Op("aten::mm", 800)
	}
}

func TestEpochsAndEvaluationsAreCountedWithoutTheEndsOfTheirLoaders(t *testing.T) {
	j := scripted.New()
	for range 3 {
		iterator(j)
		for range 12 {
			train(j)
		}
		j.Load(10)
		iterator(j)
		for range 7 {
			evaluate(j)
		}
		j.Load(10)
	}
	threads := find(t, open(t, scripted.Write(t, j)))
	if len(threads) != 1 {
		t.Fatalf("%d threads", len(threads))
	}
	p := Summarize(threads).Processes[0]
	if p.Steps.Count != 36 || p.Evaluate != 21 || p.Other != 6 || p.Sequence != "LBO" {
		t.Errorf("%d training and %d evaluation steps of %q, %d others", p.Steps.Count, p.Evaluate, p.Sequence, p.Other)
	}
	if p.Steps.MedianMS == nil || *p.Steps.MedianMS != 0.010 {
		t.Errorf("median %v ms, want 0.010", *p.Steps.MedianMS)
	}
}

// A loop that only evaluates: each epoch's end is no batch, the recording's neither.
func TestInferenceCountsItsBatches(t *testing.T) {
	j := scripted.New()
	for range 3 {
		iterator(j)
		for range 16 {
			evaluate(j)
		}
		j.Load(10)
	}
	p := Summarize(find(t, open(t, scripted.Write(t, j)))).Processes[0]
	if p.Steps.Kind != steps.Evaluate || p.Steps.Count != 48 || p.Other != 3 {
		t.Errorf("%d steps of kind %s, %d others", p.Steps.Count, p.Steps.Kind, p.Other)
	}
}

func TestStepsBetweenSlicesAreNotWhole(t *testing.T) {
	j := scripted.New()
	for i := range 30 {
		if i < 20 {
			train(j)
			continue
		}
		j.Load(1000) // no operators are recorded from here on
		j.Wait(4000)
		j.Backward(3000)
		j.Optimize(1000)
		j.Wait(1000)
	}
	p := Summarize(find(t, open(t, scripted.Write(t, j)))).Processes[0]
	if p.Steps.Count != 30 || p.Whole != 20 {
		t.Errorf("%d of %d steps are whole, want 20 of 30", p.Whole, p.Steps.Count)
	}
}

func TestMarksOfTheJobAreItsSteps(t *testing.T) {
	j := scripted.New()
	for range 5 {
		j.Call("scope", "", "ProfilerStep#1", 500, func() { train(j) })
	}
	p := Summarize(find(t, open(t, scripted.Write(t, j)))).Processes[0]
	if p.Steps.Count != 5 || p.Method != string(steps.Annotated) || *p.Steps.MeanMS != 0.011 {
		t.Errorf("%d steps by %s of %v ms", p.Steps.Count, p.Method, *p.Steps.MeanMS)
	}
}

func TestEachRankHasItsSteps(t *testing.T) {
	var jobs []*scripted.Job
	for rank := range int32(2) {
		j := scripted.New()
		j.PID, j.TID = 100+rank, 100+rank
		for range 20 {
			train(j)
		}
		jobs = append(jobs, j)
	}
	summary := Summarize(find(t, open(t, scripted.Write(t, jobs...))))
	if len(summary.Processes) != 2 || summary.Processes[1].Rank == nil || *summary.Processes[1].Rank != 1 {
		t.Fatalf("%+v", summary)
	}
	var text strings.Builder
	if err := summary.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text.String(), "rank 0 (process 100): 20 training steps of 10.0 µs") {
		t.Errorf("text:\n%s", text.String())
	}
}

func TestDatasetWithoutStepsSaysSo(t *testing.T) {
	j := scripted.New()
	j.Op("aten::mm", 10)
	var text strings.Builder
	summary := Summarize(find(t, open(t, scripted.Write(t, j))))
	if err := summary.WriteText(&text); err != nil || !strings.HasPrefix(text.String(), "No steps") {
		t.Errorf("%v\n%s", err, text.String())
	}
}
