package export

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// sampled has two stacks that differ only in a line, and one whose function has a name with control characters.
func sampled(t *testing.T) *dataset.DB {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	main := symbolize.Frame{Kind: symbolize.Python, Function: "<module>", File: "/job/train.py", Line: 3, Offset: -1}
	later := main
	later.Line = 9
	gemm := symbolize.Frame{Kind: symbolize.Native, Function: "gemm", Module: "libmkl.so", Offset: 64}
	hostile := symbolize.Frame{Kind: symbolize.Python, Function: "a;b\n\x1b[31m", File: "/job/train.py", Line: 1, Offset: -1}
	sample := func(stack int64, ns int64) event.Sample {
		return event.Sample{TSNS: 1e18, PID: 1, TID: 1, State: event.OnCPU, WeightNS: ns, StackID: &stack}
	}
	err = errors.Join(
		d.Session(event.Recording{ID: "s"}),
		d.Write(&event.Batch{Stacks: []event.Stack{
			{ID: 1, Frames: []event.Frame{gemm, main}, Folded: "x", Status: event.StackComplete},
			{ID: 2, Frames: []event.Frame{gemm, later}, Folded: "y", Status: event.StackComplete},
			{ID: 3, Frames: []event.Frame{hostile, main}, Folded: "z", Status: "truncated"},
		}}),
		d.Write(&event.Batch{Samples: []event.Sample{sample(1, 2e9), sample(2, 1e9), sample(3, 5e6)}}), d.Close())
	if err != nil {
		t.Fatal(err)
	}
	return opened(t, d.Dir())
}

func TestFoldedStacksAreMergedEscapedMicroseconds(t *testing.T) {
	path, _ := written(t, sampled(t), "folded", Options{GroupBy: "cpu"})
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `<module> (train.py);gemm (libmkl.so) 3000000
[stack cut: truncated];<module> (train.py);a:b \x1b[31m (train.py) 5000
`
	if string(got) != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}

func TestFoldedLinesAreRootFirstInMicroseconds(t *testing.T) {
	var b strings.Builder
	if err := WriteFolded(&b, training()); err != nil {
		t.Fatal(err)
	}
	want := `[stack cut: native_no_table];lost (libtorch_cpu.so) 1000000
_start (libtorch_cpu.so);<module> (train.py);a (libtorch_cpu.so);b (libtorch_cpu.so);c (libtorch_cpu.so);d (libtorch_cpu.so);gemm (libtorch_cpu.so) 5000000
_start (libtorch_cpu.so);<module> (train.py);loss (train.py);gemm (libtorch_cpu.so) 2000000
_start (libtorch_cpu.so);<module> (train.py);loss (train.py);loss (train.py) 2000000
`
	if b.String() != want {
		t.Errorf("\n%s\nwant\n%s", b.String(), want)
	}
}
