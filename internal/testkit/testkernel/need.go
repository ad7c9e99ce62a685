// Package testkernel is for tests that need a kernel which loads the tracer's programs.
package testkernel

import (
	"os"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/features"
)

// Need skips a test where no program can be loaded. CI runs tests through
// internal/dev/testrun, which fails when one was skipped for a feature that the kernel
// must have.
func Need(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("kernel: not in -short")
	}
	if os.Geteuid() != 0 {
		t.Skip("kernel: needs root")
	}
	if err := features.Probe().Check(); err != nil {
		t.Skipf("kernel: %v", err)
	}
}
