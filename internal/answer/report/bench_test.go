package report

import (
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// BenchmarkReport is all of the report and its parts, in CPU time.
func BenchmarkReport(b *testing.B) {
	dir := scripted.Benchmarked(b)
	took := map[string]time.Duration{}
	scripted.ForgetPeak(b)
	for b.Loop() {
		began := scripted.ProcessorTime(b)
		last, part := began, "opening"
		next := func(what string) {
			now := scripted.ProcessorTime(b)
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
	b.ReportMetric(scripted.PeakMiB(b), "MiB-peak")
}
