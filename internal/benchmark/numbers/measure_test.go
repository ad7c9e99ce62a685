package numbers

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const ms = 1_000_000

// job is epochs of twelve steps of 10 ms, of which the training thread loads for loading ms; between epochs it
// evaluates for 50 ms.
func job(epochs int, loading int64, collective int64) *scripted.Job {
	j := scripted.New()
	for range epochs {
		for range 12 {
			j.Load(loading*ms/2, func() {
				j.Op("aten::stack", 0).Detail = &event.Detail{Shape: &event.Shape{Dims: "[[8],[]]", Source: "measured"}}
			})
			j.Op("aten::mm", (8-loading-collective)*ms)
			if collective > 0 {
				j.Call("collective", "collective", "gloo::allreduce", collective*ms)
			}
			j.Backward(1 * ms)
			j.Optimize(1 * ms)
		}
		j.Load(ms / 10)
		j.Wait(50 * ms)
	}
	return j
}

func measure(t *testing.T, j *scripted.Job, o Options, beside ...*scripted.Job) []Number {
	t.Helper()
	db, err := dataset.Open(scripted.Write(t, append([]*scripted.Job{j}, beside...)...))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all, _, err := Measure(context.Background(), db, o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantValues checks values to a percent.
func wantValues(t *testing.T, all []Number, want map[string]float64) {
	t.Helper()
	for name, w := range want {
		n, ok := Find(all, name)
		switch {
		case !ok || n.Value == nil:
			t.Errorf("%s is not available: %s; want %v", name, n.Why, w)
		case math.Abs(*n.Value-w) > 0.01*math.Abs(w)+1e-9:
			t.Errorf("%s is %v, want %v", name, *n.Value, w)
		}
	}
}

func TestTheNumbersOfAJobThatSaysNothing(t *testing.T) {
	all := measure(t, job(3, 2, 0), Options{Output: "epoch 1 loss: 2.5\nepoch 2 Loss = 1.25e0\n"})
	wantValues(t, all, map[string]float64{
		StepTime: 10, StepsPerSecond: 100, Batch: 8, Throughput: 800, ComputeThroughput: 1000, ExposedIO: 2,
		EpochTime: 0.1201, Communication: 0, Exposed: 0, Loss: 1.25, LossChange: -1.25,
	})
	for _, name := range []string{Power, EnergyPerSample, DeviceUtilisation, HostMemory, DeviceMemory, CopyTime} {
		if n, _ := Find(all, name); n.Value != nil || n.Why == "" {
			t.Errorf("%s: %v, %q: want no value and a reason", name, n.Value, n.Why)
		}
	}
	if n, _ := Find(all, StepTime); n.Lo == nil || *n.Lo > 10 || *n.Hi < 10 || n.Of < 30 {
		t.Errorf("step time without an interval: %+v", n)
	}
	if len(all) != len(Kinds()) {
		t.Errorf("%d numbers of %d", len(all), len(Kinds()))
	}
}

// The loader's calls are seen from the third step of the second pass on: what was before has none, and no pass's length.
func TestAPassCountsIfItWasSeenWhole(t *testing.T) {
	of := func(draws ...string) (all []timeline.Step) {
		at := int64(0)
		for _, anchors := range draws {
			kind, took := steps.Train, int64(1e9)
			if anchors == "L" {
				kind, took = steps.Other, 1e8
			}
			all = append(all, timeline.Step{Step: steps.Step{Kind: kind, Begin: at, End: at + took, Period: took, Anchors: anchors}})
			at += took
		}
		return all
	}
	for _, c := range []struct {
		draws []string
		want  []float64
	}{
		{[]string{"LBO", "LBO", "L", "LBO", "LBO", "L"}, []float64{2.1, 2.1}},
		{[]string{"BO", "BO", "BO", "LBO", "L", "LBO", "LBO", "L"}, []float64{2.1}},
		{[]string{"LBO", "L", "LBO", "LBO", "L"}, []float64{2.1}}, // the first step went by unseen
		{[]string{"LBO", "LBO", "L", "LBO"}, []float64{2.1}},
		{[]string{"LBO", "LBO"}, nil},
	} {
		got := epochs(of(c.draws...))
		same := len(got) == len(c.want)
		for i := range c.want {
			same = same && math.Abs(got[i]-c.want[i]) < 1e-9
		}
		if !same {
			t.Errorf("%q: %v, want %v", c.draws, got, c.want)
		}
	}
}

// A slower loader lowers what the job does and not what it could do.
func TestALoaderBoundJobKeepsItsComputeThroughput(t *testing.T) {
	bound := job(3, 7, 0)
	all := measure(t, bound, Options{})
	wantValues(t, all, map[string]float64{ExposedIO: 7, Throughput: 800, ComputeThroughput: 800 * 10.0 / 3})
}

func TestCommunicationIsToldFromComputation(t *testing.T) {
	all := measure(t, job(3, 1, 3), Options{Batch: 16})
	wantValues(t, all, map[string]float64{Communication: 3, Exposed: 3, ExposedIO: 1, Throughput: 1600})
}

func TestTheTrainingProcessCountsForAllRanks(t *testing.T) {
	j := job(2, 1, 1)
	j.World = 4
	wantValues(t, measure(t, j, Options{}), map[string]float64{Batch: 32, Throughput: 3200})
}

func TestWithoutALoaderItsEndsAreAskedFor(t *testing.T) {
	j := scripted.New()
	for range 30 {
		j.Op("aten::mm", 8*ms)
		j.Backward(1 * ms)
		j.Optimize(1 * ms)
	}
	all := measure(t, j, Options{})
	for name, want := range map[string]string{EpochTime: "--steps-per-epoch", Throughput: "--batch", Loss: "--loss"} {
		if n, _ := Find(all, name); n.Value != nil || !strings.Contains(n.Why, want) {
			t.Errorf("%s: %v, %q: want %s in the reason", name, n.Value, n.Why, want)
		}
	}
	wantValues(t, measure(t, j, Options{StepsPerEpoch: 50}), map[string]float64{EpochTime: 0.5, StepTime: 10})
}

func TestARecordingWithoutStepsSaysSo(t *testing.T) {
	j := scripted.New()
	j.Op("aten::mm", ms)
	all := measure(t, j, Options{})
	for _, name := range []string{StepTime, Throughput, EpochTime, ExposedIO, Communication} {
		if n, _ := Find(all, name); n.Value != nil || n.Why == "" {
			t.Errorf("%s: %v, %q", name, n.Value, n.Why)
		}
	}
}

// Of 24 steps the training thread loads 2 ms in each, all of it on the CPU below the loader's code, half of that in reads;
// a worker decodes as long again, and waits for its disk.
func TestStorageAndDecodingAreOfTheLoadersThreads(t *testing.T) {
	j, worker := scripted.New(), scripted.New()
	worker.PID, worker.TID, worker.Parent, worker.Role = 200, 200, 100, "dataloader_worker"
	loader := scripted.Python("fetch", "/lib/torch/utils/data/_utils/fetch.py", 1)
	for range 24 {
		worker.Now = j.Now
		worker.ReadFile(4096, 3*ms, 3*ms)
		worker.Sample("on_cpu", 2*ms, loader)
		j.ReadFile(4096, 1*ms, 0)
		j.Sample("on_cpu", 2*ms, loader)
		j.Load(2 * ms)
		j.Sample("on_cpu", 6*ms, scripted.Python("forward", "/home/me/train.py", 3))
		j.Op("aten::mm", 6*ms)
		j.Backward(1 * ms)
		j.Optimize(1 * ms)
	}
	all := measure(t, j, Options{}, worker)
	settled, _ := Find(all, StepTime)
	// The last step has no period: its rows lie behind the window but for what begins at its end.
	near := func(name string, want float64) {
		t.Helper()
		n, _ := Find(all, name)
		if n.Value == nil || math.Abs(*n.Value-want) > want*1.5/float64(settled.Of) {
			t.Errorf("%s is %v (%s), want %v", name, n.Value, n.Why, want)
		}
	}
	near(Storage, 4)
	near(DecodeTime, 3)
	near(IO, 7)
	wantValues(t, all, map[string]float64{ExposedIO: 2})
}

func TestRepeatsHaveTheirOwnInterval(t *testing.T) {
	run := func(v float64) []Number {
		return []Number{measured(StepTime, v, 100, "steps"), missing(Power, "no meter")}
	}
	all := OverRepeats([][]Number{run(9), run(10), run(11)})
	n := all[0]
	// t(0.975, 2) = 4.303; the standard error is 1/√3.
	if *n.Value != 10 || math.Abs(*n.Hi-10-4.303/math.Sqrt(3)) > 1e-3 || n.Of != 3 || n.From != "runs" {
		t.Errorf("%+v", n)
	}
	if p := all[1]; p.Value != nil || p.Why != "no meter" {
		t.Errorf("%+v", p)
	}
	half := OverRepeats([][]Number{run(9), {missing(StepTime, "it crashed")}})
	if n := half[0]; n.Of != 1 || n.Lo != nil || !strings.Contains(n.Why, "of 1 of 2 runs") || !strings.Contains(n.Why, "it crashed") {
		t.Errorf("%+v", n)
	}
	if p, ok := Spread([][]Number{run(9), run(11)}, StepTime); !ok || math.Abs(p-100*math.Sqrt2/10) > 1e-9 {
		t.Errorf("spread %v", p)
	}
}

func TestTheUsualLossIsFound(t *testing.T) {
	for text, want := range map[string]float64{
		"loss: 2.31": 2.31, "Loss 2.31": 2.31, "{'loss': 0.5, 'epoch': 3}": 0.5, "step 3 loss=1e-3 lr 0.1": 1e-3, "train_loss 4\nloss 5": 5,
	} {
		m := measuring{options: Options{Output: text}}
		if err := m.losses(); err != nil {
			t.Fatal(err)
		}
		if n, _ := Find(m.found, Loss); n.Value == nil || *n.Value != want {
			t.Errorf("%q: %v, want %v", text, n.Value, want)
		}
	}
}
