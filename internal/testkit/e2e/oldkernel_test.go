package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// TestABudgetHasAllLaunchesWithoutSlices: where a kernel cannot have probes in slices, a
// recording with a budget has every launch and copy of a job that makes no more than it
// can pay for. (The budget is large, for machines on which a hit takes a tenth of a
// millisecond; the probes are few, since each takes as long to be taken out as twenty.)
func TestABudgetHasAllLaunchesWithoutSlices(t *testing.T) {
	harness.Beside(t, "libcuda")
	job := harness.Start(t, stub(t, "trainstep"), "20")
	job.Line(t, "ready ")
	a := harness.AttachWith(t, "env", "EBPFPROF_WITHOUT=uprobe_multi", harness.Binary, "attach", "--budget", "100%",
		"--probe", "symbol=cuLaunchKernel,cuMemcpyHtoDAsync_v2,cuMemcpyDtoHAsync_v2", "--exclude", "cuda-code", "--pid",
		fmt.Sprint(job.Process.Pid))
	job.GoOn(t)
	if code, err := job.Wait(); code != 0 || err != nil {
		t.Fatalf("%s: %d, %v\n%s", job, code, err, job.Transcript())
	}
	r := a.Finish(t)
	r.Lossless(t)
	var told toldByStub
	for _, l := range job.Lines() {
		if strings.HasPrefix(l, `{"told"`) {
			if err := json.Unmarshal([]byte(l), &told); err != nil {
				t.Fatal(err)
			}
		}
	}
	launches := int64(0)
	for _, n := range told.Told.Launches {
		launches += n
	}
	recorded := r.Number(t, `SELECT count(*) FROM span WHERE category = 'launch'`)
	t.Logf("launches within a budget: %d of %d calls recorded", recorded, launches)
	if copies := r.Number(t, `SELECT count(*) FROM span WHERE category = 'copy'`); recorded != launches || copies != told.Told.Copies ||
		launches == 0 {
		t.Errorf("%d of %d launches and %d of %d copies recorded", recorded, launches, copies, told.Told.Copies)
	}
	if n := r.Number(t, `SELECT count(*) FROM slice`); n != 0 {
		t.Errorf("%d slices", n)
	}
	if n := r.Number(t, `SELECT count(*) FROM warning WHERE kind = 'slice' AND source = 'uprobe_multi'`); n != 1 {
		t.Errorf("%d warnings of what is left out, want one", n)
	}
}
