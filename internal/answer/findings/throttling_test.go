package findings

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestAProcessorThatIsTooHotIsAccused, from a twentieth of the time on.
func TestAProcessorThatIsTooHotIsAccused(t *testing.T) {
	for percent, want := range map[int64]bool{6: true, 4: false} {
		r := run(t, thresholds.Default(), made(func(j *scripted.Job, _ int) { j.Heat(10*ms, percent*ms/10) }))
		f := r.find("throttling")
		if (f != nil) != want {
			t.Errorf("%d %%: %+v", percent, f)
		}
		if f != nil && (f.Name != "cpu_throttled, package-0" || f.HeadroomMS != nil || f.Severity != Info) {
			t.Errorf("%+v", *f)
		}
	}
}
