package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Debian's HIP runtime, without a device: every call is refused, and the
// recording says with which status.
func TestRefusedCallsOfARealHIPHaveTheirStatus(t *testing.T) {
	needKernel(t)
	native := filepath.Join("..", "..", "testdata", "native")
	if out, err := exec.Command("make", "-s", "-C", native).CombinedOutput(); err != nil {
		t.Fatalf("building the native programs: %v\n%s", err, out)
	}
	const library = "libamdhip64.so.5"
	job := start(t, filepath.Join(native, "build", "hiprefused"), library, "wait")
	job.until(t, "word that it is ready", func(out []string, errs string) bool {
		return hasLine(out, "ready ") || strings.Contains(errs, library)
	})
	if errs := job.transcript(); strings.Contains(errs, "cannot open shared object") {
		t.Skip("libamdhip64-5 is not installed: run `make deps`")
	}
	tracing := attach(t, append([]string{"--probe", hipGroups}, unbudgeted...), job.Process.Pid)
	job.goOn(t)
	if code, err := job.wait(); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s", code, err, job.transcript())
	}
	r := tracing.finish(t)
	want := job.expectations(t).calls
	// The runtime may call its own exported functions; those are inside a call.
	rows := r.rows(t, "SELECT name, category, status, error_code FROM span WHERE runtime = 'hip' AND parent_id IS NULL ORDER BY ts_ns")
	if len(rows) != len(want) || len(want) == 0 {
		t.Fatalf("%d calls recorded, %d made", len(rows), len(want))
	}
	for i, call := range want {
		status, code := "error", call.columns["code"]
		if code == "0" {
			status, code = "ok", "<nil>"
		}
		name := call.symbol
		if call.category == "launch" { // of a host function that is none
			name = "kernel of hiprefused"
		}
		got, told := fmt.Sprint(rows[i]), fmt.Sprintf("[%s %s %s %s]", name, call.category, status, code)
		if got != told {
			t.Errorf("call %d: recorded %s, the program got %s", i, got, told)
		}
	}
	if n := r.number(t, "SELECT count(*) FROM memory"); n != 0 {
		t.Errorf("%d changes of memory recorded, though every allocation was refused", n)
	}
}
