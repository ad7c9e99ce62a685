package job

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

// A library that its owner cuts short between the moment at which it is opened and the
// one at which it is planned: without elf.Guard, on the planner's own goroutines
// too, the fault ends the tracer.
func TestAFileCutShortWhileItIsPlannedIsItsOwnLoss(t *testing.T) {
	native := filepath.Join("..", "..", "testdata", "native")
	if out, err := exec.Command("make", "-s", "-C", native).CombinedOutput(); err != nil {
		t.Fatalf("building the native programs: %v\n%s", err, out)
	}
	contents, err := os.ReadFile(filepath.Join(native, "build", "libcallee-plain.so"))
	if err != nil {
		t.Fatal(err)
	}
	groups := []spec.Group{{Name: "native", Functions: []spec.Function{
		{Library: "libcallee", Symbol: "callee_plain", Exact: true, Action: spec.Span, End: spec.ExitSites},
		{Library: "libcallee", Symbol: "callee_branchy", Exact: true, Action: spec.Span, End: spec.ExitSites},
	}}}
	for _, left := range []int64{0, 512, 4096} {
		path := filepath.Join(t.TempDir(), "libcallee.so")
		if err := os.WriteFile(path, contents, 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, left); err != nil {
			t.Fatal(err)
		}
		j := New(Config{Groups: groups})
		if l := j.look(&plan.Source{ELF: e}, path); !errors.Is(l.err, elf.ErrTruncated) {
			t.Errorf("cut to %d bytes: planned %+v, %v", left, l.plan, l.err)
		}
		e.Close()
	}
}
