package tracer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probes"
)

// A library that its owner cuts short between the moment at which it is opened and the
// one at which it is planned: without symbolize.Guard, on the planner's own goroutines
// too, the fault ends the tracer.
func TestAFileCutShortWhileItIsPlannedIsItsOwnLoss(t *testing.T) {
	contents, err := os.ReadFile(filepath.Join(buildNative(t), "libcallee-plain.so"))
	if err != nil {
		t.Fatal(err)
	}
	groups := nativeGroup("libcallee", catalog.ExitSites, callees)
	for _, left := range []int64{0, 512, 4096} {
		path := filepath.Join(t.TempDir(), "libcallee.so")
		if err := os.WriteFile(path, contents, 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := symbolize.OpenELF(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, left); err != nil {
			t.Fatal(err)
		}
		s := &Session{chosen: probes.Selection{Groups: groups}}
		if l := s.look(&plan.Source{ELF: e}, path); !errors.Is(l.err, symbolize.ErrTruncated) {
			t.Errorf("cut to %d bytes: planned %+v, %v", left, l.plan, l.err)
		}
		e.Close()
	}
}
