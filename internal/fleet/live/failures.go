package live

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/model/usercode"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// FailureKind says what has gone wrong.
type FailureKind string

// The kinds.
const (
	// OutOfMemory: an allocator found no room, or the kernel kills the process for memory.
	OutOfMemory FailureKind = "out_of_memory"
	// RuntimeError: a call of a runtime or a library of collectives returned an error.
	RuntimeError FailureKind = "runtime_error"
	// Died: a process was ended by a signal that nobody sends to stop a job, or exited with
	// a code other than 0.
	Died FailureKind = "died"
)

// FailureKinds are all of them.
func FailureKinds() []FailureKind { return []FailureKind{OutOfMemory, RuntimeError, Died} }

// Failure is what went wrong in a process.
type Failure struct {
	Kind     FailureKind
	AtNS     int64
	PID      int32
	Rank     int32  // -1 without one
	Sentence string // what it was, and in which process
	Place    string // the innermost line of the job's own code, "train.py:64 (step)"; "" is not known
}

// Failures notes what goes wrong in a job's processes. It implements event.Sink, of the same
// events as an Evidence, which has them first.
type Failures struct {
	evidence *Evidence
	noted    []Failure
	errors   map[errorOf]bool // that have been noted
	left     int64            // failures that were too many to be noted
}

// errorOf is a way for a call to fail: of those that a process comes back to, one is noted.
type errorOf struct {
	pid  int32
	name string
	code int64
}

// mostFailures are noted between two looks, mostErrors kinds of errors told apart.
const (
	mostFailures = 64
	mostErrors   = 4096
)

// NewFailures makes one.
func NewFailures(e *Evidence) *Failures {
	return &Failures{evidence: e, errors: map[errorOf]bool{}}
}

// Take returns what was noted since the last time, the oldest first.
func (f *Failures) Take() []Failure {
	noted := f.noted
	f.noted = nil
	return noted
}

// Left returns how many were too many to be noted since the last time.
func (f *Failures) Left() int64 {
	left := f.left
	f.left = 0
	return left
}

func (f *Failures) note(kind FailureKind, atNS int64, pid int32, what string, stack int64) {
	if len(f.noted) >= mostFailures {
		f.left++
		return
	}
	n := Failure{Kind: kind, AtNS: atNS, PID: pid, Rank: -1}
	who := fmt.Sprintf("process %d", pid)
	if of := f.evidence.processes[pid]; of != nil && of.rank != nil {
		n.Rank = int32(*of.rank)
		who = fmt.Sprintf("rank %d (process %d)", n.Rank, pid)
	}
	n.Sentence, n.Place = who+" "+what, f.evidence.place(stack)
	f.noted = append(f.noted, n)
}

// Write implements event.Sink.
func (f *Failures) Write(b *event.Batch) error {
	for i := range b.Processes {
		f.addProcess(b.Processes[i])
	}
	f.addSpans(b.Spans)
	f.addMemory(b.Memory)
	return nil
}

func (f *Failures) addMemory(rows []event.Memory) {
	for i := range rows {
		m := &rows[i]
		if m.Action != "out_of_memory" {
			continue
		}
		stack := m.PythonStackID
		if m.StackID != nil {
			stack = *m.StackID
		}
		f.note(OutOfMemory, m.TSNS, m.PID, noRoom(m), stack)
	}
}

func noRoom(m *event.Memory) string {
	if m.Level == "kernel" {
		return "is killed by the kernel for memory"
	}
	of := m.Space + " memory"
	if m.DeviceID != nil {
		of = fmt.Sprintf("memory of device %d", *m.DeviceID)
	}
	if m.Bytes == nil {
		return "found no room in the " + of
	}
	return fmt.Sprintf("found no room for %d bytes of %s", *m.Bytes, of)
}

func (f *Failures) addSpans(spans []event.Span) {
	for i := range spans {
		s := &spans[i]
		if s.Status != event.StatusError || s.Detail == nil || s.Detail.ErrorCode == nil {
			continue
		}
		e := errorOf{s.PID, s.Call.Name, int64(*s.Detail.ErrorCode)}
		if f.errors[e] {
			continue
		}
		if len(f.errors) >= mostErrors {
			clear(f.errors)
		}
		f.errors[e] = true
		stack := s.PythonStackID
		if s.Detail.StackID != nil {
			stack = *s.Detail.StackID
		}
		f.note(RuntimeError, s.StartNS+max(s.DurationNS, 0), s.PID, fmt.Sprintf("got error %d from %s", e.code, e.name), stack)
	}
}

// addProcess takes a process. Children without a framework may fail as they like: a
// compiler asks others what they can do.
func (f *Failures) addProcess(p event.Process) {
	if p.EndedNS == nil || p.Framework == nil && p.Rank == nil {
		return
	}
	stack := int64(0)
	if of := f.evidence.processes[p.PID]; of != nil {
		stack = of.lastStack
	}
	if how := end(p.ExitCode, p.ExitSignal); how != "" {
		f.note(Died, *p.EndedNS, p.PID, how, stack)
	}
	for e := range f.errors {
		if e.pid == p.PID {
			delete(f.errors, e)
		}
	}
}

// wished are the signals by which a job is told to stop. A shell and Python exit with 128
// and the number for them.
var wished = map[int32]bool{int32(unix.SIGHUP): true, int32(unix.SIGINT): true, int32(unix.SIGTERM): true}

// end is how a process failed; "" where it did not.
func end(code, signal *int32) string {
	switch {
	case signal != nil && !wished[*signal]:
		return fmt.Sprintf("was ended by signal %d (%s)", *signal, unix.SignalName(unix.Signal(*signal)))
	case code != nil && *code != 0 && !wished[*code-128]:
		return fmt.Sprintf("exited with code %d", *code)
	}
	return ""
}

// place is the innermost line of a stack that is the job's own, or any that there is.
func (e *Evidence) place(stack int64) string {
	s := e.stacks.of(stack)
	if s == nil {
		return ""
	}
	outer := ""
	for _, frame := range s.frames {
		if frame.Kind != symbolize.Python || frame.Line <= 0 {
			continue
		}
		at := fmt.Sprintf("%s:%d (%s)", frame.File[strings.LastIndexByte(frame.File, '/')+1:], frame.Line, frame.Function)
		if usercode.Is(frame.File) {
			return at
		}
		if outer == "" {
			outer = at
		}
	}
	return outer
}
