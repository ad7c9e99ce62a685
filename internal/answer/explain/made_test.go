package explain

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/model/usercode"
)

// seen is time of a thread: how long, whether on the CPU ("on"), preempted, or in which system call, and the stack from
// the outermost frame to the innermost. A frame is function@file:line of Python, native:function@module or op:name.
type seen struct {
	ms    float64
	state string
	stack string
}

const wallMS = 20_000

// made is a recording of 20 s: the rows of the thread that sets the pace, spread over all of it, and of others.
func made(t *testing.T, pace []seen, others ...other) *Recording {
	t.Helper()
	r := &Recording{From: 1e18, Until: 1e18 + wallMS*1e6, Pace: Thread{100, 100}, Processes: map[int32]*Process{},
		Threads: map[Thread]string{},
		stacks:  map[int64]*Stack{}, blocks: fewestBlocks}
	frames := map[string]*Frame{}
	left := float64(wallMS)
	for _, s := range pace {
		left -= s.ms
		stack := stackOf(t, frames, s.stack)
		for block := range r.blocks {
			r.Rows = append(r.Rows, rowOf(s, Thread{100, 100}, stack, block, s.ms/float64(r.blocks)))
		}
	}
	if left < 0 {
		t.Fatalf("the rows take %g ms more than the recording", -left)
	}
	r.Short = left * 1e6
	for _, o := range others {
		for _, s := range o.rows {
			r.Others = append(r.Others, rowOf(s, o.Thread, stackOf(t, frames, s.stack), 0, s.ms))
		}
	}
	return r
}

type other struct {
	Thread
	rows []seen
}

func rowOf(s seen, thread Thread, stack *Stack, block int, ms float64) Row {
	row := Row{Thread: thread, Stack: stack, Block: block, NS: ms * 1e6, Samples: max(1, int64(ms/10))}
	switch s.state {
	case "on":
		row.OnCPU = true
	case "gc":
		row.OnCPU, row.GC = true, true
	case "gil":
		row.OnCPU, row.GIL = true, true
	case "fault":
		row.Cause = "fault"
	case "preempted":
		row.Cause, row.ReadyNS = "preempted", row.NS
	default:
		row.Cause, row.Syscall = "syscall", s.state
	}
	return row
}

func stackOf(t *testing.T, frames map[string]*Frame, text string) *Stack {
	t.Helper()
	return stackOfNames(frames, text)
}

// stackOfNames panics if a frame has no line: a mistake in the test.
func stackOfNames(frames map[string]*Frame, text string) *Stack {
	s := &Stack{}
	names := strings.Split(text, "; ")
	for i := len(names) - 1; i >= 0; i-- {
		name := names[i]
		f := frames[name]
		if f == nil {
			f = &Frame{Kind: "python"}
			rest := name
			if kind, of, ok := strings.Cut(name, ":"); ok && (kind == "native" || kind == "kernel" || kind == "op") {
				f.Kind, rest = kind, of
			}
			function, file, _ := strings.Cut(rest, "@")
			f.Function = function
			if f.Kind == "python" {
				at := strings.LastIndexByte(file, ':')
				if at < 0 {
					panic("the frame " + name + " has no line")
				}
				line, err := strconv.Atoi(file[at+1:])
				if err != nil {
					panic(err)
				}
				f.File, f.Line = file[:at], line
				f.User = usercode.Is(f.File)
			} else {
				f.Module = file
			}
			f.Signs = signsOf(f)
			frames[name] = f
		}
		s.add(f)
	}
	s.settle()
	return s
}

// found are the explanations of some kinds, sorted and merged as in a verdict.
func found(t *testing.T, r *Recording, names ...string) []Explanation {
	t.Helper()
	var all []Explanation
	for i, k := range kinds {
		for _, name := range names {
			if k.name != name {
				continue
			}
			candidates, err := k.find(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range candidates {
				e.Kind, e.rank = k.name, i
				if e.class == 0 {
					e.class = ordinary
				}
				r.measure(&e)
				all = append(all, e)
			}
		}
	}
	return merged(r, all)
}

const (
	site   = "/venv/lib/python3.11/site-packages/"
	script = "<module>@/home/me/fit.py:40"
)
