package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestABudgetHasAllLaunchesWithoutSlices: where a kernel cannot have probes in slices, a
// recording with a budget has every launch and copy of a job that makes no more than it
// can pay for. (The budget is large, for machines on which a hit takes a tenth of a
// millisecond; the probes are few, since each takes as long to be taken out as twenty.)
func TestABudgetHasAllLaunchesWithoutSlices(t *testing.T) {
	needKernel(t)
	beside(t, counting, "libcuda")
	job := start(t, stub(t, "trainstep"), "20")
	job.line(t, "ready ")
	dataset := filepath.Join(t.TempDir(), "d")
	a := &attached{start(t, "env", "EBPFPROF_WITHOUT=uprobe_multi", ebpfprof, "attach", "--output", dataset, "--budget", "100%",
		"--probe", "symbol=cuLaunchKernel,cuMemcpyHtoDAsync_v2,cuMemcpyDtoHAsync_v2", "--exclude", "cuda-code", "--pid", fmt.Sprint(job.Process.Pid)), dataset}
	a.until(t, "word that it is attached", func(_ []string, errs string) bool { return strings.Contains(errs, "attached in ") })
	job.goOn(t)
	if code, err := job.wait(); code != 0 || err != nil {
		t.Fatalf("%s: %d, %v\n%s", job, code, err, job.transcript())
	}
	r := a.finish(t)
	r.lossless(t)
	var told toldByStub
	for _, l := range job.out {
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
	recorded := r.number(t, `SELECT count(*) FROM span WHERE category = 'launch'`)
	t.Logf("launches within a budget: %d of %d calls recorded", recorded, launches)
	if copies := r.number(t, `SELECT count(*) FROM span WHERE category = 'copy'`); recorded != launches || copies != told.Told.Copies || launches == 0 {
		t.Errorf("%d of %d launches and %d of %d copies recorded", recorded, launches, copies, told.Told.Copies)
	}
	if n := r.number(t, `SELECT count(*) FROM slice`); n != 0 {
		t.Errorf("%d slices", n)
	}
	if n := r.number(t, `SELECT count(*) FROM warning WHERE kind = 'slice' AND source = 'uprobe_multi'`); n != 1 {
		t.Errorf("%d warnings of what is left out, want one", n)
	}
}
