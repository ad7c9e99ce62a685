package tracer

import (
	"os"
	"testing"
)

// testKernel loads the programs, or skips where that is not possible. CI runs
// these tests through internal/testrun, which fails when a test was skipped
// for a feature that the kernel must have.
func testKernel(t *testing.T) *kernel {
	t.Helper()
	needKernel(t)
	k, err := loadKernel(kernelSizes{ring: 1 << 20}, ProbeFeatures())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

func needKernel(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("kernel: not in -short")
	}
	if os.Geteuid() != 0 {
		t.Skip("kernel: needs root")
	}
	if err := ProbeFeatures().Check(); err != nil {
		t.Skipf("kernel: %v", err)
	}
}
