package hang

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/usercode"
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

	stack int64
}

// Frame is a frame of Python, of native code, or an operator.
type Frame struct {
	Kind     string `json:"kind"`
	Function string `json:"function"`
	File     string `json:"file,omitempty"`
	Line     int64  `json:"line,omitempty"`
	Module   string `json:"module,omitempty"`
}

// mostFrames of a thread are reported, from the innermost on.
const mostFrames = 64

var threadsQuery = fmt.Sprintf(`SELECT t.pid, t.tid, coalesce(n.name, ''), coalesce(t.syscall, ''), (t.seen_ns - t.since_ns) / 1e9,
	coalesce(t.state, ''), coalesce(t.stack_id, 0), coalesce(s.status, '') = 'complete', CAST(to_json(list_transform(s.frames[1:%d],
	lambda f: {kind: f.kind, "function": coalesce(f."function", ''), file: coalesce(f.file, ''), line: coalesce(f.line, 0), module: coalesce(f.module, '')})) AS VARCHAR)
FROM still_thread t LEFT JOIN (SELECT pid, tid, any_value(name) AS name FROM thread GROUP BY ALL) n USING (pid, tid)
LEFT JOIN (SELECT stack_id, any_value(frames) AS frames, any_value(status) AS status FROM stack
	WHERE stack_id IN (SELECT stack_id FROM still_thread) GROUP BY stack_id) s USING (stack_id)
ORDER BY t.pid, t.tid <> t.pid, t.tid`, mostFrames)

// readThreads reads where the threads of each process stood, those with one stack
// together, the main thread first.
func readThreads(ctx context.Context, db *dataset.DB) (map[int64][]Thread, error) {
	threads := map[int64][]Thread{}
	err := each(ctx, db, threadsQuery, func(rows *sql.Rows) error {
		var pid, tid int64
		var t Thread
		var still sql.NullFloat64
		var frames sql.NullString
		if err := rows.Scan(&pid, &tid, &t.Name, &t.Syscall, &still, &t.State, &t.stack, &t.Whole, &frames); err != nil {
			return err
		}
		if frames.Valid { // else its stack is not on disk yet
			if err := json.Unmarshal([]byte(frames.String), &t.Frames); err != nil {
				return err
			}
		}
		t.Main = tid == pid
		if still.Valid {
			t.Still = &still.Float64
		}
		same := func(o Thread) bool {
			return !t.Main && !o.Main && o.stack == t.stack && o.Syscall == t.Syscall && o.State == t.State && (o.Still == nil) == (t.Still == nil)
		}
		if at := slices.IndexFunc(threads[pid], same); at >= 0 {
			o := &threads[pid][at]
			if o.TIDs = append(o.TIDs, tid); t.Still != nil {
				*o.Still = min(*o.Still, *t.Still)
			}
			return nil
		}
		t.TIDs = []int64{tid}
		threads[pid] = append(threads[pid], t)
		return nil
	})
	return threads, err
}

// stillFor reports whether a thread has stood still for so long, in seconds.
func (t *Thread) stillFor(seconds float64) bool { return t.Still != nil && *t.Still >= seconds }

// halt says what keeps a process from running whose main thread is this; "" is nothing.
func (t *Thread) halt() string {
	switch {
	case !t.Main:
	case t.State == event.ThreadStopped:
		return "stopped by a signal"
	case t.State == event.ThreadTraced:
		return "stopped by a debugger"
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

// collective is what a thread waits in, as its stack says: the outermost function of
// torch.distributed, else the outermost native one of its libraries; "" where it is in none.
func (t *Thread) collective() string {
	native := ""
	for _, f := range slices.Backward(t.Frames) {
		switch {
		case f.Kind == "python" && strings.Contains(f.File, "torch/distributed/") && path.Base(f.File) != "c10d_logger.py" && !strings.HasPrefix(f.Function, "<"):
			return f.Function
		case native != "" || f.Kind != "native":
		case strings.HasPrefix(f.Function, "c10d::"), strings.HasPrefix(f.Function, "gloo::"), strings.HasPrefix(f.Function, "nccl"), strings.HasPrefix(f.Function, "pnccl"):
			native, _, _ = strings.Cut(f.Function, "(")
		}
	}
	return native
}

// runsPython reports whether the thread has Python frames.
func (t *Thread) runsPython() bool {
	return slices.ContainsFunc(t.Frames, func(f Frame) bool { return f.Kind == "python" })
}

// place is the innermost line of the job's own code, else of Python.
func (t *Thread) place() string {
	first := ""
	for _, f := range t.Frames {
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
