package calltree

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// Options of Load.
type Options struct {
	Native   bool // keep native frames of samples
	Progress func(part float64)
}

// Load builds the tree of a dataset whose rows lint has looked at: it reads the
// view good_span, in one pass in order of time.
func Load(ctx context.Context, db *dataset.DB, o Options) (*Node, error) {
	l := &loader{ctx: ctx, db: db, options: o, root: New(), stacks: map[stackKey][]Identity{}, threads: map[threadKey][]open{}, launches: map[rowKey]*Node{}}
	for _, part := range []func() error{l.readStacks, l.readFlows, l.readSpans, l.readSamples, l.readMemory} {
		if err := part(); err != nil {
			return nil, fmt.Errorf("building the tree: %w", err)
		}
	}
	return l.root, nil
}

type stackKey struct {
	session string
	id      int64
}

type rowKey = stackKey

type threadKey struct {
	session  string
	pid, tid int32
}

// open is a row that has begun and not ended on its thread.
type open struct {
	end, inside int64
	duration    int64
	weight      float64
	node        *Node
}

type loader struct {
	ctx     context.Context
	db      *dataset.DB
	options Options
	root    *Node

	stacks   map[stackKey][]Identity // root first
	forward  map[rowKey]rowKey       // backward node to its forward operator
	wanted   map[rowKey]*Node        // forward operators that have one
	threads  map[threadKey][]open
	launches map[rowKey]*Node // calls that may have launched work
}

func (l *loader) readStacks() error {
	rows, err := l.db.Query(l.ctx, `SELECT session_id, stack_id, i, frames[i].kind, coalesce(frames[i]."function", ''),
			coalesce(frames[i].file, ''), coalesce(frames[i].line, 0), coalesce(frames[i].module, ''), coalesce(frames[i].build_id, ''), status
		FROM (SELECT DISTINCT ON (session_id, stack_id) * FROM stack), unnest(range(1, len(frames) + 1)) AS u(i) ORDER BY session_id, stack_id, i DESC`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key stackKey
		var i int64
		var kind, function, file, module, build, status string
		var line int32
		if err := rows.Scan(&key.session, &key.id, &i, &kind, &function, &file, &line, &module, &build, &status); err != nil {
			return err
		}
		if _, begun := l.stacks[key]; !begun {
			if cut := l.cut(status); cut != "" {
				l.stacks[key] = append(l.stacks[key], Identity{Kind: Native, Name: cut})
			}
		}
		switch kind {
		case "python":
			l.stacks[key] = append(l.stacks[key], Identity{Python, function, file, line})
		case "op":
			l.stacks[key] = append(l.stacks[key], Identity{Kind: Operator, Name: function})
		case "native", "kernel":
			if l.options.Native {
				l.stacks[key] = append(l.stacks[key], Identity{Native, function, module + " " + build, 0})
			}
		}
	}
	return rows.Err()
}

// cut says at the root of a stack that its outermost frames are missing: of the kinds
// that the tree shows, more than --max-frames.
func (l *loader) cut(status string) string {
	for _, reason := range strings.Split(status, ",") {
		if reason = strings.TrimSpace(reason); reason == "python_max_frames" || reason == "native_max_frames" && l.options.Native {
			return "[cut: " + reason + "]"
		}
	}
	return ""
}

func (l *loader) readFlows() error {
	l.forward, l.wanted = map[rowKey]rowKey{}, map[rowKey]*Node{}
	rows, err := l.db.Query(l.ctx, "SELECT session_id, from_span_id, to_span_id FROM flow WHERE kind = 'forward_backward'")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var session string
		var from, to int64
		if err := rows.Scan(&session, &from, &to); err != nil {
			return err
		}
		l.forward[rowKey{session, to}] = rowKey{session, from}
		l.wanted[rowKey{session, from}] = nil
	}
	return rows.Err()
}

type row struct {
	key                   rowKey
	pid, tid              int32
	layer, category, name string
	ts, duration          int64
	weight                float64
	stack, launch         sql.NullInt64
}

// readSpans sweeps over all threads at once: a row's own time is its duration
// without that of the rows that stand directly in it.
func (l *loader) readSpans() error {
	cuts, err := l.db.Pieces(l.ctx, "good_span")
	if err != nil {
		return err
	}
	for i := range len(cuts) - 1 {
		if l.options.Progress != nil {
			l.options.Progress(float64(i) / float64(len(cuts)-1))
		}
		if err := l.readPiece(cuts[i], cuts[i+1]); err != nil {
			return err
		}
	}
	for key := range l.threads {
		l.close(key, 1<<63-1)
	}
	return nil
}

func (l *loader) readPiece(from, until int64) error {
	query := fmt.Sprintf(`
		SELECT session_id, span_id, pid, tid, layer, coalesce(category, ''), name, ts_ns, duration_ns, weight, coalesce(python_stack_id, stack_id), launch_id FROM good_span
		WHERE ts_ns >= %d AND ts_ns < %d AND duration_ns IS NOT NULL
			AND (layer IN ('op', 'autograd', 'collective', 'runtime') OR layer = 'device' AND category IN ('kernel', 'collective', 'copy', 'set'))
		ORDER BY ts_ns, duration_ns DESC, span_id`, from, until)
	var r row
	return l.db.Each(l.ctx, query, func(v []driver.Value) error {
		r.read(v)
		if r.layer == "device" {
			l.device(&r)
		} else {
			l.host(&r)
		}
		return nil
	})
}

func (r *row) read(v []driver.Value) {
	r.key.session, _ = v[0].(string)
	r.key.id, _ = v[1].(int64)
	r.pid, _ = v[2].(int32)
	r.tid, _ = v[3].(int32)
	r.layer, _ = v[4].(string)
	r.category, _ = v[5].(string)
	r.name, _ = v[6].(string)
	r.ts, _ = v[7].(int64)
	r.duration, _ = v[8].(int64)
	r.weight, _ = v[9].(float64)
	r.stack.Int64, r.stack.Valid = v[10].(int64)
	r.launch.Int64, r.launch.Valid = v[11].(int64)
}

// path goes down a call stack from the root.
func (l *loader) path(session string, stack sql.NullInt64) *Node {
	at := l.root
	if stack.Valid {
		for _, id := range l.stacks[stackKey{session, stack.Int64}] {
			at = at.Child(id)
		}
	}
	return at
}

func (l *loader) host(r *row) {
	key := threadKey{r.key.session, r.pid, r.tid}
	l.close(key, r.ts)
	stack := l.threads[key]
	var at *Node
	if n := len(stack); n > 0 {
		stack[n-1].inside += min(r.duration, max(stack[n-1].end-r.ts, 0))
		at = stack[n-1].node
	}
	// The edge leads to the node, or in traces of torch.profiler to its operator.
	if forward, ok := l.forward[r.key]; ok && l.wanted[forward] != nil {
		at = l.wanted[forward].Child(Identity{Kind: Backward, Name: r.name})
		at.Link = "forward"
	} else {
		if at == nil {
			at = l.path(r.key.session, r.stack)
		}
		at = at.Child(Identity{Kind: kindOf(r.layer), Name: r.name})
	}
	if _, ok := l.wanted[r.key]; ok {
		l.wanted[r.key] = at
	}
	if r.layer == "runtime" {
		switch r.category {
		case "launch", "copy", "set", "graph":
			l.launches[r.key] = at
		}
	}
	l.threads[key] = append(stack, open{r.ts + r.duration, 0, r.duration, r.weight, at})
}

func kindOf(layer string) Kind {
	switch layer {
	case "op":
		return Operator
	case "autograd":
		return Backward
	}
	return Call
}

// close counts the rows of a thread that are over at t.
func (l *loader) close(key threadKey, t int64) {
	stack := l.threads[key]
	for n := len(stack); n > 0 && stack[n-1].end <= t; n = len(stack) {
		o := stack[n-1]
		o.node.Add("host_ns", float64(max(o.duration-o.inside, 0)), o.weight)
		stack = stack[:n-1]
	}
	l.threads[key] = stack
}

func (l *loader) device(r *row) {
	at := l.root
	if r.launch.Valid {
		if launch := l.launches[rowKey{r.key.session, r.launch.Int64}]; launch != nil {
			at = launch
		}
	}
	at.Child(Identity{Kind: Kernel, Name: r.name}).Add("device_ns", float64(r.duration), r.weight)
}

// readSamples adds up per stack in SQL: a stack has a thousand samples.
func (l *loader) readSamples() error {
	rows, err := l.db.Query(l.ctx, `SELECT session_id, stack_id, state, count(*), sum(weight_ns)::DOUBLE, min(weight_ns)::DOUBLE, max(weight_ns)::DOUBLE,
		coalesce(var_pop(weight_ns), 0) * count(*) FROM sample GROUP BY ALL`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var session, state string
		var stack sql.NullInt64
		var m Metric
		if err := rows.Scan(&session, &stack, &state, &m.Count, &m.Sum, &m.Min, &m.Max, &m.M2); err != nil {
			return err
		}
		m.Mean = m.Sum / m.Count
		at := l.path(session, stack)
		if at == l.root {
			at = l.root.Child(Identity{Kind: Native, Name: "[no stack]"})
		}
		at.own(map[string]string{"on_cpu": "cpu_ns"}[state] + map[string]string{"off_cpu": "wait_ns"}[state]).Merge(m)
	}
	return rows.Err()
}

// readMemory counts what was allocated, below the stack of the allocation, or of
// the row that it was made in.
func (l *loader) readMemory() error {
	rows, err := l.db.Query(l.ctx, `
		SELECT m.session_id, coalesce(m.python_stack_id, m.stack_id, s.python_stack_id, s.stack_id), coalesce(CASE WHEN s.layer = 'op' THEN s.name END, ''),
			sum(m.weight), sum(m.bytes * m.weight)::DOUBLE, min(m.bytes)::DOUBLE, max(m.bytes)::DOUBLE, coalesce(var_pop(m.bytes), 0) * sum(m.weight)
		FROM memory m LEFT JOIN good_span s ON s.session_id = m.session_id AND s.span_id = m.span_id
		WHERE m.action = 'alloc' AND m.bytes IS NOT NULL GROUP BY ALL`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var session, operator string
		var stack sql.NullInt64
		var m Metric
		if err := rows.Scan(&session, &stack, &operator, &m.Count, &m.Sum, &m.Min, &m.Max, &m.M2); err != nil {
			return err
		}
		m.Mean = m.Sum / m.Count
		at := l.path(session, stack)
		if operator != "" {
			at = at.Child(Identity{Kind: Operator, Name: operator})
		}
		if at == l.root {
			at = l.root.Child(Identity{Kind: Native, Name: "[no stack]"})
		}
		at.own("bytes").Merge(m)
	}
	return rows.Err()
}
