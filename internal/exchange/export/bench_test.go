package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/exchange/importer"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// madeUp is a trace of about so many megabytes: steps of 40 operators with a
// launch and a kernel each.
func madeUp(b *testing.B, megabytes int64) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "trace.json")
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	out, size, at := bufio.NewWriter(file), int64(0), int64(1)
	write := func(format string, args ...any) {
		n, _ := fmt.Fprintf(out, format, args...)
		size += int64(n)
	}
	write("{\"traceEvents\": [\n")
	for step := 1; size < megabytes<<20; step++ {
		begin := at
		for i := range 40 {
			write(`{"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 9, "tid": 9, "ts": %d.250, "dur": 30.5, "args": {"External id": %d, `+
				`"Input Dims": [[512], [141, 512], [512, 512], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"], "Ev Idx": %d}},`+"\n", at, at, i)
			write(`{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": %d.500, "dur": 6.125, "args": {"cbid": 211, "correlation": %d}},`+"\n", at+5, at)
			write(`{"ph": "X", "cat": "kernel", "name": "void gemm_%d<float>(float*)", "pid": 0, "tid": 7, "ts": %d.750, "dur": 20.375, "args": {"External id": %d, "device": 0, "context": 1, `+
				`"stream": 7, "correlation": %d, "grid": [564, 1, 1], "block": [128, 1, 1]}},`+"\n", i, at+20, at, at)
			at += 40
		}
		write(`{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 9, "tid": 9, "ts": %d, "dur": %d},`+"\n", step, begin,
			at-begin)
	}
	write("{\"ph\": \"i\", \"name\": \"end\", \"ts\": 1}\n]}\n")
	if err := out.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

func BenchmarkImportOf100MB(b *testing.B) {
	path := madeUp(b, 100)
	b.SetBytes(100 << 20)
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "d")
		if _, err := importer.Import(context.Background(), []string{path}, dir, importer.Options{}); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExport is of an imported trace with devices, and of a recording.
func BenchmarkExport(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "d")
	if _, err := importer.Import(context.Background(), []string{madeUp(b, 100)}, dir, importer.Options{}); err != nil {
		b.Fatal(err)
	}
	b.Run("imported", func(b *testing.B) { exports(b, dir) })
	b.Run("recorded", func(b *testing.B) { exports(b, scripted.Benchmarked(b)) })
}

func exports(b *testing.B, dir string) {
	db, err := dataset.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for _, format := range []string{"perfetto", "kineto"} {
		b.Run(format, func(b *testing.B) {
			var spans int64
			scripted.ForgetPeak(b)
			began := scripted.ProcessorTime(b)
			for b.Loop() {
				r, err := Write(b.Context(), db, io.Discard, format, Options{})
				if err != nil {
					b.Fatal(err)
				}
				spans += r.Slices
			}
			b.ReportMetric(float64(spans)/b.Elapsed().Seconds(), "spans/s")
			b.ReportMetric(float64(spans)/(scripted.ProcessorTime(b)-began).Seconds(), "spans/CPU-s")
			b.ReportMetric(scripted.PeakMiB(b), "MiB-peak")
		})
	}
}
