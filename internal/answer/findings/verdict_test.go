package findings

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestOfAFewStepsNothingIsClaimed, which is not to say that nothing is wrong with them.
func TestOfAFewStepsNothingIsClaimed(t *testing.T) {
	of := func(steps int) string {
		j := scripted.New()
		for range steps {
			j.Load(100 * us)
			j.Op("aten::mm", 4*ms)
			j.Backward(4 * ms)
			j.Optimize(1 * ms)
		}
		return run(t, thresholds.Default(), j).Verdict()
	}
	if few := of(5); !strings.HasPrefix(few, "Nothing can be claimed of steps of 9.10 ms: too few were seen") {
		t.Error(few)
	}
	if many := of(40); !strings.HasPrefix(many, "Nothing above the noise") {
		t.Error(many)
	}
}
