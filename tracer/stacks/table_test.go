package stacks

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testrecord"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/python"
	"github.com/ebpfprof/ebpfprof/tracer/unwinding"
)

func TestStackRecordIsRefusedWhenItsFramesDoNotFollow(t *testing.T) {
	whole := testrecord.Stack(7, 2, 1)
	if r, ok := Parse(whole); !ok || len(r.native) != 2 || len(r.kernel) != 1 || r.Id != 7 {
		t.Fatalf("a whole record: %v, %+v", ok, r)
	}
	for n := range len(whole) {
		if _, ok := Parse(whole[:n:n]); ok {
			t.Errorf("the first %d of %d bytes pass for a record", n, len(whole))
		}
	}
}

func FuzzSampleRecord(f *testing.F) {
	f.Add(testrecord.Stack(7, 2, 1))
	f.Add([]byte{byte(bpf.CallRecordKindRECORD_SAMPLE)})
	f.Fuzz(func(t *testing.T, raw []byte) {
		aligned := make([]uint64, len(raw)/8+1)
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(&aligned[0])), len(raw))
		copy(bytes, raw)
		if r, ok := Parse(bytes); ok && StackBytes+16*(len(r.native)+len(r.python)+len(r.segments))+8*len(r.kernel) > len(raw) {
			t.Errorf("%d bytes hold more frames than they can", len(raw))
		}
	})
}

// resolving is a table of stacks without any process.
func resolving(t *testing.T) (*Table, *Totals) {
	t.Helper()
	totals := &Totals{}
	s := NewTable(NewSpaces(), totals)
	return s, totals
}

func add(t *testing.T, s *Table, raw []byte) {
	t.Helper()
	r, ok := Parse(raw)
	if !ok {
		t.Fatal("a record that is none")
	}
	s.Add(&r)
}

func TestAStackHasOneRowHoweverOftenItComes(t *testing.T) {
	s, totals := resolving(t)
	if s.Resolve(7) != nil || totals.Unresolved != 1 {
		t.Errorf("a stack whose frames have not come: %+v", totals)
	}
	add(t, s, testrecord.Stack(7, 2, 0))
	add(t, s, testrecord.Stack(7, 2, 0)) // the next epoch
	add(t, s, testrecord.Stack(8, 2, 0)) // the same frames in another process
	a, b := s.Resolve(7), s.Resolve(8)
	if a == nil || b == nil || *a != *b || *a < 0 || len(s.rows) != 1 || s.rows[0].ID != *a {
		t.Errorf("ids %v and %v, rows %+v", a, b, s.rows)
	}
	if totals.Complete != 2 || totals.Unresolved != 1 {
		t.Errorf("totals %+v", totals)
	}
}

func TestAStacksIdIsOfItsFramesAndNotOfTheirNames(t *testing.T) {
	s, _ := resolving(t)
	native := symbolize.Frame{Kind: symbolize.Native, Module: "libc.so.6", BuildID: "ab", Offset: 16}
	line := symbolize.Frame{Kind: symbolize.Python, Function: "step", File: "train.py", Line: 3, Offset: -1}
	id := s.identify([]symbolize.Frame{native, line}, event.StackComplete)
	if id != 2919465552201993402 {
		t.Errorf("the id of known frames is %d: stacks of other recordings have the old ones", id)
	}
	named := native
	named.Function, named.Module = "read", "/lib/libc.so.6"
	if s.identify([]symbolize.Frame{named, line}, event.StackComplete) != id {
		t.Error("a name that was found later changes the id")
	}
	for what, frames := range map[string][]symbolize.Frame{
		"another order": {line, native}, "a frame less": {native},
		"another line": {native, {Kind: symbolize.Python, Function: "step", File: "train.py", Line: 4, Offset: -1}},
	} {
		if s.identify(frames, event.StackComplete) == id {
			t.Errorf("%s has the same id", what)
		}
	}
	if s.identify([]symbolize.Frame{native, line}, "native_no_table") == id {
		t.Error("an incomplete stack has the id of the complete one")
	}
}

func TestStatusNamesBothWalks(t *testing.T) {
	end, noTable := unwinding.Outcome(bpf.SampleNativeOutcomeNATIVE_END), unwinding.Outcome(bpf.SampleNativeOutcomeNATIVE_NO_TABLE)
	none, cut := python.Outcome(bpf.SamplePythonOutcomePYTHON_NO_THREAD_STATE), python.Outcome(bpf.SamplePythonOutcomePYTHON_MAX_FRAMES)
	for want, got := range map[string]string{
		event.StackComplete:                 stackStatus(end, none),
		"native_no_table":                   stackStatus(noTable, none),
		"python_max_frames":                 stackStatus(end, cut),
		"native_no_table,python_max_frames": stackStatus(noTable, cut),
	} {
		if got != want {
			t.Errorf("status %q, want %q", got, want)
		}
	}
	if detail := StatusDetail("native_no_table,python_max_frames"); strings.Count(detail, ";") != 1 {
		t.Errorf("in a sentence: %s", detail)
	}
}

func TestAStackSaysHowManyFramesNoTableLedTo(t *testing.T) {
	s, _ := resolving(t)
	r, ok := Parse(testrecord.Stack(7, 4, 0))
	if !ok {
		t.Fatal("a record that is none")
	}
	r.native[1].Flags = uint32(bpf.SampleNativeFlagNATIVE_INFERRED)
	r.native[2].Flags = uint32(bpf.SampleNativeFlagNATIVE_FRAME_POINTER | bpf.SampleNativeFlagNATIVE_REPAIRED)
	r.native[3].Flags = uint32(bpf.SampleNativeFlagNATIVE_SIGNAL)
	s.Add(&r)
	if len(s.rows) != 1 || s.rows[0].Inferred != 2 {
		t.Errorf("rows %+v", s.rows)
	}
}

// BenchmarkAStackThatIsNew is what user space does for a stack whose frames have
// names already.
func BenchmarkAStackThatIsNew(b *testing.B) {
	frames := make([]symbolize.Frame, 60)
	for i := range frames {
		frames[i] = symbolize.Frame{Kind: symbolize.Native, Function: "at::native::some_function_of_a_framework(at::Tensor const&)",
			Module: "libtorch_cpu.so", BuildID: "0123456789abcdef0123456789abcdef01234567", Offset: int64(i)}
		if i%4 == 0 {
			frames[i] = symbolize.Frame{Kind: symbolize.Python, Function: "forward",
				File: "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", Line: int32(i), Offset: -1}
		}
	}
	table := NewTable(nil, &Totals{})
	b.ReportAllocs()
	for b.Loop() {
		table.identify(frames, event.StackComplete)
		symbolize.Fold(frames)
	}
}
