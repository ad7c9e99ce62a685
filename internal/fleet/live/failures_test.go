package live

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// failing is what notes failures of rank 1, process 101, whose main thread was seen last in
// train.py.
func failing() (*Evidence, *Failures) {
	e := ranked("a", 3, 1)
	stack := int64(9)
	e.Write(&event.Batch{Stacks: []event.Stack{{ID: stack, Status: event.StackComplete, Frames: []symbolize.Frame{
		{Kind: symbolize.Native, Function: "read", Module: "libc.so.6"},
		{Kind: symbolize.Python, Function: "forward", File: "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", Line: 7},
		{Kind: symbolize.Python, Function: "step", File: "/job/train.py", Line: 88},
	}}}})
	e.Write(&event.Batch{Samples: []event.Sample{{PID: 101, TID: 101, StackID: &stack}}})
	return e, NewFailures(e)
}

func sentences(f *Failures) (all []string) {
	for _, one := range f.Take() {
		all = append(all, fmt.Sprintf("%s %d %s at %s", one.Kind, one.Rank, one.Sentence, one.Place))
	}
	return all
}

func TestWhatFailsIsNotedWithItsPlace(t *testing.T) {
	_, f := failing()
	bytes, device, code, stack := int64(1<<33), int32(2), int64(700), int64(9)
	f.Write(&event.Batch{Memory: []event.Memory{
		{PID: 101, Action: "alloc", Bytes: &bytes},
		{PID: 101, Space: "host", Level: "allocator", Action: "out_of_memory", Bytes: &bytes, StackID: &stack},
		{PID: 101, Space: "device", Level: "allocator", Action: "out_of_memory", DeviceID: &device},
		{PID: 101, Space: "host", Level: "kernel", Action: "out_of_memory"},
	}})
	sync := &event.Call{Layer: "driver", Category: "sync", Runtime: "cuda", Name: "cuStreamSynchronize"}
	failed := event.Span{PID: 101, Call: sync, Status: event.StatusError, PythonStackID: stack, Detail: &event.Detail{ErrorCode: &code}}
	fine := event.Span{PID: 101, Call: sync, Status: event.StatusOK, Detail: &event.Detail{}}
	f.Write(&event.Batch{Spans: []event.Span{fine, failed, failed}})
	want := []string{
		"out_of_memory 1 rank 1 (process 101) found no room for 8589934592 bytes of host memory at train.py:88 (step)",
		"out_of_memory 1 rank 1 (process 101) found no room in the memory of device 2 at ",
		"out_of_memory 1 rank 1 (process 101) is killed by the kernel for memory at ",
		"runtime_error 1 rank 1 (process 101) got error 700 from cuStreamSynchronize at train.py:88 (step)",
	}
	if got := sentences(f); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := sentences(f); got != nil {
		t.Errorf("told again: %q", got)
	}
}

// A job that is told to stop has not failed; a compiler's child that exits with 1 neither.
func TestProcessesThatFailAreToldFromThoseThatEnd(t *testing.T) {
	framework := "torch"
	for _, c := range []struct {
		code, signal int32 // -1: none
		framework    bool
		want         string
	}{
		{0, -1, true, ""}, {1, -1, true, "exited with code 1"}, {143, -1, true, ""}, {139, -1, true, "exited with code 139"},
		{-1, 9, true, "was ended by signal 9 (SIGKILL)"}, {-1, 11, true, "was ended by signal 11 (SIGSEGV)"},
		{-1, 15, true, ""}, {-1, 2, true, ""}, {-1, 1, true, ""}, {1, -1, false, ""}, {-1, -1, true, ""},
	} {
		_, f := failing()
		at := int64(5)
		p := event.Process{PID: 101, EndedNS: &at}
		if c.framework {
			p.Framework = &framework
		}
		if c.code >= 0 {
			p.ExitCode = &c.code
		}
		if c.signal >= 0 {
			p.ExitSignal = &c.signal
		}
		f.Write(&event.Batch{Processes: []event.Process{p}})
		var want []string
		if c.want != "" {
			want = []string{"died 1 rank 1 (process 101) " + c.want + " at train.py:88 (step)"}
		}
		if got := sentences(f); !slices.Equal(got, want) {
			t.Errorf("code %d, signal %d: %q, want %q", c.code, c.signal, got, want)
		}
	}
}

func TestFailuresAreBounded(t *testing.T) {
	_, f := failing()
	for range 10 * mostFailures {
		f.Write(&event.Batch{Memory: []event.Memory{{PID: 101, Action: "out_of_memory", Space: "host"}}})
	}
	if got, left := len(f.Take()), f.Left(); got != mostFailures || left != 9*mostFailures || f.Left() != 0 {
		t.Errorf("%d are noted and %d were left", got, left)
	}
	for code := range int64(3 * mostErrors) {
		f.Write(&event.Batch{Spans: []event.Span{{PID: 101, Call: work, Status: event.StatusError, Detail: &event.Detail{ErrorCode: &code}}}})
		f.Take()
	}
	if len(f.errors) > mostErrors {
		t.Errorf("%d errors are kept", len(f.errors))
	}
	at := int64(5)
	framework := "torch"
	f.Write(&event.Batch{Processes: []event.Process{{PID: 101, EndedNS: &at, Framework: &framework}}})
	if len(f.errors) != 0 {
		t.Errorf("%d errors are kept of a process that has ended", len(f.errors))
	}
}
