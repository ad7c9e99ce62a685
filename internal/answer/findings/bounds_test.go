package findings

import (
	"math"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// live is a job as a recording of the host has it: a kernel is handed over, its result fetched,
// and whether the wait of 8 ms was for the kernel or for something else nobody saw. 5 ms of the
// host's follow.
func live(least int64) *scripted.Job {
	j := scripted.New()
	for range 40 {
		j.Load(100 * us)
		handed := j.Now
		var launch = j.Call("runtime", "launch", "gemm", 10*us)
		j.Op("aten::item", 10*us, func() { j.Call("runtime", "sync", "cudaStreamSynchronize", 8*ms) })
		j.Bound(launch, least, j.Now-10*us-handed)
		j.Backward(4 * ms)
		j.Optimize(1 * ms)
		j.Wait(100 * us)
	}
	return j
}

func TestHeadroomOfALiveRecordingIsToldForBothEndsOfItsBounds(t *testing.T) {
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-6 }
	r := run(t, thresholds.Default(), live(0))
	f := r.find("sync_in_step")
	if f == nil || f.HeadroomLoMS == nil {
		t.Fatalf("%+v, not claimed %+v", r.Findings, r.Abstained)
	}
	// If the wait was the host's own, all of it goes. If it was for the kernel, that runs beside
	// the 5.1 ms of the host that follow, and the step ends with it: 5.1 ms less, and the calls.
	if !near(*f.HeadroomHiMS, 8.02) || !near(*f.HeadroomLoMS, 5.11) || *f.HeadroomMS != *f.HeadroomLoMS {
		t.Errorf("headroom %v, %v to %v", *f.HeadroomMS, *f.HeadroomLoMS, *f.HeadroomHiMS)
	}
	if *f.LowMS > *f.HeadroomLoMS || *f.HighMS < *f.HeadroomHiMS {
		t.Errorf("the interval from %v to %v does not hold both ends", *f.LowMS, *f.HighMS)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "by the bounds of device times 5.11 ms to 8.02 ms") {
		t.Errorf("%v\n%s", err, text.String())
	}
	// The same job in a trace with points in time has no such ends.
	if f := run(t, thresholds.Default(), onDevice(100, nil)).find("sync_in_step"); f == nil || f.HeadroomLoMS != nil {
		t.Errorf("%+v", f)
	}
}

// What is so with one end of the bounds alone is not claimed: many short kernels of one
// operator are short only if they took the least time.
func TestWhatIsSoAtOneEndAloneIsNotClaimed(t *testing.T) {
	short := func(most int64) *Result {
		j := scripted.New()
		for range 40 {
			j.Load(100 * us)
			j.Op("aten::foreach", 10*us, func() {
				for range 12 {
					j.Bound(j.Call("runtime", "launch", "small", 10*us), 0, most)
				}
			})
			j.Call("runtime", "sync", "cudaDeviceSynchronize", 3*ms)
			j.Backward(1 * ms)
			j.Optimize(1 * ms)
			j.Wait(100 * us)
		}
		return run(t, thresholds.Default(), j)
	}
	r := short(2 * ms)
	if f := r.find("fusion"); f != nil {
		t.Errorf("claimed: %+v", *f)
	}
	said := false
	for _, a := range r.Abstained {
		said = said || a.Rule == "fusion" && strings.Contains(a.Reason, "one end of the bounds")
	}
	if !said {
		t.Errorf("not claimed: %+v", r.Abstained)
	}
}
