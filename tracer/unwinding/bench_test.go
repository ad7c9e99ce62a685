package unwinding

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

// BenchmarkCompileInferring makes the table of PyPI's libtorch_cpu: 346,000
// descriptions, and 28 MB of code that has none.
func BenchmarkCompileInferring(b *testing.B) {
	home, _ := os.UserHomeDir()
	cache := cmp.Or(os.Getenv("EBPFPROF_CACHE"), filepath.Join(home, ".cache", "ebpfprof"))
	found, _ := filepath.Glob(filepath.Join(cache, "torch-venv/lib/python3.*/site-packages/torch/lib/libtorch_cpu.so"))
	if len(found) == 0 {
		b.Skip("no PyTorch of PyPI's here: make torch")
	}
	e, err := elf.Open(found[0])
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	for b.Loop() {
		if _, err := unwind.Compile(e, Infer); err != nil {
			b.Fatal(err)
		}
	}
}
