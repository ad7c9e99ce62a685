package kernel

import "testing"

func TestHitCostsAreMeasuredOnThisMachine(t *testing.T) {
	k := loaded(t)
	cost, err := MeasureHits(k)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("nop5 %.0f ns, emulated %.0f ns, stepped %.0f ns, %.0f ns more when cold", cost.Warm[0], cost.Warm[1], cost.Warm[2], cost.Cold)
	if cost.Cold > 1e5 {
		t.Errorf("cold caches cost %.0f ns a hit: not plausible", cost.Cold)
	}
	for class, ns := range cost.Warm {
		if ns < 20 || ns > 1e6 {
			t.Errorf("class %d costs %.0f ns a hit: not a plausible trap", class, ns)
		}
	}
	if counts, err := k.Count(0); err != nil || counts.Entries != 0 {
		t.Errorf("the calibration left %d hits in the probe table (%v)", counts.Entries, err)
	}
}
