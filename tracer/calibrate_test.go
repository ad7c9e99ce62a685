package tracer

import "testing"

func TestHitCostsAreMeasuredOnThisMachine(t *testing.T) {
	k := testKernel(t)
	cost, err := measureHits(k)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("nop5 %.0f ns, emulated %.0f ns, stepped %.0f ns, %.0f ns more when cold", cost.warm[0], cost.warm[1], cost.warm[2], cost.cold)
	if cost.cold > 1e5 {
		t.Errorf("cold caches cost %.0f ns a hit: not plausible", cost.cold)
	}
	for class, ns := range cost.warm {
		if ns < 20 || ns > 1e6 {
			t.Errorf("class %d costs %.0f ns a hit: not a plausible trap", class, ns)
		}
	}
	if counts, err := k.count(0); err != nil || counts.Entries != 0 {
		t.Errorf("the calibration left %d hits in the probe table (%v)", counts.Entries, err)
	}
}
