package timeline_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

func loopsOf(t *testing.T, jobs ...*scripted.Job) []timeline.Thread {
	t.Helper()
	db, err := dataset.Open(scripted.Write(t, jobs...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	threads, err := timeline.Steps(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return threads
}

const tenMicros = int64(10_000)

// engine is a thread that runs iterations with ranges of these names, and a second thread that does something else.
func engine(n int, names [3]string, beside func(j *scripted.Job)) *scripted.Job {
	j := scripted.New()
	begin := j.Now
	for i := range n {
		j.Call("scope", "", names[0], tenMicros)
		j.Call("scope", "", fmt.Sprintf(names[1], i%5, 10*i), tenMicros, func() {
			for range 4 {
				j.Op("aten::linear", 20*tenMicros, func() { j.Launch(tenMicros, "kernel", "gemm", j.Now, 5*tenMicros) })
			}
		})
		j.Call("scope", "", names[2], 3*tenMicros)
	}
	if beside != nil {
		j.TID, j.Now = 7, begin
		beside(j)
		j.TID = 100
	}
	return j
}

// TestIterationsOfEnginesAreSteps, whatever they call their parts, and whatever else a second thread repeats.
func TestIterationsOfEnginesAreSteps(t *testing.T) {
	for _, names := range [][3]string{
		{"schedule", "execute_context_%d(%d)", "sample"},
		{"get_next_batch", "forward bs=%d n=%d", "process_output"},
		{"planner", "model_run[%d/%d]", "pick_tokens"},
	} {
		for _, beside := range []func(*scripted.Job){nil, func(j *scripted.Job) {
			for i := range 150 {
				j.Call("scope", "", fmt.Sprintf("step %d", i), 10*tenMicros)
				j.Wait(tenMicros)
			}
		}} {
			threads := loopsOf(t, engine(30, names, beside))
			if len(threads) != 1 || threads[0].TID != 100 || len(threads[0].Steps) != 30 || threads[0].Trains {
				t.Errorf("%v: %d threads, %+v", names, len(threads), threads)
				continue
			}
			if s := threads[0].Steps[3]; s.Method != steps.Annotated || s.Period < 150*tenMicros || s.Period > 200*tenMicros {
				t.Errorf("%v: %+v", names, s)
			}
		}
	}
}

// TestALoopWithoutNamesIsFoundByItsCalls, and calls in random order, or steps of random length with random calls, are none.
func TestALoopWithoutNamesIsFoundByItsCalls(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	names := []string{"aten::embedding", "aten::linear", "aten::gelu", "aten::linear", "aten::softmax", "aten::argmax"}
	made := func(of func(i int) []string) *scripted.Job {
		j := scripted.New()
		for i := range 60 {
			for _, name := range of(i) {
				j.Op(name, 2*tenMicros)
			}
			j.Wait(tenMicros * int64(1+r.IntN(3)))
		}
		return j
	}
	threads := loopsOf(t, made(func(int) []string { return names }))
	if len(threads) != 1 || len(threads[0].Steps) != 60 || threads[0].Unit != "decoding step" || threads[0].Loop == nil {
		t.Errorf("%+v", threads)
	}
	random := loopsOf(t, made(func(int) (all []string) {
		for range 1 + r.IntN(9) {
			all = append(all, names[r.IntN(len(names)-1)])
		}
		return all
	}))
	if len(random) != 0 {
		t.Errorf("random calls: %+v", random[0].Loop)
	}
}

// TestTheInnermostFunctionOfTheUsersNamesALoop that has no other name.
func TestTheInnermostFunctionOfTheUsersNamesALoop(t *testing.T) {
	j := scripted.New()
	for i := range 20 {
		stack := j.Stack(scripted.Python("forward", "/opt/venv/lib/python3.11/site-packages/net/model.py", int32(10+i%2)),
			scripted.Python("answer", "/srv/app/server.py", 17), scripted.Python("<module>", "/srv/app/server.py", 40))
		for _, name := range []string{"aten::linear", "aten::relu", "aten::sigmoid"} {
			j.Op(name, 2*tenMicros).PythonStackID = stack
		}
		j.Wait(tenMicros)
	}
	threads := loopsOf(t, j)
	if len(threads) != 1 || len(threads[0].Steps) != 20 || threads[0].Unit != "iteration in answer (server.py)" {
		t.Errorf("%+v", threads)
	}
	if plural := timeline.Plural(threads[0].Unit); plural != "iterations in answer (server.py)" {
		t.Error(plural)
	}
}
