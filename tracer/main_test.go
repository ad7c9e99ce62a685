package tracer

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testkernel"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// testKernel loads the programs, or skips where that is not possible. CI runs
// these tests through internal/dev/testrun, which fails when a test was skipped
// for a feature that the kernel must have.
func testKernel(t *testing.T) *kernel.Programs {
	t.Helper()
	needKernel(t)
	k, err := kernel.Load(kernel.Sizes{Ring: 1 << 20}, features.Probe())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

func needKernel(t *testing.T) {
	t.Helper()
	testkernel.Need(t)
}
