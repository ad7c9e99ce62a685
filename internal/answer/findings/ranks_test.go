package findings

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestACollectiveThatWaitsForARankIsNoOutlier: now and then one rank works longer, and the
// other is as long in the collective. The network is not to blame; of a transfer that takes
// longer for both it is.
func TestACollectiveThatWaitsForARankIsNoOutlier(t *testing.T) {
	ranks := func(work, transfer int64) (jobs []*scripted.Job) {
		for rank := range 2 {
			jobs = append(jobs, onDevice(int32(100+rank), func(j *scripted.Job, step int) {
				late, slow := int64(0), int64(0)
				if step%4 == 1 {
					late, slow = work, transfer
				}
				if rank == 1 {
					j.Op("aten::embedding", ms+late)
					j.Call("collective", "collective", "gloo::allreduce", 500*us+slow)
				} else {
					j.Op("aten::embedding", ms)
					j.Call("collective", "collective", "gloo::allreduce", 500*us+late+slow)
				}
			}))
		}
		return jobs
	}
	if f := run(t, thresholds.Default(), ranks(8*ms, 0)...).find("collective_outlier"); f != nil {
		t.Errorf("a late rank: %+v", *f)
	}
	r := run(t, thresholds.Default(), ranks(0, 8*ms)...)
	if f := r.find("collective_outlier"); f == nil || *f.HeadroomMS < 1.8 || *f.HeadroomMS > 2.1 { // 8 ms in one step of four
		t.Errorf("a slow transfer: %+v, not claimed %+v", r.Findings, r.Abstained)
	}
}
