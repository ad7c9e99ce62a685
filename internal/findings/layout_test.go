package findings

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/scripted"
)

// TestNumbersGivenToOperatorsAreNoCopies: an elementwise operator makes a tensor of each
// number that it is given, by the same calls that copy a tensor of the user's.
func TestNumbersGivenToOperatorsAreNoCopies(t *testing.T) {
	r := run(t, DefaultThresholds(), made(func(j *scripted.Job, _ int) {
		for range 3 {
			j.Op("aten::mul", 20*us, func() { j.Op("aten::to", 300*us, func() { j.Op("aten::copy_", 100*us) }) })
			j.Op("aten::mm", 10*us)
		}
	}))
	if f := r.find("layout"); f != nil {
		t.Errorf("%+v", *f)
	}
}
