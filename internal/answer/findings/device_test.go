package findings

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// onDevice is a job of 40 steps that launches, in each, a kernel of 8 ms, waits for it,
// and does what extra does besides.
func onDevice(pid int32, extra func(j *scripted.Job, step int)) *scripted.Job {
	j := scripted.New()
	j.PID, j.TID = pid, pid
	for step := range 40 {
		j.Load(100 * us)
		if extra != nil {
			extra(j, step)
		}
		j.Launch(10*us, "kernel", "gemm", j.Now+15*us, 8*ms)
		j.Call("runtime", "sync", "cudaDeviceSynchronize", 8*ms+10*us)
		j.Backward(1 * ms)
		j.Optimize(1 * ms)
		j.Wait(100 * us)
	}
	return j
}

// copies: each of bytes, taking took on the device, waited for.
func copies(n int, bytes, took int64) func(*scripted.Job, int) {
	return func(j *scripted.Job, _ int) {
		for range n {
			w := j.Launch(10*us, "copy", "Memcpy HtoD", j.Now+5*us, took)
			w.Detail.Bytes = &bytes
			j.Now += took
		}
	}
}

func TestManySmallCopiesCouldBeOne(t *testing.T) {
	r := run(t, thresholds.Default(), onDevice(100, copies(20, 4096, 100*us)))
	// One copy at the bandwidth of the others takes as long: what goes are the calls.
	f := r.find("small_copies")
	if f == nil || *f.HeadroomMS <= 0 || *f.HeadroomMS > 20*.110 {
		t.Fatalf("%+v, not claimed %+v", r.Findings, r.Abstained)
	}
	// As many of 64 KiB, and few of 4 KiB.
	for _, miss := range []func(*scripted.Job, int){copies(20, 65536, 100*us), copies(4, 4096, 100*us)} {
		if f := run(t, thresholds.Default(), onDevice(100, miss)).find("small_copies"); f != nil {
			t.Errorf("a near miss: %+v", *f)
		}
	}
}

func TestACollectiveThatSometimesTakesTooLong(t *testing.T) {
	talk := func(slow int64) func(*scripted.Job, int) {
		return func(j *scripted.Job, step int) {
			took := 2 * ms
			if step%4 == 3 {
				took = slow
			}
			j.Launch(10*us, "collective", "ncclDevKernel_AllReduce", j.Now+10*us, took)
			j.Call("runtime", "sync", "cudaStreamSynchronize", took+50*us)
		}
	}
	r := run(t, thresholds.Default(), onDevice(100, talk(10*ms)))
	f := r.find("collective_outlier")
	if f == nil || *f.HeadroomMS < 1.8 || *f.HeadroomMS > 2.1 { // 8 ms in one step of four
		t.Fatalf("%+v, not claimed %+v", r.Findings, r.Abstained)
	}
	if f := run(t, thresholds.Default(), onDevice(100, talk(25*ms/10))).find("collective_outlier"); f != nil {
		t.Errorf("a quarter longer is no outlier: %+v", *f)
	}
}

func TestARankThatKeepsTheOthersWaiting(t *testing.T) {
	ranks := func(extra int64) (jobs []*scripted.Job) {
		for rank := range 4 {
			jobs = append(jobs, onDevice(int32(100+rank), func(j *scripted.Job, _ int) {
				work, wait := int64(0), extra
				if rank == 2 {
					work, wait = extra, 0
				}
				j.Op("aten::embedding", 1*ms+work)
				j.Call("collective", "collective", "gloo::allreduce", 500*us+wait)
			}))
		}
		return jobs
	}
	r := run(t, thresholds.Default(), ranks(4*ms)...)
	f := r.find("rank_imbalance")
	if f == nil || f.Name != "rank 2" || *f.HeadroomMS < 3.9 || *f.HeadroomMS > 4.1 {
		t.Fatalf("%+v, not claimed %+v", r.Findings, r.Abstained)
	}
	if f := run(t, thresholds.Default(), ranks(300*us)...).find("rank_imbalance"); f != nil {
		t.Errorf("a near miss: %+v", *f)
	}
}

func TestAClockThatIsHeldDown(t *testing.T) {
	read := func(held bool) func(*scripted.Job, int) {
		return func(j *scripted.Job, step int) {
			clock, flag := 1980e6, 0.0
			if held && step%2 == 1 {
				clock, flag = 990e6, 1
			}
			j.Read("gpu_clock_sm", clock)
			j.Read("gpu_throttle_thermal", flag)
			j.Read("gpu_throttle_idle", 1)
			j.Call("runtime", "sync", "cudaDeviceSynchronize", 10*us)
		}
	}
	r := run(t, thresholds.Default(), onDevice(100, read(true)))
	if f := r.find("throttling"); f == nil || f.Name != "gpu_throttle_thermal" {
		t.Errorf("%+v, not claimed %+v", r.Findings, r.Abstained)
	}
	if f := run(t, thresholds.Default(), onDevice(100, read(false))).find("throttling"); f != nil {
		t.Errorf("idle is no throttling: %+v", *f)
	}
}

func TestAHostThatTakesLongerThanItsDevice(t *testing.T) {
	launch := func(host, device int64) func(*scripted.Job, int) {
		return func(j *scripted.Job, _ int) {
			for range 10 {
				j.Op("aten::add", host/2, func() { j.Launch(5*us, "kernel", "add", j.Now+6*us, device) })
			}
		}
	}
	r := run(t, thresholds.Default(), onDevice(100, launch(800*us, 10*us)))
	f := r.find("host_bound")
	if f == nil || f.Name != "aten::add" || *f.HeadroomMS < 7 {
		t.Fatalf("%+v, not claimed %+v", r.Findings, r.Abstained)
	}
	if f := run(t, thresholds.Default(), onDevice(100, launch(100*us, 90*us))).find("host_bound"); f != nil {
		t.Errorf("a near miss: %+v", *f)
	}
}

func TestAForwardPassThatIsSlowForItsBackward(t *testing.T) {
	for forward, fires := range map[int64]bool{5 * ms: true, 3 * ms: false} {
		j := scripted.New()
		for step := range 40 {
			j.Load(100 * us)
			j.Op("aten::cumsum", forward).SequenceNumber = int64(step)
			j.Backward(10*us, func() { j.Node("CumsumBackward0", int64(step), 2*ms) })
			j.Optimize(1 * ms)
		}
		f := run(t, thresholds.Default(), j).find("backward_anomaly")
		if (f != nil) != fires || fires && (f.HeadroomMS != nil || f.Severity != Info) {
			t.Errorf("forward of %d µs: %+v", forward/us, f)
		}
	}
}
