package findings

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestProbesAreTakenOffWhereTheyWere: two hundred fetches lose eight of their microseconds to
// the four hits of two calls, a long operator next to nothing. What the fetches would bring
// goes by their own time, and not by their share of the step with the probes.
func TestProbesAreTakenOffWhereTheyWere(t *testing.T) {
	const fetches, hit = 200, 2 * us
	for _, c := range []struct {
		sliced     bool
		price, own int64
	}{
		{true, us, us},       // the steps between slices say more than the price
		{false, hit, 5 * us}, // the price is all there is
	} {
		j := scripted.New()
		j.PriceNS = c.price
		for step := range 60 {
			j.Load(100 * us)
			if c.sliced && step >= 20 {
				j.Wait(4*ms + fetches*c.own)
			} else {
				j.Op("aten::mm", 4*ms)
				for range fetches { // four tenths of a hit lie inside of a call, the rest outside
					seen(j, "on_cpu", 5*us)
					j.Op("aten::item", 0, func() {
						j.Wait(hit)
						j.Op("aten::_local_scalar_dense", hit*8/10+c.own)
						j.Wait(hit)
					})
					j.Wait(hit * 12 / 10)
				}
			}
			j.Backward(3 * ms)
			j.Optimize(ms)
		}
		r := run(t, thresholds.Default(), j)
		f := r.find("sync_in_step")
		if f == nil {
			t.Fatalf("%+v: %+v, not claimed %+v", c, r.Findings, r.Abstained)
		}
		want := fetches * float64(c.own) / 1e6
		if *f.HeadroomMS < want-0.03 || *f.HeadroomMS > want+0.03 || *f.LowMS > *f.HeadroomMS || *f.HighMS < *f.HeadroomMS {
			t.Errorf("%+v: %.3f ms (%.3f to %.3f), want %.3f; %+v", c, *f.HeadroomMS, *f.LowMS, *f.HighMS, want, r.Probes)
		}
		if *f.ProbesMS < 1.55 || *f.ProbesMS > 1.65 {
			t.Errorf("%+v: %.3f ms of a step are the probes'", c, *f.ProbesMS)
		}
	}
}
