package calltree

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// BenchmarkTree opens a dataset, checks it and makes its tree, as `ebpfprof tree` does.
func BenchmarkTree(b *testing.B) {
	dir := scripted.Benchmarked(b)
	scripted.ForgetPeak(b)
	began := scripted.ProcessorTime(b)
	for b.Loop() {
		db, err := dataset.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := lint.Run(b.Context(), db); err != nil {
			b.Fatal(err)
		}
		if _, err := Load(b.Context(), db, Options{}); err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((scripted.ProcessorTime(b)-began).Seconds()/float64(b.N), "CPU-s/op")
	b.ReportMetric(scripted.PeakMiB(b), "MiB-peak")
}
