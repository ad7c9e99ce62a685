package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/scripted"
)

// BenchmarkReportOfAMillionSpans is of a synthetic dataset.
func BenchmarkReportOfAMillionSpans(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "synthetic")
	if err := scripted.Synthetic(dir, 1_000_000); err != nil {
		b.Fatal(err)
	}
	if keep := os.Getenv("EBPFPROF_BENCH_KEEP"); keep != "" {
		if err := os.CopyFS(keep, os.DirFS(dir)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		db, err := dataset.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Build(b.Context(), db, Options{}); err != nil {
			b.Fatal(err)
		}
		db.Close()
	}
}
