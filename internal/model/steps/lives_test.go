package steps

import "testing"

// A loop whose steps are all different is never learnt; what was seen of it must not be
// kept for as long as it runs.
func TestALoopThatIsNeverLearntTakesNoMemory(t *testing.T) {
	var d Detector
	for n := range 5_000 {
		for k := range 20 { // a number in binary: forty anchors in an order of their own
			class := Load
			if n>>k&1 == 1 {
				class = Backward
			}
			d.Push(Anchor{Class: class})
		}
		d.Push(Anchor{Class: Optimize})
		if d.Sequence() != "" {
			t.Fatalf("learnt %q", d.Sequence())
		}
	}
	if len(d.segments) > mostSegments {
		t.Errorf("%d segments are kept", len(d.segments))
	}
}
