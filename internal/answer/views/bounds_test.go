package views

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func TestBreakdownOfALiveRecordingIsARange(t *testing.T) {
	const us = 1_000
	j := scripted.New()
	begin := j.Now
	for i := range int64(2) {
		j.Bound(j.Call("runtime", "launch", "gemm", 10*us), 20*us, 40*us)
		j.Now = begin + (i+1)*100*us
	}
	db, err := dataset.Open(scripted.Write(t, j))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// 40 of 120 µs at the least, 80 of 140 at the most.
	want(t, db, "breakdown", 0, nil, .12, .14, .04, .08, 100./3, 400./7, 0., 0., .06, .08, 300./7, 200./3)
	// A wait knows of 70 µs of work: idle is no more than what is left.
	waits := scripted.New()
	waits.Bound(waits.Call("runtime", "launch", "gemm", 10*us), 20*us, 100*us)
	busy, device := int64(70*us), int32(0)
	waits.Call("runtime", "sync", "cuStreamSynchronize", 90*us).Detail = &event.Detail{DeviceID: &device,
		Wait: &event.Wait{DeviceBusyLoNS: &busy}}
	waits.Bound(waits.Call("runtime", "launch", "gemm", 10*us), 20*us, 20*us)
	other, err := dataset.Open(scripted.Write(t, waits))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	want(t, other, "breakdown", 0, nil, .12, .12, .04, .12, nil, nil, 0., 0., 0., .05)
	v, err := Build(t.Context(), db, "breakdown", Options{})
	if err != nil || !strings.Contains(v.Sentence, "33.3 to 57.1 %") {
		t.Errorf("%v, %v", v, err)
	}
	var text strings.Builder
	if err := v.WriteText(&text, 0); err != nil || !strings.Contains(text.String(), " 0.060 to 0.080 ") || strings.Contains(text.String(),
		" hi ") {
		t.Errorf("%v\n%s", err, text.String())
	}
	if written, err := json.Marshal(v); err != nil || !strings.Contains(string(written), `"idle_hi_ms":0.08`) {
		t.Errorf("%s, %v", written, err)
	}
}
