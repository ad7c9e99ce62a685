package kernel

import "testing"

// What the probes take is about a hit: that of the ways out of one trap and into another.
func TestWhatProbesAddToADurationIsMeasured(t *testing.T) {
	k := loaded(t)
	for what, measure := range map[string]func(*Programs) (int64, error){"since a mark": MeasureMark, "until the return": MeasureReturn} {
		ns, err := measure(k)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%s: %d ns", what, ns)
		if ns < 20 || ns > 1e6 {
			t.Errorf("%s: %d ns between two readings: not plausible", what, ns)
		}
		for _, ring := range []string{"calls", "life"} {
			if err := drain(k.call.Maps[ring], func(r []byte) {
				t.Errorf("%s: a record of %d bytes is left in %s", what, len(r),
					ring)
			}); err != nil {
				t.Error(err)
			}
		}
		for index := range uint32(2) {
			if counts, err := k.Count(index); err != nil || counts.Entries != 0 {
				t.Errorf("%s: %d hits are left in the probe table (%v)", what, counts.Entries, err)
			}
		}
	}
}

// Mapping the ring for each of ten rounds took a sixth of a start.
func TestTheRingIsMappedOnceForTheCalibrationAndTheRecording(t *testing.T) {
	k := loaded(t)
	if _, err := MeasureMark(k); err != nil {
		t.Fatal(err)
	}
	first := k.callRing.opened
	if _, err := MeasureReturn(k); err != nil {
		t.Fatal(err)
	}
	ring, err := k.OpenCallRing()
	if err != nil {
		t.Fatal(err)
	}
	if first == nil || ring.Reader != first {
		t.Error("the calibration or the recording maps the ring again")
	}
	if err := ring.Close(); err != nil {
		t.Error(err)
	}
	again, err := k.OpenCallRing()
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Reader == first {
		t.Error("who opens the ring again gets what was closed")
	}
}
