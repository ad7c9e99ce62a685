package report

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/scripted"
)

// processorTime is what the process has used of its CPUs: what a busy machine does
// beside it is not in it.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkReport is of the dataset that EBPFPROF_BENCH_DATASET names, else of a
// synthetic one of a million spans: CPU time, all of it and part by part.
func BenchmarkReport(b *testing.B) {
	dir := os.Getenv("EBPFPROF_BENCH_DATASET")
	if dir == "" {
		dir = filepath.Join(b.TempDir(), "synthetic")
		if err := scripted.Synthetic(dir, 1_000_000); err != nil {
			b.Fatal(err)
		}
	}
	took := map[string]time.Duration{}
	for b.Loop() {
		began := processorTime(b)
		last, part := began, "opening"
		next := func(what string) {
			now := processorTime(b)
			took[part] += now - last
			last, part = now, what
		}
		db, err := dataset.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Build(b.Context(), db, Options{Progress: next}); err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		next("")
		took["all"] += last - began
	}
	for part, t := range took {
		b.ReportMetric(t.Seconds()/float64(b.N), "CPU-s/"+strings.ReplaceAll(part, " ", "_"))
	}
}
