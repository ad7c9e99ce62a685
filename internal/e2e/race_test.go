package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// raced is ebpfprof under the race detector. Its goroutines meet in a recording as
// in no other test: the manager plans, demotes and attaches while the decoder reads.
func raced(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(scratch, "ebpfprof-raced")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if out, err := exec.Command("go", "build", "-race", "-o", path, "../../cmd/ebpfprof").CombinedOutput(); err != nil {
		t.Fatalf("building ebpfprof with the race detector: %v\n%s", err, out)
	}
	return path
}

// A whole recording with samples, slices and a demotion is free of data races.
func TestARecordingWithSlicesAndADemotionHasNoDataRace(t *testing.T) {
	debianTorch.beside(t, sliced)
	job := startJob(t, debianTorch.job("mlp.py", "--seconds", "12")...)
	dataset, err := os.MkdirTemp(scratch, "dataset-")
	if err != nil {
		t.Fatal(err)
	}
	// So small a budget demotes whatever is recorded one and all.
	tracing := &attached{start(t, raced(t), "attach", "--output", dataset, "--rotate", "1s", "--budget", "0.05%", "--pid", fmt.Sprint(job.Process.Pid)), dataset}
	tracing.until(t, "word that it is attached", func(_ []string, errs string) bool { return strings.Contains(errs, "attached in ") })
	job.goOn(t)
	job.finishJob(t)
	r := tracing.finish(t) // the detector's exit code is 66
	if text := tracing.transcript(); strings.Contains(text, "DATA RACE") {
		t.Error(text)
	}
	if n := r.number(t, "SELECT count(*) FROM warning WHERE kind = 'slice' AND detail LIKE 'recording every call of this group%%'"); n == 0 {
		t.Error("no group was demoted: the test shows nothing")
	}
	if n := r.number(t, "SELECT count(*) FROM span WHERE weight > 1"); n == 0 {
		t.Error("no row stands for others: there were no slices")
	}
}
