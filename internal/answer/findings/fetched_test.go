package findings

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestAFetchWaitsForADevice only where there is one: on a processor one long fetch a step
// is no finding, and a loop of them is one of what the calls cost.
func TestAFetchWaitsForADevice(t *testing.T) {
	loss := func(j *scripted.Job, _ int) {
		seen(j, "on_cpu", 2*ms)
		j.Op("aten::item", 2*ms)
	}
	row := func(j *scripted.Job, _ int) {
		for range 200 {
			seen(j, "on_cpu", 10*us)
			j.Op("aten::item", 8*us)
		}
	}
	launch := func(j *scripted.Job, _ int) { j.Launch(5*us, "kernel", "gemm", 2*us, 3*ms) }
	both := func(a, b func(*scripted.Job, int)) func(*scripted.Job, int) {
		return func(j *scripted.Job, n int) { a(j, n); b(j, n) }
	}
	for _, c := range []struct {
		name  string
		job   func(*scripted.Job, int)
		says  string // "" is no finding
		title string
	}{
		{"one fetch on a processor", loss, "", ""},
		{"one fetch, with a device", both(launch, loss), "each fetch waits for the device", "values are fetched in the step"},
		{"a loop of them on a processor", row, "200 values a step are fetched from tensors one by one. No device", "values fetched one by one"},
		{"a loop of them, with a device", both(launch, row), "each fetch waits for the device", "values are fetched in the step"},
	} {
		f := run(t, thresholds.Default(), made(c.job)).find("sync_in_step")
		switch {
		case f == nil && c.says == "":
		case f == nil || c.says == "":
			t.Errorf("%s: %+v", c.name, f)
		case !strings.Contains(f.Advice, c.says) || f.title() != c.title || f.Line == nil || *f.Line != 17:
			t.Errorf("%s: %s: %s, line %v", c.name, f.title(), f.Advice, f.Line)
		}
	}
}

// TestWhatAnOptimizerDoesIsItsOwn where no scope says so, as on PyTorch 1.13, by the code
// that it is called from: neither its fetches nor its rows of small operators are accused.
func TestWhatAnOptimizerDoesIsItsOwn(t *testing.T) {
	for file, theirs := range map[string]bool{
		"/usr/lib/python3/dist-packages/torch/optim/adamw.py":         true,
		"/usr/lib/python3/dist-packages/torch/utils/data/dataset.py":  true,
		"/usr/lib/python3/dist-packages/torch/nn/modules/module.py":   false,
		"/usr/lib/python3/dist-packages/torch/nn/utils/clip_grad_.py": false,
	} {
		r := run(t, thresholds.Default(), made(func(j *scripted.Job, _ int) {
			stack := j.Stack(scripted.Python("step", file, 301), users)
			for range 200 {
				j.Op("aten::item", 8*us).PythonStackID = stack
			}
			for range 200 {
				j.Op("aten::mul_", 8*us).PythonStackID = stack
			}
		}))
		for _, rule := range []string{"sync_in_step", "fusion"} {
			if accused := r.find(rule) != nil; accused == theirs {
				t.Errorf("calls from %s are accused by %s: %v", file, rule, accused)
			}
		}
	}
}

// TestWhatIsNotClaimedIsCalledTheSame as it would be if it were: where steps vary by more.
func TestWhatIsNotClaimedIsCalledTheSame(t *testing.T) {
	r := run(t, thresholds.Default(), made(func(j *scripted.Job, step int) {
		for range 60 {
			seen(j, "on_cpu", 10*us)
			j.Op("aten::item", 8*us)
		}
		j.Wait(int64(step) * ms)
	}))
	said := ""
	for _, a := range r.Abstained {
		said += a.Sentence() + "\n"
	}
	if r.find("sync_in_step") != nil || !strings.Contains(said, "not claimed: values fetched one by one (sync_in_step, aten::item)") {
		t.Errorf("%q", said)
	}
}
