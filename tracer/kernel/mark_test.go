package kernel

import "testing"

// What the probes take is about a hit: that of the ways out of one trap and into another.
func TestWhatProbesAddToADurationIsMeasured(t *testing.T) {
	k := loaded(t)
	ns, err := MeasureMark(k)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d ns", ns)
	if ns < 20 || ns > 1e6 {
		t.Errorf("%d ns between two readings: not plausible", ns)
	}
	for _, ring := range []string{"calls", "life"} {
		if err := drain(k.call.Maps[ring], func(r []byte) { t.Errorf("a record of %d bytes is left in %s", len(r), ring) }); err != nil {
			t.Error(err)
		}
	}
	for index := range uint32(2) {
		if counts, err := k.Count(index); err != nil || counts.Entries != 0 {
			t.Errorf("%d hits are left in the probe table (%v)", counts.Entries, err)
		}
	}
}
