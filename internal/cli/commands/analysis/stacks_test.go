package analysis

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// sampled is a dataset of 2 s on the CPU, in one stack, and 3 s in another thread.
func sampled(t *testing.T) string {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	one, two := int64(1), int64(2)
	main := symbolize.Frame{Kind: symbolize.Python, Function: "<module>", File: "/job/train.py", Line: 3, Offset: -1}
	gemm := symbolize.Frame{Kind: symbolize.Native, Function: "gemm", Module: "libmkl.so", BuildID: "ab", Offset: 64}
	err = errors.Join(
		d.Session(event.Recording{ID: "s"}),
		d.Write(&event.Batch{Stacks: []event.Stack{
			{ID: 1, Frames: []event.Frame{gemm, main}, Folded: "x", Status: event.StackComplete},
			{ID: 2, Frames: []event.Frame{main}, Folded: "y", Status: event.StackComplete},
		}}),
		d.Write(&event.Batch{Samples: []event.Sample{
			{PID: 1, TID: 1, State: event.OnCPU, WeightNS: 2e9, StackID: &one},
			{PID: 1, TID: 2, State: event.OnCPU, WeightNS: 3e9, StackID: &two},
		}}), d.Close())
	if err != nil {
		t.Fatal(err)
	}
	return d.Dir()
}

func TestStacksPrintsTheTreeAndTheFunctions(t *testing.T) {
	out, _, code, err := testcommand.Run(StacksCommand(), sampled(t), "--top", "1")
	want := `5.0 s on the CPU, 2 samples

  total     self
100.0 %   60.0 %  py  <module> (train.py)

paths left out, with less time: 1; --top shows more

   self    total
 60.0 %  100.0 %  py  <module> (train.py)
`
	if code != 0 || out != want {
		t.Errorf("%d, %v\n%s\nwant\n%s", code, err, out, want)
	}
}

func TestStacksTakesItsFlagsBehindTheDataset(t *testing.T) {
	dir := sampled(t)
	out, _, code, err := testcommand.Run(StacksCommand(), dir, "--tid", "1", "--folded")
	if want := "<module> (train.py);gemm (libmkl.so) 2000000\n"; code != 0 || out != want {
		t.Errorf("%d, %v: %q, want %q", code, err, out, want)
	}
	out, _, code, err = testcommand.Run(StacksCommand(), "--json", "--tid=1", "--tid=2", dir)
	var got stacksJSON
	if e := json.Unmarshal([]byte(out), &got); e != nil || code != 0 {
		t.Fatalf("%d, %v, %v\n%s", code, err, e, out)
	}
	if len(got.Stacks) != 2 || got.WeightNS != 5e9 || got.Stacks[0].WeightNS != 3e9 || *got.Stacks[1].Frames[0].Offset != 64 ||
		got.Stacks[1].Frames[1].Offset != nil {
		t.Errorf("%s", out)
	}
}

func TestStacksWritesAPprofFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.gz")
	out, _, code, err := testcommand.Run(StacksCommand(), sampled(t), "--pprof", file)
	if code != 0 || err != nil || out != "" {
		t.Errorf("%d, %v, %q", code, err, out)
	}
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Error(err)
	}
	_, _, code, err = testcommand.Run(StacksCommand(), sampled(t), "--pprof", filepath.Join(file, "below"))
	if code != cli.ExitFailed || err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("%d, %v", code, err)
	}
}

func TestStacksRefusesWhatItCannotShow(t *testing.T) {
	dir := sampled(t)
	for _, c := range []struct {
		code      int
		words     string
		arguments []string
	}{
		{cli.ExitUsage, "which dataset", nil},
		{cli.ExitUsage, "which dataset", []string{dir, dir}},
		{cli.ExitUsage, "--top 0", []string{dir, "--top", "0"}},
		{cli.ExitUsage, "one of --folded, --json and --pprof", []string{dir, "--folded", "--json"}},
		{cli.ExitFailed, "no samples of that process", []string{dir, "--pid", "5"}},
		{cli.ExitFailed, "no samples off the CPU", []string{dir, "--off-cpu"}},
		{cli.ExitFailed, "there is no dataset", []string{dir + ".missing"}},
	} {
		out, _, code, err := testcommand.Run(StacksCommand(), c.arguments...)
		if code != c.code || err == nil || !strings.Contains(err.Error(), c.words) || out != "" {
			t.Errorf("%q: %d, %v, %q", c.arguments, code, err, out)
		}
	}
}
