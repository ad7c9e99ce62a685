package findings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// copying is a job of so many steps of 10 ms whose forward pass begins with a copy.
func copying(steps int, copied func(step int) int64) *scripted.Job {
	j := scripted.New()
	for step := range steps {
		took := copied(step)
		j.Load(100 * us)
		j.Op("aten::contiguous", took)
		j.Op("aten::mm", 4900*us-took)
		j.Backward(4 * ms)
		j.Optimize(1 * ms)
	}
	return j
}

func always(ns int64) func(int) int64 { return func(int) int64 { return ns } }

// TestFewStepsAreAnswered: from two to seven steps the point and their range are claimed, at medium severity, and the
// same job with more steps has an interval.
func TestFewStepsAreAnswered(t *testing.T) {
	for _, n := range []int{3, 8} { // the last step of each has no period
		r := run(t, thresholds.Default(), copying(n, func(step int) int64 { return int64(1+step%2) * ms }))
		f := r.find("layout")
		if f == nil || f.HeadroomMS == nil || f.FromSteps == nil || *f.FromSteps != n-1 || f.LowMS != nil || f.HighMS != nil ||
			f.Severity != Medium {
			t.Fatalf("%d steps: %+v, not claimed %+v", n, r.Findings, r.Abstained)
		}
		if f.RangeMS[0] != 1 || f.RangeMS[1] != 2 {
			t.Errorf("%d steps: the range is %v", n, f.RangeMS)
		}
		if v := r.Verdict(); !strings.HasPrefix(v, "A step of 10.00 ms could be 1.") || !strings.Contains(v, "from ") {
			t.Error(v)
		}
	}
	f := run(t, thresholds.Default(), copying(60, always(1*ms))).find("layout")
	if f == nil || f.FromSteps != nil || f.LowMS == nil || f.Severity != High {
		t.Errorf("of many steps %+v", f)
	}
}

// TestFewStepsAreAnsweredFromThreePercentOn, and what is below that is named with its reason.
func TestFewStepsAreAnsweredFromThreePercentOn(t *testing.T) {
	syncing := func(took int64) *scripted.Job {
		j := scripted.New()
		for range 5 {
			j.Load(100 * us)
			j.Op("aten::mm", 4900*us-took)
			j.Launch(0, "kernel", "gemm", j.Now, took)
			j.Op("aten::item", 0, func() { j.Call("runtime", "sync", "cudaStreamSynchronize", took) })
			j.Backward(4 * ms)
			j.Optimize(1 * ms)
		}
		return j
	}
	r := run(t, thresholds.Default(), syncing(250*us))
	if f := r.find("sync_in_step"); f != nil || len(r.Abstained) == 0 {
		t.Errorf("2.5 %% of 4 steps are claimed: %+v, %+v", r.Findings, r.Abstained)
	}
	v := run(t, thresholds.Default(), copying(5, always(0))).Verdict()
	if v != "In 4 steps of 10.00 ms: no rule found anything that takes 3 % of it." {
		t.Error(v)
	}
	if r := run(t, thresholds.Default(), syncing(320*us)); r.find("sync_in_step") == nil {
		t.Errorf("3.2 %% of 4 steps are not claimed: %+v", r.Abstained)
	}
	if many := run(t, thresholds.Default(), copying(40, always(0))).Verdict(); !strings.HasPrefix(many, "Nothing above the noise") {
		t.Error(many)
	}
}

// TestARecordingWithoutStepsIsAnswered over all of it: by the rules, as one step, and by what the device did.
func TestARecordingWithoutStepsIsAnswered(t *testing.T) {
	once := func(kernel, between int64) *Result {
		j := scripted.New()
		for i := range 20 {
			j.Op(fmt.Sprintf("aten::op%d", i), 50*us, func() {
				j.Launch(10*us, "kernel", []string{"gemm_a", "gemm_b"}[i%2], j.Now+5*us, kernel)
			})
			j.Wait(between * int64(1+i*i%7))
		}
		j.Op("aten::contiguous", 20*ms)
		return run(t, thresholds.Default(), j)
	}
	r := once(20*us, 500*us)
	if !r.Window || r.Steps != 1 {
		t.Fatalf("%+v", r)
	}
	idle := r.find("device_idle")
	if idle == nil || idle.WindowPercent == nil || *idle.WindowPercent < 95 || idle.title() != "the device waits for the host" {
		t.Errorf("%+v", r.Findings)
	}
	if f := r.find("layout"); f == nil || *f.FromSteps != 0 || *f.HeadroomMS != 20 {
		t.Errorf("%+v", f)
	}
	if v := r.Verdict(); !strings.HasPrefix(v, "No step repeats; in the recording of ") || !strings.Contains(v, "waits for the host") {
		t.Error(v)
	}
	if busy := once(600*us, 100*us).find("device_idle"); busy != nil {
		t.Errorf("a near miss: %+v", *busy)
	}
}

// TestCopiesAndCommunicationThatNothingHidesAreFacts of a recording without steps.
func TestCopiesAndCommunicationThatNothingHidesAreFacts(t *testing.T) {
	of := func(category, name string, took int64) *Result {
		j := scripted.New()
		for i := range 5 {
			j.Launch(10*us, "kernel", "gemm", j.Now+10*us, 1*ms)
			j.Wait(1 * ms)
			j.Launch(10*us, category, name, j.Now+10*us, took*int64(1+i*i%3))
			j.Wait(took * int64(1+i*i%3))
		}
		return run(t, thresholds.Default(), j)
	}
	if f := of("copy", "Memcpy HtoD", 2*ms).find("exposed_copies"); f == nil || f.Name != "Memcpy HtoD" {
		t.Errorf("%+v", f)
	}
	if f := of("collective", "ncclDevKernel_AllReduce", 2*ms).find("exposed_communication"); f == nil || f.Severity != Info {
		t.Errorf("%+v", f)
	}
	if f := of("copy", "Memcpy HtoD", 50*us).find("exposed_copies"); f != nil {
		t.Errorf("a near miss: %+v", *f)
	}
}
