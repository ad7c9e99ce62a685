package top

import (
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

var start = time.Unix(1000, 0)

func py(function string) symbolize.Frame {
	return symbolize.Frame{Kind: symbolize.Python, Function: function, File: "/job/train.py", Line: 3, Offset: -1}
}

func native(function string) symbolize.Frame {
	return symbolize.Frame{Kind: symbolize.Native, Function: function, Module: "libmkl.so", Offset: 64}
}

// second is one second of a job: thread 1 half in gemm below step, half in
// recursion, thread 2 without Python.
func second(m *Meter) {
	one, two, three, gil := int64(1), int64(2), int64(3), true
	m.Write(&event.Batch{Threads: []event.Thread{{TID: 2, Name: "pt_autograd_0"}}})
	m.Write(&event.Batch{Stacks: []tracer.Stack{
		{ID: 1, Frames: []symbolize.Frame{native("gemm"), py("step"), py("<module>")}},
		{ID: 2, Frames: []symbolize.Frame{py("fib"), py("fib"), py("<module>")}},
		{ID: 3, Frames: []symbolize.Frame{native("gemm")}},
	}})
	half := int64(500 * time.Millisecond)
	m.Write(&event.Batch{Samples: []tracer.Sample{
		{TID: 1, State: tracer.OnCPU, WeightNS: half, StackID: &one},
		{TID: 1, State: tracer.OnCPU, WeightNS: half, StackID: &two, HoldsGIL: &gil},
		{TID: 2, State: tracer.OnCPU, WeightNS: half, StackID: &three},
		{TID: 2, State: tracer.OffCPU, WeightNS: half, StackID: &three},
	}})
}

func functionsOf(v View) map[string]Function {
	found := map[string]Function{}
	for _, f := range v.Functions {
		found[f.Label] = f
	}
	return found
}

func TestSharesAreOfTheTimeSinceTheLastLook(t *testing.T) {
	m := NewMeter(Options{}, start)
	second(m)
	v := m.Look(start.Add(time.Second))
	if v.GIL != 0.5 || v.Active != 1.5 || v.Samples != 3 || len(v.Threads) != 2 || v.Threads[0].TID != 1 ||
		v.Threads[1] != (Thread{2, "pt_autograd_0", 0.5, 0}) {
		t.Errorf("%+v", v)
	}
	for label, want := range map[string]Function{
		"step (train.py)":                     {Own: 0.5, Total: 0.5, OwnTime: 500 * time.Millisecond, TotalTime: 500 * time.Millisecond},
		"fib (train.py)":                      {Own: 0.5, Total: 0.5, OwnTime: 500 * time.Millisecond, TotalTime: 500 * time.Millisecond},
		"<module> (train.py)":                 {Total: 1, TotalTime: time.Second},
		"[no Python in thread pt_autograd_0]": {Own: 0.5, Total: 0.5, OwnTime: 500 * time.Millisecond, TotalTime: 500 * time.Millisecond},
	} {
		got := functionsOf(v)[label]
		got.Label, got.Kind = "", ""
		if got != want {
			t.Errorf("%s: %+v, want %+v", label, got, want)
		}
	}
	later := m.Look(start.Add(3 * time.Second))
	if f := functionsOf(later)["step (train.py)"]; f.Own != 0 || f.OwnTime != 500*time.Millisecond || later.GIL != 0 || later.Active != 0 {
		t.Errorf("two idle seconds later: %+v, %+v", f, later)
	}
	m.Reset(start.Add(3 * time.Second))
	if v := m.Look(start.Add(4 * time.Second)); len(v.Functions) != 0 || v.Elapsed != time.Second {
		t.Errorf("after a reset: %+v", v)
	}
}

func TestNativeFunctionsShowWhenAskedFor(t *testing.T) {
	m := NewMeter(Options{Native: true}, start)
	second(m)
	found := functionsOf(m.Look(start.Add(time.Second)))
	if f := found["gemm (libmkl.so)"]; f.Own != 1 || found["step (train.py)"].Own != 0 || found["step (train.py)"].Total != 0.5 {
		t.Errorf("%+v", found)
	}
}

func TestSamplesWithoutAStackAreShownAsSuch(t *testing.T) {
	m := NewMeter(Options{}, start)
	missing, empty := int64(9), int64(10)
	m.Write(&event.Batch{Stacks: []tracer.Stack{{ID: 10, Status: "native_no_process"}}})
	m.Write(&event.Batch{Samples: []tracer.Sample{{TID: 1, State: tracer.OnCPU, WeightNS: 1e9, StackID: &empty}}})
	m.Write(&event.Batch{Samples: []tracer.Sample{{TID: 1, State: tracer.OnCPU, WeightNS: 1e9, StackID: &missing},
		{TID: 1, State: tracer.OnCPU, WeightNS: 1e9}}})
	if f := functionsOf(m.Look(start.Add(time.Second)))["[no stack]"]; f.Own != 3 {
		t.Errorf("%+v", f)
	}
}

func TestThePageFitsTheTerminal(t *testing.T) {
	m := NewMeter(Options{}, start)
	second(m)
	v := m.Look(start.Add(time.Second))
	lines := Page{Title: strings.Repeat("python3 train.py ", 20), Width: 60, Height: 9, Order: ByOwn, Color: true}.Lines(v)
	if len(lines) > 8 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		plain := strings.NewReplacer("\x1b[7m", "", "\x1b[0m", "").Replace(line)
		if n := len([]rune(plain)); n > 59 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if !strings.Contains(strings.Join(lines, "\n"), "▼%own") {
		t.Errorf("%q", lines)
	}
}

func TestThePlainPageIsStable(t *testing.T) {
	m := NewMeter(Options{}, start)
	second(m)
	got := strings.Join(Page{Title: "pid 7", Order: ByTotal, Functions: 2}.Lines(m.Look(start.Add(time.Second))), "\n")
	want := `pid 7
1s  3 samples  GIL 50.0%  active 150.0%  threads 2

   100.0% active     50.0% GIL   (1)
    50.0% active      0.0% GIL  pt_autograd_0 (2)

     %own   ▼%total       own     total  function
     0.0%    100.0%     0.00s     1.00s  <module> (train.py)
    50.0%     50.0%     0.50s     0.50s  [no Python in thread pt_autograd_0]`
	if got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}

func TestEveryOrderPutsTheMostFirst(t *testing.T) {
	v := View{Functions: []Function{{Label: "a", Own: 1, OwnTime: 1}, {Label: "b", Total: 1, TotalTime: 1}, {Label: "c", OwnTime: 3},
		{Label: "d", TotalTime: 4}}}
	for order, want := range map[Order]string{ByOwn: "a", ByTotal: "b", ByOwnTime: "c", ByTotalTime: "d"} {
		if v.Sort(order); v.Functions[0].Label != want {
			t.Errorf("order %d: %+v", order, v.Functions)
		}
	}
}
