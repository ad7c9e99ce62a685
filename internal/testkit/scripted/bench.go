package scripted

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// million is how many spans an ordinary recording has.
const million = 1_000_000

// Benchmarked is the dataset that EBPFPROF_BENCH_DATASET names, else a synthetic one of
// as many spans as EBPFPROF_BENCH_SPANS says, or a million.
func Benchmarked(b *testing.B) (dir string) {
	b.Helper()
	if dir = os.Getenv("EBPFPROF_BENCH_DATASET"); dir != "" {
		return dir
	}
	spans := million
	if said := os.Getenv("EBPFPROF_BENCH_SPANS"); said != "" {
		n, err := strconv.Atoi(said)
		if err != nil {
			b.Fatalf("EBPFPROF_BENCH_SPANS: %v", err)
		}
		spans = n
	}
	dir = filepath.Join(b.TempDir(), "synthetic")
	if err := Synthetic(dir, spans); err != nil {
		b.Fatal(err)
	}
	return dir
}

// ProcessorTime is what the process has used of its CPUs: what a busy machine does
// beside it is not in it.
func ProcessorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// ForgetPeak begins a new peak of the process's memory.
func ForgetPeak(b *testing.B) {
	b.Helper()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
}

var peak = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// PeakMiB is the most memory that the process had since ForgetPeak.
func PeakMiB(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	found := peak.FindSubmatch(status)
	if found == nil {
		b.Fatal("the kernel tells no peak")
	}
	kib, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}
