package report

import (
	"errors"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Work that was launched before the trace began, and work whose launch is in it.
func TestWorkThatNothingLaunchedIsToldApart(t *testing.T) {
	work := func(id, launch, at, ms int64) event.Span {
		d := &event.Detail{DeviceTimeMethod: "imported"}
		if launch > 0 {
			d.LaunchID = &launch
		}
		return event.Span{ID: id, StartNS: 1e15 + at*1e6, DurationNS: ms * 1e6, PID: 7, Weight: 1, SequenceNumber: -1, End: event.EndImported,
			Call: &event.Call{Layer: "device", Category: "kernel", Name: "k"}, Detail: d}
	}
	launch := event.Span{ID: 1, StartNS: 1e15 + 5*1e6, DurationNS: 1e4, PID: 7, TID: 7, Weight: 1, SequenceNumber: -1, End: event.EndImported,
		Call: &event.Call{Layer: "runtime", Category: "launch", Name: "hipLaunchKernel"}}
	two := launch
	two.ID, two.StartNS = 4, 1e15+15*1e6
	write := func(spans ...event.Span) *Report {
		return built(t, made(t, func(d *output.Dataset) error {
			return errors.Join(d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 7}}}),
				d.Write(&event.Batch{Spans: append(spans, launch, two)}))
		}))
	}
	r := write(work(2, 0, 0, 8), work(3, 1, 10, 4), work(5, 4, 20, 6))
	if d := r.DeviceLaunched; r.Device.TotalMS != 26 || r.Device.BusyMS != 18 || d == nil || d.TotalMS != 16 || d.BusyMS != 10 ||
		d.IdleMS != 6 {
		t.Errorf("%+v, of what was launched %+v", r.Device, r.DeviceLaunched)
	}
	if r := write(work(3, 1, 10, 4), work(5, 4, 20, 6)); r.DeviceLaunched != nil || r.Device.BusyMS != 10 {
		t.Errorf("all was launched: %+v", r.DeviceLaunched)
	}
}

// Where several pieces of work end with one wait none has a lower bound, but the device has.
// What a piece of work has itself is within what the wait for it says.
func TestADeviceWasBusyAsLongAsThreadsWaitedForIt(t *testing.T) {
	zero := int64(0)
	row := func(id, at, took int64, category string, device int32, d event.Detail) event.Span {
		d.DeviceID = &device
		return event.Span{ID: id, StartNS: 1e15 + at*1e6, DurationNS: took * 1e6, PID: 7, TID: 8, Weight: 1, SequenceNumber: -1,
			End:  event.EndExitSite,
			Call: &event.Call{Layer: "runtime", Category: category, Runtime: "cuda", Name: category}, Detail: &d}
	}
	launch := func(id, at, lo, hi int64, device int32) event.Span {
		lo, hi = lo*1e6, hi*1e6
		return row(id, at, 0, "launch", device, event.Detail{DeviceTimeLoNS: &lo, DeviceTimeHiNS: &hi, DeviceTimeMethod: "bounded"})
	}
	wait := func(id, at, took, busy int64, device int32) event.Span {
		busy *= 1e6
		return row(id, at, took, "sync", device, event.Detail{Wait: &event.Wait{DeviceBusyLoNS: &busy}})
	}
	r := built(t, made(t, func(d *output.Dataset) error {
		return errors.Join(d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 7}}}), d.Write(&event.Batch{Spans: []event.Span{
			launch(1, 0, 0, 10, 0), launch(2, 1, 0, 9, 0), wait(3, 2, 8, 7, 0), launch(4, 20, 4, 5, 0), wait(5, 20, 5, 4, 0),
			launch(6, 0, 3, 3, 1), // of which no wait says anything
			row(7, 30, 1, "sync", 2, event.Detail{Wait: &event.Wait{DeviceBusyLoNS: &zero}}),
		}}))
	}))
	if r.DeviceBounds == nil {
		t.Fatal("no bounds of devices")
	}
	lo, hi := r.DeviceBounds.Lo, r.DeviceBounds.Hi
	if lo.Count != 2 || lo.BusyMS != (11+3)/2. || lo.ComputationMS != (4+3)/2. || lo.IdleMS != (24-11)/2. || hi.BusyMS != (15+3)/2. {
		t.Errorf("at least %+v, at most %+v", lo, hi)
	}
}

// A recording of the host has bounds of what devices did: the sweep is done for both.
func TestWhereTimesOfADeviceAreBoundsBothEndsAreShown(t *testing.T) {
	handed := func(id, at int64, category string, lo, hi int64) event.Span {
		device := int32(0)
		return event.Span{ID: id, StartNS: 1e15 + at*1e6, DurationNS: 1e4, PID: 7, TID: 8, Weight: 1, SequenceNumber: -1, End: event.EndExitSite,
			Call:   &event.Call{Layer: "runtime", Category: category, Runtime: "cuda", Name: "cuLaunchKernel"},
			Detail: &event.Detail{DeviceID: &device, DeviceTimeLoNS: &lo, DeviceTimeHiNS: &hi, DeviceTimeMethod: "bounded"}}
	}
	r := built(t, made(t, func(d *output.Dataset) error {
		return errors.Join(d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 7}}}), d.Write(&event.Batch{Spans: []event.Span{
			handed(1, 0, "launch", 1e6, 3e6), handed(2, 10, "launch", 0, 4e6),
			handed(3, 12, "copy", 0, 5e6), // 12 to 17 at the most, 3 of it beside nothing
			handed(4, 30, "launch", 2e6, 2e6),
		}}))
	}))
	if r.Device != nil || r.DeviceBounds == nil {
		t.Fatalf("%+v, %+v", r.Device, r.DeviceBounds)
	}
	lo, hi := r.DeviceBounds.Lo, r.DeviceBounds.Hi
	if lo.ComputationMS != 3 || lo.ExposedMemcpyMS != 0 || hi.ComputationMS != 9 || hi.ExposedMemcpyMS != 3 || hi.BusyMS != 12 ||
		hi.TotalMS != 32 {
		t.Errorf("at least %+v, at most %+v", lo, hi)
	}
	for _, s := range r.document(Style{}) {
		if s.title == "Device" && (s.table == nil || len(s.table.rows) != 4) {
			t.Errorf("%+v", s)
		}
	}
}
