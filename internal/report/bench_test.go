package report

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// BenchmarkReport is of the dataset that EBPFPROF_BENCH_DATASET names, part by part.
func BenchmarkReport(b *testing.B) {
	dir := os.Getenv("EBPFPROF_BENCH_DATASET")
	if dir == "" {
		b.Skip("EBPFPROF_BENCH_DATASET names no dataset")
	}
	for b.Loop() {
		db, err := dataset.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		last, name := time.Now(), "opening"
		_, err = Build(b.Context(), db, Options{Progress: func(what string) {
			b.ReportMetric(float64(time.Since(last).Milliseconds()), "ms/"+strings.ReplaceAll(name, " ", "_"))
			last, name = time.Now(), what
		}})
		b.ReportMetric(float64(time.Since(last).Milliseconds()), "ms/"+strings.ReplaceAll(name, " ", "_"))
		if err != nil {
			b.Fatal(err)
		}
		db.Close()
	}
}
