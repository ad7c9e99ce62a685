package report

import (
	"errors"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// A recording of the host has bounds of what devices did: the sweep is done for both.
func TestWhereTimesOfADeviceAreBoundsBothEndsAreShown(t *testing.T) {
	handed := func(id, at int64, category string, lo, hi int64) event.Span {
		device := int32(0)
		return event.Span{ID: id, StartNS: 1e15 + at*1e6, DurationNS: 1e4, PID: 7, TID: 8, Weight: 1, SequenceNumber: -1, End: event.EndExitSite,
			Call:   &event.Call{Layer: "runtime", Category: category, Runtime: "cuda", Name: "cuLaunchKernel"},
			Detail: &event.Detail{DeviceID: &device, DeviceTimeLoNS: &lo, DeviceTimeHiNS: &hi, DeviceTimeMethod: "bounded"}}
	}
	r := built(t, made(t, func(d *output.Dataset) error {
		return errors.Join(d.Process(event.Process{ID: 1, PID: 7}), d.Spans([]event.Span{
			handed(1, 0, "launch", 1e6, 3e6), handed(2, 10, "launch", 0, 4e6),
			handed(3, 12, "copy", 0, 5e6), // 12 to 17 at the most, 3 of it beside nothing
			handed(4, 30, "launch", 2e6, 2e6),
		}))
	}))
	if r.Device != nil || r.DeviceBounds == nil {
		t.Fatalf("%+v, %+v", r.Device, r.DeviceBounds)
	}
	lo, hi := r.DeviceBounds.Lo, r.DeviceBounds.Hi
	if lo.ComputationMS != 3 || lo.ExposedMemcpyMS != 0 || hi.ComputationMS != 9 || hi.ExposedMemcpyMS != 3 || hi.BusyMS != 12 || hi.TotalMS != 32 {
		t.Errorf("at least %+v, at most %+v", lo, hi)
	}
	for _, s := range r.document(Style{}) {
		if s.title == "Device" && (s.table == nil || len(s.table.rows) != 4) {
			t.Errorf("%+v", s)
		}
	}
}
