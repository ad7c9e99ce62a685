package stacks

import (
	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/python"
	"github.com/ebpfprof/ebpfprof/tracer/unwinding"
)

// PythonOf is the id of the Python frames alone of a stack of a call, by the kernel's
// name of it; 0 where it has none, or its frames have not come.
func (t *Table) PythonOf(raw uint64) int64 {
	if raw == 0 {
		return 0
	}
	known, _ := t.raw.Get(raw)
	return known.python
}

// Caller is the Python code that a call comes from.
type Caller struct {
	File string // "" where there is none
	Line int32
}

// CallerOf is the innermost Python frame of a stack of a call, by the kernel's name of it.
func (t *Table) CallerOf(raw uint64) (caller Caller, known bool) {
	stack, known := t.raw.Get(raw)
	return stack.caller, known
}

func callerOf(r *stackRecord, frames []symbolize.Frame) Caller {
	if r.OfCall == 0 {
		return Caller{}
	}
	for i := range frames {
		if frames[i].Kind == symbolize.Python {
			return Caller{frames[i].File, frames[i].Line}
		}
	}
	return Caller{}
}

func (t *Table) Knows(raw uint64) bool {
	_, ok := t.raw.Get(raw)
	return ok
}

// pythonFrames makes a row of the Python frames of a call's stack, and returns its id;
// 0 where there are none. frames are those of the whole stack, which id is of.
func (t *Table) pythonFrames(r *stackRecord, owner Owner, frames []symbolize.Frame, id int64, admitted bool) int64 {
	if r.OfCall == 0 || len(r.python) == 0 || !admitted {
		return 0
	}
	if len(r.native) == 0 && len(r.kernel) == 0 {
		return id
	}
	alone, labels := make([]symbolize.Frame, 0, len(r.python)), make([]string, 0, len(r.python))
	for i := range frames {
		if frames[i].Kind == symbolize.Python {
			alone, labels = append(alone, frames[i]), append(labels, t.naming.labels[i])
		}
	}
	status := stackStatus(unwinding.Outcome(bpf.SampleNativeOutcomeNATIVE_END), python.Outcome(r.PythonOutcome))
	id = t.identify(alone, status)
	switch first, ok := t.quota.Admit(owner, id); {
	case !ok:
		return 0
	case first:
		t.rows = append(t.rows, event.Stack{ID: id, Frames: alone, Folded: symbolize.FoldLabels(labels), Status: status})
	}
	return id
}
