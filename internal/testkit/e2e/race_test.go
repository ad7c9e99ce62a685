package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// raced is ebpfprof under the race detector. Its goroutines meet in a recording as
// in no other test: the manager plans, demotes and attaches while the decoder reads.
func raced(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(harness.Scratch, "ebpfprof-raced")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := harness.Build(path, "../../../cmd/ebpfprof", "-race"); err != nil {
		t.Fatal(err)
	}
	return path
}

// A whole recording with samples, slices and a demotion is free of data races
// (TestSlices).
func aRecordingWithADemotionHasNoDataRace(t *testing.T) {
	harness.NeedKernel(t)
	var program string
	harness.BesideAfter(t, func() { program = raced(t) }, harness.Debian.Name) // that takes a minute and more
	harness.Debian.Need(t)
	job := harness.StartJob(t, harness.Debian.Job("mlp.py", "--seconds", "1000")...)
	// So small a budget demotes whatever is recorded one and all.
	tracing := harness.AttachWith(t, program, "attach", "--rotate", "1s", "--budget", "0.05%", "--pid", fmt.Sprint(job.Process.Pid))
	job.GoOn(t)
	// As long as it takes: the detector makes the tracer several times slower, and others may have the CPUs.
	demotions := "SELECT count(*) FROM warning WHERE kind = 'slice' AND detail LIKE 'recording every call of this group%%'"
	growing := &harness.Recording{Dataset: tracing.Dataset}
	for end := time.Now().Add(harness.Patience); time.Now().Before(end); time.Sleep(2 * time.Second) {
		if files, _ := filepath.Glob(filepath.Join(tracing.Dataset, "span", "*.parquet")); len(files) == 0 {
			continue // it has not begun to write
		}
		if growing.Number(t, demotions) > 0 {
			break
		}
	}
	time.Sleep(10 * time.Second) // in slices; their rows are weighed when the recording ends at the latest
	r := tracing.Interrupt(t)    // the detector's exit code is 66
	if text := tracing.Transcript(); strings.Contains(text, "DATA RACE") {
		t.Error(text)
	}
	if n := r.Number(t, demotions); n == 0 {
		t.Error("no group was demoted: the test shows nothing")
	}
	if n := r.Number(t, "SELECT count(*) FROM span WHERE weight > 1"); n == 0 {
		t.Error("no row stands for others: there were no slices")
	}
}
