package kernel

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testkernel"
	"github.com/ebpfprof/ebpfprof/tracer/features"
)

// loaded loads the programs, or skips where that is not possible.
func loaded(t *testing.T) *Programs {
	t.Helper()
	testkernel.Need(t)
	k, err := Load(Sizes{Ring: 1 << 20}, features.Probe())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}
