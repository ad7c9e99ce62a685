package report

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const (
	usualStep, profiledStep = 20_000_000, 30_000_000 // ns
	aroundWindow, inWindow  = 30, 10                 // steps before and after, and in it
	kernelNS, stepFLOPs     = 6_000_000, 4e12
)

// partly records a training loop on a device, of which the job's own profiler sees ten steps in the middle: slower ones,
// with a kernel in each but the first.
func partly(device string) func(*output.Dataset) error {
	return func(d *output.Dataset) error {
		var spans []event.Span
		var trace event.MergedTrace
		id, at := int64(0), int64(1e15)
		add := func(parent, start, took int64, call event.Call, detail *event.Detail) int64 {
			id++
			s := event.Span{ID: id, ParentID: parent, StartNS: start, DurationNS: took, PID: 7, TID: 7, Weight: 1,
				SequenceNumber: -1, Call: &call, Detail: detail}
			if call.Layer == "device" {
				s.TID, s.End = 0, event.EndImported
			}
			if call.Name == "aten::mm" {
				flops, moved := int64(stepFLOPs), int64(1e9)
				s.Detail = &event.Detail{Shape: &event.Shape{Dims: "[[1,1]]",
					Types: `["c10::BFloat16","c10::BFloat16"]`, FLOPs: &flops, BytesMoved: &moved}}
			}
			spans = append(spans, s)
			return id
		}
		stream, gpu := int64(7), int32(0)
		for step := range int64(2*aroundWindow + inWindow) {
			profiled := step >= aroundWindow && step < aroundWindow+inWindow
			period := int64(usualStep)
			if profiled {
				period = profiledStep
			}
			if step == aroundWindow {
				trace.StartNS = at
			}
			mm := add(0, at, 2_000_000, event.Call{Layer: "op", Name: "aten::mm"}, nil)
			lo, hi := int64(0), int64(15_000_000)
			if step%2 == 1 {
				hi = 5_000_000 // which is wrong
			}
			launch := add(mm, at+500_000, 100_000, event.Call{Layer: "runtime", Category: "launch", Runtime: "cuda", Name: "gemm"},
				&event.Detail{DeviceID: &gpu, Stream: &stream, DeviceTimeLoNS: &lo, DeviceTimeHiNS: &hi, DeviceTimeMethod: "bounded"})
			add(0, at+3_000_000, 8_000_000, event.Call{Layer: "autograd", Category: "backward", Name: "Engine::execute"}, nil)
			add(0, at+12_000_000, 3_000_000, event.Call{Layer: "scope", Name: "Optimizer.step#SGD.step"}, nil)
			if profiled && step > aroundWindow {
				add(0, at+1_000_000, kernelNS, event.Call{Layer: "device", Category: "kernel", Runtime: "cuda", Name: "gemm"},
					&event.Detail{LaunchID: &launch, DeviceID: &gpu, Stream: &stream, DeviceTimeMethod: event.MergedOnDemand})
			}
			at += period
			if step == aroundWindow+inWindow-1 {
				trace.EndNS = at
			}
		}
		trace.PID, trace.Source, trace.Method, trace.DeviceRows, trace.Launched, trace.BoundsChecked, trace.BoundsHeld = 7, "torch.profiler",
			event.MergedOnDemand, inWindow-1, inWindow-1, inWindow-1, 4
		ended := at
		return errors.Join(d.Session(event.Recording{ID: "s", EndedNS: &ended, DeviceName: device}), d.Write(&event.Batch{
			Processes: []event.Process{{ID: 1, PID: 7}}, Spans: spans, MergedTraces: []event.MergedTrace{trace},
		}))
	}
}

func closeTo(got, want float64) bool { return math.Abs(got-want) <= 1e-6*math.Abs(want) }

func TestDevicesOfAProfiledPartAreOfThatPart(t *testing.T) {
	r := built(t, made(t, partly("NVIDIA H100 80GB HBM3")))
	d, p, s := r.Device, r.Profiled, r.Steps
	if d == nil || p == nil || s == nil {
		t.Fatalf("device %+v, profiled %+v, steps %+v", d, p, s)
	}
	// The first step of the window, in which the device is idle, belongs to it.
	if d.TotalMS != 300 || d.BusyMS != 54 || d.IdleMS != 246 {
		t.Errorf("%+v", d)
	}
	if r.DeviceBounds == nil {
		t.Error("no bounds beside it")
	}
	// A step begins with the backward pass: one begins before the window, and one ends after it.
	if s.MeanMS != 20 || s.Profiled != inWindow+1 || p.Steps != inWindow-1 || *p.StepMS != 30 || !closeTo(*p.BusyAtUsualPace, 27) {
		t.Errorf("steps %+v, profiled %+v", s, p)
	}
	if text := strings.Join(r.deviceSection().notes, "\n"); !strings.Contains(text, "of the profiled 300 ms (of 1495 ms recorded)") ||
		!strings.Contains(text, "bounds of device times hold for 4 of 9 launches") {
		t.Error(text)
	}
	// A step's FLOPs by its usual period: of 989.4 TFLOP/s.
	if b := r.Bound; b == nil || !closeTo(b.MFU, 100*stepFLOPs/(989.4e12*0.020)) || b.Divided != "period of a step" || b.Kind != "bf16" {
		t.Errorf("%+v", b)
	}
}

func TestWorkOnADeviceIsNeverJudgedByTheProcessorsPeak(t *testing.T) {
	for device, why := range map[string]string{"": "does not name its device", "a toaster": "--peaks"} {
		r := built(t, made(t, partly(device)))
		if r.Bound != nil {
			t.Errorf("%q: %+v", device, r.Bound)
		}
		if text := strings.Join(r.Untold, "\n"); !strings.Contains(text, why) {
			t.Errorf("%q: %s", device, text)
		}
	}
}

func TestLaunchesOutsideOfAMergedTraceLackNothing(t *testing.T) {
	db := made(t, partly(""))
	checks, err := lint.Run(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if checks.Imported {
		t.Error("a recording with merged rows counts as an import")
	}
	for _, c := range checks.Checks {
		want := map[string]int64{"launches_without_work": 0, "nothing_at_the_start": 0, "devices_of_a_part": 1, "device_time_bounds": 5}
		if n, asked := want[c.Name]; asked && c.Count != n {
			t.Errorf("%s: %d, want %d", c.Name, c.Count, n)
		}
	}
}

// Ranks that have no steps are as far from the peak together as each is alone: each has a device of its own.
func TestRanksWithoutStepsDoNotAddUpToMoreOfTheirPeak(t *testing.T) {
	of := func(ranks int32) *Bound {
		return built(t, made(t, func(d *output.Dataset) error {
			b := &event.Batch{}
			for pid := range ranks {
				flops, moved, gpu := int64(stepFLOPs), int64(1e9), int32(0)
				id := int64(pid)*2 + 1
				b.Processes = append(b.Processes, event.Process{ID: int64(pid) + 1, PID: pid + 1})
				b.Spans = append(b.Spans,
					event.Span{ID: id, StartNS: 1e15, DurationNS: 2e6, PID: pid + 1, TID: pid + 1, Weight: 1, SequenceNumber: -1,
						Call: &event.Call{Layer: "op", Name: "aten::mm"}, Detail: &event.Detail{Shape: &event.Shape{Dims: "[[1,1]]",
							Types: `["c10::BFloat16","c10::BFloat16"]`, FLOPs: &flops, BytesMoved: &moved}}},
					event.Span{ID: id + 1, ParentID: id, StartNS: 1e15 + 1e6, DurationNS: 1e5, PID: pid + 1, TID: pid + 1, Weight: 1,
						SequenceNumber: -1, Call: &event.Call{Layer: "runtime", Category: "launch", Runtime: "cuda", Name: "gemm"},
						Detail: &event.Detail{DeviceID: &gpu}})
			}
			ended := int64(1e15 + 20e6)
			return errors.Join(d.Session(event.Recording{ID: "s", EndedNS: &ended, DeviceName: "NVIDIA H100 80GB HBM3"}), d.Write(b))
		})).Bound
	}
	one, four := of(1), of(4)
	if one == nil || four == nil || one.MFU <= 0 || !closeTo(four.MFU, one.MFU) || !closeTo(four.MBU, one.MBU) {
		t.Errorf("one rank %+v, four ranks %+v", one, four)
	}
}
