package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const (
	cuptiSteps, cuptiStep = 40, 20_000_000 // ns
	cuptiStart            = 4_000_000_000  // from the first work of the device, a copy, to the first step
	cuptiKernel           = 6_000_000
	cuptiWeight           = 4
)

// byCUPTI records a training loop in slices that has one step in four, with each launch standing for four, and CUPTI all
// that the device did, also while the job started.
func byCUPTI(d *output.Dataset) error {
	var spans []event.Span
	id, begin := int64(0), int64(1e15)
	add := func(parent, start, took int64, weight float64, call event.Call, detail *event.Detail) int64 {
		id++
		s := event.Span{ID: id, ParentID: parent, StartNS: start, DurationNS: took, PID: 7, TID: 7, Weight: weight,
			SequenceNumber: -1, Call: &call, Detail: detail}
		if call.Layer == "device" {
			s.TID, s.End = 0, event.EndImported
		}
		spans = append(spans, s)
		return id
	}
	stream, gpu := int64(7), int32(0)
	onDevice := func(start, took int64, category string, launch *int64) {
		add(0, start, took, 1, event.Call{Layer: "device", Category: category, Runtime: "cuda", Name: "gemm"},
			&event.Detail{LaunchID: launch, DeviceID: &gpu, Stream: &stream, DeviceTimeMethod: event.MergedCUPTI})
	}
	onDevice(begin, 1_000_000, "copy", nil)
	for step := range int64(cuptiSteps) {
		at := begin + cuptiStart + step*cuptiStep
		add(0, at+3_000_000, 8_000_000, 1, event.Call{Layer: "autograd", Category: "backward", Name: "Engine::execute"}, nil)
		add(0, at+12_000_000, 3_000_000, 1, event.Call{Layer: "scope", Name: "Optimizer.step#SGD.step"}, nil)
		if step%cuptiWeight != 0 {
			onDevice(at+1_000_000, cuptiKernel, "kernel", nil)
			continue
		}
		mm := add(0, at, 2_000_000, cuptiWeight, event.Call{Layer: "op", Name: "aten::mm"}, nil)
		launch := add(mm, at+500_000, 100_000, cuptiWeight,
			event.Call{Layer: "runtime", Category: "launch", Runtime: "cuda", Name: "gemm"}, nil)
		onDevice(at+1_000_000, cuptiKernel, "kernel", &launch)
	}
	ended := begin + cuptiStart + cuptiSteps*cuptiStep
	const calls, launched = cuptiSteps + 1, cuptiSteps / cuptiWeight
	trace := event.MergedTrace{StartNS: begin, EndNS: ended, PID: 7, Source: "cupti 130001", Method: event.MergedCUPTI, Calls: calls,
		Matched: launched, OutsideSlices: calls - launched - 1, Unmatched: 1, DeviceRows: calls, Launched: launched}
	return errors.Join(d.Session(event.Recording{ID: "s", EndedNS: &ended}), d.Write(&event.Batch{
		Processes: []event.Process{{ID: 1, PID: 7}}, Spans: spans, MergedTraces: []event.MergedTrace{trace},
	}))
}

// The device is as busy as in the loop, and the job's start is no part of it; operators have the device time of all that
// their launches stand for; the report says that CUPTI made the steps longer.
func TestDevicesByCUPTIAreOfTheLoop(t *testing.T) {
	r := built(t, made(t, byCUPTI))
	d, s := r.DeviceInSteps, r.Steps
	if d == nil || s == nil || r.Device == nil {
		t.Fatalf("in steps %+v, steps %+v, in all %+v", d, s, r.Device)
	}
	if share := 100 * d.BusyMS / d.TotalMS; share < 29 || share > 31 || d.TotalMS > cuptiSteps*cuptiStep/1e6 {
		t.Errorf("busy for %.1f %%, want 30: %+v", share, d)
	}
	if r.DeviceLaunched != nil {
		t.Errorf("what was launched between slices is left out: %+v", r.DeviceLaunched)
	}
	if r.Device.TotalMS < cuptiStart/1e6 {
		t.Errorf("without the start: %+v", r.Device)
	}
	if s.Profiled != 0 || s.MeanMS != cuptiStep/1e6 || !strings.Contains(s.sentence(), "CUPTI ran in all of them and made them longer") {
		t.Errorf("%s, %d left out", s.sentence(), s.Profiled)
	}
	if !strings.Contains(r.Verdict, "of the settled steps (") {
		t.Error(r.Verdict)
	}
	want := fmt.Sprint(float64(cuptiSteps) * cuptiKernel / 1e6)
	for _, o := range r.Operators {
		if o.Name == "aten::mm" && (o.DeviceMS == nil || fmt.Sprint(*o.DeviceMS) != want) {
			t.Errorf("%+v, want %s ms of the device", o, want)
		}
	}
	for _, k := range r.Kernels {
		if k.Operator != "" && k.OperatorPercent != 100 {
			t.Errorf("%+v: all launches that are known are of one operator", k)
		}
	}
}

// Work whose launch lies between slices lacks nothing.
func TestWorkLaunchedBetweenSlicesIsNoLoss(t *testing.T) {
	checks, err := lint.Run(t.Context(), made(t, byCUPTI))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks.Checks {
		if c.Name == "work_without_launch" && c.Count != 1 {
			t.Errorf("%s: %d, want the 1 that has no reason", c.Name, c.Count)
		}
	}
}
