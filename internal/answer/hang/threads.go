package hang

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/model/usercode"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Thread is where threads of a process stood, which have one stack.
type Thread struct {
	TIDs    []int64  `json:"tids"`
	Name    string   `json:"name,omitempty"`
	Main    bool     `json:"main"`
	Syscall string   `json:"syscall,omitempty"`
	Still   *float64 `json:"still_s"`         // they have not run for so long, at the least; null: they have, a moment before
	State   string   `json:"state,omitempty"` // sleeping, uninterruptible, stopped, traced; "" is not known
	Frames  []Frame  `json:"frames"`          // the innermost first
	Whole   bool     `json:"whole"`           // the walk reached the thread's start

	// Stack tells one stack from another; 0 is not known.
	Stack int64 `json:"-"`
}

// Frame is a frame of Python, of native code, or an operator.
type Frame struct {
	Kind     string `json:"kind"`
	Function string `json:"function"`
	File     string `json:"file,omitempty"`
	Line     int64  `json:"line,omitempty"`
	Module   string `json:"module,omitempty"`
}

// MostFrames of a thread are reported, from the innermost on.
const MostFrames = 64

// Together joins threads of one process that stand alike: the main one is listed alone,
// and first.
func Together(all []Thread) (threads []Thread) {
	for _, t := range all {
		same := func(o Thread) bool {
			return !t.Main && !o.Main && o.Stack == t.Stack && o.Syscall == t.Syscall && o.State == t.State && (o.Still == nil) == (t.Still == nil)
		}
		if at := slices.IndexFunc(threads, same); at >= 0 {
			o := &threads[at]
			if o.TIDs = append(o.TIDs, t.TIDs...); t.Still != nil {
				*o.Still = min(*o.Still, *t.Still)
			}
			continue
		}
		threads = append(threads, t)
	}
	slices.SortStableFunc(threads, func(a, b Thread) int {
		switch {
		case a.Main == b.Main:
			return 0
		case a.Main:
			return -1
		}
		return 1
	})
	return threads
}

// stillFor reports whether a thread has stood still for so long, in seconds.
func (t *Thread) stillFor(seconds float64) bool { return t.Still != nil && *t.Still >= seconds }

// What keeps a process from running.
const (
	BySignal   = "stopped by a signal"
	ByDebugger = "stopped by a debugger"
)

// halt says what keeps a process from running whose main thread is this; "" is nothing.
func (t *Thread) halt() string {
	switch {
	case !t.Main:
	case t.State == event.ThreadStopped:
		return BySignal
	case t.State == event.ThreadTraced:
		return ByDebugger
	}
	return ""
}

// haltOf is that of the process whose threads these are.
func haltOf(threads []Thread) string {
	if len(threads) == 0 {
		return ""
	}
	return threads[0].halt()
}

// Collective is what a thread waits in, as its stack says: the outermost function of
// torch.distributed, else the outermost native one of its libraries; "" where it is in none.
func (t *Thread) Collective() string {
	native := ""
	for _, f := range slices.Backward(t.Frames) {
		switch {
		case f.Kind == "python" && strings.Contains(f.File, "torch/distributed/") && path.Base(f.File) != "c10d_logger.py" &&
			!strings.HasPrefix(f.Function, "<"):
			return f.Function
		case native != "" || f.Kind != "native":
		case strings.HasPrefix(f.Function, "c10d::"), strings.HasPrefix(f.Function, "gloo::"), strings.HasPrefix(f.Function, "nccl"),
			strings.HasPrefix(f.Function, "pnccl"):
			native, _, _ = strings.Cut(f.Function, "(")
		}
	}
	return native
}

// RunsPython reports whether the thread has Python frames.
func (t *Thread) RunsPython() bool {
	return slices.ContainsFunc(t.Frames, func(f Frame) bool { return f.Kind == "python" })
}

// place is the innermost line of the job's own code, else of Python.
func (t *Thread) place() string { return Place(t.Frames) }

// ofUser reports whether a frame is a line of the job's own code.
func ofUser(f Frame) bool { return f.Kind == "python" && f.Line > 0 && usercode.Is(f.File) }

// Place is the innermost line of the job's own code in a stack, else of Python; "" without any.
func Place(frames []Frame) string {
	first := ""
	for _, f := range frames {
		if f.Kind != "python" {
			continue
		}
		at := fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Function)
		if usercode.Is(f.File) {
			return at
		}
		if first == "" {
			first = at
		}
	}
	return first
}
