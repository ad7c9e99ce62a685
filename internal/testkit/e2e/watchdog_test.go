package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// TestNCCLsWatchdogTellsWhatHasEnded: of seven collectives of a stub of ProcessGroupNCCL
// the device ends five. The other two are open, while it lasts, though the job waits for
// nothing; then their time runs out, which is told of both, and is no end.
func TestNCCLsWatchdogTellsWhatHasEnded(t *testing.T) {
	const ended, last = 5, 7
	harness.Beside(t, "nccl10d")
	job := harness.Start(t, stub(t, "c10dcalls"))
	job.Line(t, "ready ")
	tracing := harness.Attach(t, append([]string{"--probe", "collective"}, harness.Unbudgeted...), job.Process.Pid)
	job.GoOn(t)
	job.Line(t, "hanging")
	live := &harness.Recording{Dataset: tracing.Dataset}
	const open = "SELECT category, name, sequence_number, completed_number, rank, ranks FROM open_call ORDER BY sequence_number"
	want := fmt.Sprintf("[[work nccl::allreduce %d %d 1 4] [work nccl::allreduce %d %d 1 4]]", ended+1, ended, last, ended)
	for deadline := time.Now().Add(harness.Patience); ; time.Sleep(100 * time.Millisecond) {
		got := "nothing is written yet"
		if written, _ := filepath.Glob(filepath.Join(tracing.Dataset, "open_call", "2*.parquet")); len(written) > 0 {
			got = fmt.Sprint(live.Rows(t, open))
		}
		if got == want {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("open: %s\nwant  %s", got, want)
		}
	}
	job.GoOn(t)
	if code, err := job.Wait(); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s", code, err, job.Transcript())
	}
	r := tracing.Finish(t)
	r.Lossless(t)
	for sql, want := range map[string]string{
		"SELECT count(*) FROM open_call": "[[0]]",
		// Each wait has an edge from the call that asked for what it waits for.
		"SELECT count(*) FROM flow JOIN span i ON i.span_id = from_span_id JOIN span w ON w.span_id = to_span_id WHERE kind = " +
			"'launch_sync' AND i.name = 'nccl::allreduce' AND w.name = 'WorkNCCL::wait' AND i.sequence_number = " +
			"w.sequence_number": fmt.Sprintf("[[%d]]", last),
		"SELECT issued_number, completed_number FROM communicator":                        fmt.Sprintf("[[%d %d]]", last, ended),
		"SELECT count(*), count(sequence_number) FROM span WHERE name = 'WorkNCCL::wait'": fmt.Sprintf("[[%d %[1]d]]", last),
		"SELECT name, string_agg(sequence_number, ' ' ORDER BY sequence_number) FROM span WHERE name LIKE '%%Exception' GROUP BY " +
			"1 ORDER BY 1": fmt.Sprintf(
			"[[WorkNCCL::handleException %d %d] [WorkNCCL::setException %[1]d %[2]d]]", ended+1, last),
	} {
		if got := fmt.Sprint(r.Rows(t, sql)); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}
