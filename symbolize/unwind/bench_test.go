package unwind

import (
	"crypto/sha256"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

func redigest(data []byte) {
	(*header)(unsafe.Pointer(&data[0])).digest = sha256.Sum256(data[digested:])
}

func libtorch(b *testing.B) string {
	found, _ := filepath.Glob("/usr/lib/*-linux-gnu/libtorch_cpu.so.1.13.0")
	if len(found) == 0 {
		b.Skip("no libtorch_cpu.so here: install python3-torch")
	}
	return found[0]
}

func BenchmarkCompile(b *testing.B) {
	path := libtorch(b)
	for b.Loop() {
		t := compileFile(b, path)
		b.ReportMetric(float64(len(t.Leaves))/float64(t.Rows), "bytes/row")
		b.ReportMetric(float64(t.Rows), "rows")
	}
}

func BenchmarkCached(b *testing.B) {
	e, err := elf.Open(libtorch(b))
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	cache := Cache{Directory: b.TempDir()}
	if _, err := cache.Table(e); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		t, err := cache.Table(e)
		if err != nil {
			b.Fatal(err)
		}
		t.Close()
	}
}
