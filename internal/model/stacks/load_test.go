package stacks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/profile"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

var (
	step   = symbolize.Frame{Kind: symbolize.Python, Function: "step", File: "/job/train.py", Line: 12, Offset: 40}
	gemm   = symbolize.Frame{Kind: symbolize.Native, Function: "gemm", Module: "libmkl.so", BuildID: "ab", Offset: 0}
	thread = symbolize.Frame{Kind: symbolize.Native, Module: "libc.so.6", BuildID: "cd", Offset: 64}
)

// dataset has two processes: 100 with two threads, and 200.
func recorded(t *testing.T, samples []event.Sample) *dataset.DB {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	d, err := output.Create(dir, output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rank := int32(3)
	err = errors.Join(
		d.Session(event.Recording{ID: "s"}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 100, Command: "/usr/bin/python3 /job/train.py --lr 1 --epochs 5",
			Rank: &rank}}}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 2, PID: 200, Exe: "/usr/bin/sleep"}}}),
		d.Write(&event.Batch{Threads: []event.Thread{{PID: 100, TID: 101, Name: "pt;autograd"}}}),
		d.Write(&event.Batch{Stacks: []event.Stack{
			{ID: 7, Frames: []event.Frame{gemm, step, thread}, Status: event.StackComplete},
			{ID: 8, Frames: []event.Frame{gemm}, Status: "native_no_table"},
		}}),
		d.Write(&event.Batch{Samples: samples}), d.Close())
	if err != nil {
		t.Fatal(err)
	}
	db, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func someSamples() []event.Sample {
	whole, cut, missing := int64(7), int64(8), int64(9)
	yes, no := true, false
	on := func(pid, tid int32, stack *int64, gil *bool) event.Sample {
		return event.Sample{PID: pid, TID: tid, State: event.OnCPU, WeightNS: 10, StackID: stack, HoldsGIL: gil}
	}
	off := func(cause, syscall string, stack *int64) event.Sample {
		return event.Sample{PID: 100, TID: 101, State: event.OffCPU, Cause: cause, Syscall: syscall, WeightNS: 1000, StackID: stack}
	}
	return []event.Sample{
		on(100, 100, &whole, &yes), on(100, 100, &whole, &no), on(100, 101, &cut, nil), on(200, 200, &missing, nil),
		off(event.CauseSyscall, "futex", &whole), off(event.CauseFault, "", &whole), off(event.CausePreempted, "", nil),
	}
}

func load(t *testing.T, db *dataset.DB, f Filter) profile.Profile {
	t.Helper()
	p, err := Load(context.Background(), db, f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// folded are the sorted lines of a profile, root first, with their times.
func folded(p profile.Profile) string {
	sums := map[string]int64{}
	for i := range p {
		path := p[i].Titles()
		for _, f := range slices.Backward(p[i].Frames) {
			path = append(path, f.Label())
		}
		sums[strings.Join(path, ";")] += p[i].WeightNS
	}
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&b, "%s %d\n", path, sums[path])
	}
	return b.String()
}

func TestFramesComeBackAsTheyWereWritten(t *testing.T) {
	db := recorded(t, someSamples())
	p := load(t, db, Filter{PIDs: []int{100}, GIL: true})
	if len(p) != 1 || len(p[0].Frames) != 3 || p[0].Frames[0].Frame != gemm || p[0].Frames[1].Frame != step ||
		p[0].Frames[2].Frame != thread || p[0].Samples != 1 || p[0].Cut != "" {
		t.Errorf("%+v", p)
	}
}

func TestSamplesAreGroupedWhereTheyDiffer(t *testing.T) {
	db := recorded(t, someSamples())
	stack := "libc.so.6+0x40;step (train.py);gemm (libmkl.so)"
	for name, c := range map[string]struct {
		filter Filter
		want   string
	}{
		"one process needs no name": {Filter{PIDs: []int{100}}, "[stack cut: native_no_table];gemm (libmkl.so) 10\n" + stack + " 20\n"},
		"two have theirs": {Filter{}, "pid 100  rank 3 python3 train.py;[stack cut: native_no_table];gemm (libmkl.so) 10\n" +
			"pid 100  rank 3 python3 train.py;" + stack + " 20\npid 200  sleep;[stack cut: lost] 10\n"},
		"threads": {Filter{PIDs: []int{100}, Threads: true}, "thread 100;" + stack + " 20\nthread 101  pt:autograd;[stack cut: " +
			"native_no_table];gemm (libmkl.so) 10\n"},
		"one thread":  {Filter{TIDs: []int{101}}, "[stack cut: native_no_table];gemm (libmkl.so) 10\n"},
		"off the CPU": {Filter{OffCPU: true}, stack + ";page fault_[k] 1000\n" + stack + ";syscall futex_[k] 1000\npreempted_[k] 1000\n"},
	} {
		if got := folded(load(t, db, c.filter)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestNothingToShowSaysWhatToDo(t *testing.T) {
	all := someSamples()
	for _, c := range []struct {
		samples []event.Sample
		filter  Filter
		want    string
	}{
		{nil, Filter{}, "--level window"},
		{all[:4], Filter{OffCPU: true}, "omit --off-cpu"},
		{all[4:], Filter{}, "add --off-cpu"},
		{all, Filter{PIDs: []int{5}}, "has samples of pid 100, 200"},
		{all[2:], Filter{GIL: true}, "omit --gil"},
	} {
		_, err := Load(context.Background(), recorded(t, c.samples), c.filter)
		if !errors.Is(err, ErrNoSamples) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.filter, err, c.want)
		}
	}
}
