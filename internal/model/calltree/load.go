package calltree

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
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
	l := &loader{ctx: ctx, db: db, options: o, root: New(), stacks: map[stackKey][]Identity{}, threads: map[threadKey]*thread{},
		paths: map[stackKey]*Node{}, places: map[placeKey]place{}, launches: map[rowKey]*Node{},
		forwards: forwards{from: map[rowKey]int64{}, wanted: map[rowKey]bool{}}}
	for _, part := range []func() error{l.readSlices, l.readWalls, l.readStacks, l.readSpans, l.closeThreads, l.readSamples, l.readMemory} {
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
	host        *Metric // the node's
	slice       *Slice
	step        int32
}

type loader struct {
	ctx     context.Context
	db      *dataset.DB
	options Options
	root    *Node

	stacks   map[stackKey][]Identity // root first
	forwards forwards
	threads  map[threadKey]*thread
	last     *thread
	lastKey  threadKey
	paths    map[stackKey]*Node
	places   map[placeKey]place
	epoch    int                // of the names' numbers in places
	devices  bool               // there is work on devices
	launches map[rowKey]*Node   // calls that may have launched it
	seen     int                // steps of slices that are kept
	wall     map[string]float64 // how long each session lasted, ns; nil of a dataset without slices
}

func (l *loader) readStacks() error {
	rows, err := l.db.Query(l.ctx, `SELECT session_id, stack_id, i, frames[i].kind, coalesce(frames[i]."function", ''),
			coalesce(frames[i].file, ''), coalesce(frames[i].line, 0), coalesce(frames[i].module, ''), coalesce(frames[i].build_id, ''), status
		FROM (SELECT DISTINCT ON (session_id, stack_id) * FROM stack), unnest(range(1, len(frames) + 1)) AS u(i) ORDER BY session_id, stack_id,
		i DESC`)
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

type row struct {
	key                   rowKey
	pid, tid              int32
	layer, category, name string
	nameNumber            int64 // among the texts of the batch
	sequence              int64
	ts, duration          int64
	weight                float64
	stack, launch         sql.NullInt64
	slice                 *Slice
	step                  int32
}

// The columns of the scan.
const (
	spanTime = iota
	spanDuration
	spanID
	spanSession
	spanPID
	spanTID
	spanLayer
	spanCategory
	spanName
	spanWeight
	spanPythonStack
	spanStack
	spanLaunch
	spanSequence
	spanSlice // where there are slices
	spanStep
)

var spanColumns = []string{"ts_ns", "duration_ns", "span_id", "session_id", "pid", "tid", "layer", "category", "name", "weight",
	"python_stack_id", "stack_id", "launch_id", "sequence_number"}

// readSpans sweeps over all threads at once: a row's own time is its duration
// without that of the rows that stand directly in it.
func (l *loader) readSpans() error {
	var first, last sql.NullInt64
	if err := l.db.Row(l.ctx, "SELECT min(ts_ns), max(ts_ns), count(*) FILTER (layer = 'device') > 0 FROM good_span", nil, &first, &last,
		&l.devices); err != nil {
		return err
	}
	instead, err := l.db.Instead(l.ctx, "SELECT session_id, span_id, stands_ns FROM left_out")
	if err != nil {
		return err
	}
	scan := dataset.Scan{Table: "span", Columns: spanColumns, Instead: instead, Before: func(b *dataset.Batch, i, k int) bool {
		if x, y := b.Columns[spanDuration][i], b.Columns[spanDuration][k]; x != y {
			return x > y
		}
		return b.Columns[spanID][i] < b.Columns[spanID][k]
	}}
	if l.root.slices != nil {
		scan.Columns = append(slices.Clip(scan.Columns), "slice_id", "slice_step")
	}
	l.forwards.edges = l.openEdges()
	defer l.forwards.edges.stop()
	err = l.db.Scan(l.ctx, scan, func(b *dataset.Batch) error {
		if l.options.Progress != nil && last.Int64 > first.Int64 {
			l.options.Progress(float64(b.Columns[spanTime][0]-first.Int64) / float64(last.Int64-first.Int64))
		}
		if b.Epoch != l.epoch {
			l.places, l.epoch = map[placeKey]place{}, b.Epoch
		}
		for i := range b.Rows {
			l.row(b, i)
		}
		return nil
	})
	if err := errors.Join(err, l.forwards.edges.err); err != nil {
		return err
	}
	for _, t := range l.threads {
		l.close(t, 1<<63-1)
	}
	return nil
}

func (l *loader) row(b *dataset.Batch, i int) {
	c := b.Columns
	r := row{layer: b.Text(c[spanLayer][i]), category: b.Text(c[spanCategory][i]), duration: c[spanDuration][i]}
	device := false
	switch r.layer {
	case "op", "autograd", "collective", "runtime":
	case "device":
		device = true
		switch r.category {
		case "kernel", "collective", "copy", "set":
		default:
			return
		}
	default:
		return
	}
	if r.duration == dataset.Absent {
		return
	}
	r.key = rowKey{b.Text(c[spanSession][i]), c[spanID][i]}
	r.pid, r.tid, r.ts, r.weight = int32(c[spanPID][i]), int32(c[spanTID][i]), c[spanTime][i], b.Float(c[spanWeight][i])
	r.sequence = c[spanSequence][i]
	if len(c) > spanStep {
		r.slice, r.step = l.slice(r.key.session, c[spanSlice][i], c[spanStep][i])
	}
	r.nameNumber, r.name = c[spanName][i], b.Text(c[spanName][i])
	stack, launch := c[spanPythonStack][i], c[spanLaunch][i]
	if stack == dataset.Absent {
		stack = c[spanStack][i]
	}
	r.stack = sql.NullInt64{Int64: stack, Valid: stack != dataset.Absent}
	r.launch = sql.NullInt64{Int64: launch, Valid: launch != dataset.Absent}
	if device {
		l.device(&r)
	} else {
		l.host(&r)
	}
}

// path goes down a call stack from the root.
func (l *loader) path(session string, stack sql.NullInt64) *Node {
	if !stack.Valid {
		return l.root
	}
	key := stackKey{session, stack.Int64}
	if at := l.paths[key]; at != nil {
		return at
	}
	at := l.root
	for _, id := range l.stacks[key] {
		at = at.Child(id)
	}
	l.paths[key] = at
	return at
}

// place is where rows of a name under a node belong: looking it up by the name's number
// takes a fraction of what it takes by what is the node's identity.
type place struct {
	node *Node
	host *Metric
}

type placeKey struct {
	under *Node
	kind  Kind
	name  int64
}

func (l *loader) place(under *Node, kind Kind, r *row) place {
	key := placeKey{under, kind, r.nameNumber}
	p, known := l.places[key]
	if !known {
		p.node = under.Child(Identity{Kind: kind, Name: r.name})
		p.host = p.node.own("host_ns")
		l.places[key] = p
	}
	return p
}

// thread is what has begun and not ended on one.
type thread struct {
	open []open
	sum  float64             // of its rows' own times, as often as they stand for
	of   map[*Metric]float64 // the parts of sum
}

func (l *loader) thread(r *row) *thread {
	key := threadKey{r.key.session, r.pid, r.tid}
	if l.last == nil || key != l.lastKey {
		if l.last, l.lastKey = l.threads[key], key; l.last == nil {
			l.last = &thread{}
			l.threads[key] = l.last
		}
	}
	return l.last
}

func (l *loader) host(r *row) {
	l.forwards.until(r.ts)
	t := l.thread(r)
	l.close(t, r.ts)
	var at *Node
	if n := len(t.open); n > 0 {
		around := &t.open[n-1]
		around.inside += min(r.duration, max(around.end-r.ts, 0))
		at = around.node
	}
	var here place
	// The edge leads to the node, or in traces of torch.profiler to its operator.
	if forward := l.forwards.of(r); forward != nil {
		here = l.place(forward, Backward, r)
		here.node.Link = "forward"
	} else {
		if at == nil {
			at = l.path(r.key.session, r.stack)
		}
		here = l.place(at, kindOf(r.layer), r)
	}
	l.forwards.note(r, here.node)
	if r.layer == "runtime" && l.devices {
		switch r.category {
		case "launch", "copy", "set", "graph":
			l.launches[r.key] = here.node
		}
	}
	t.open = append(t.open, open{r.ts + r.duration, 0, r.duration, r.weight, here.node, here.host, r.slice, r.step})
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
func (l *loader) close(t *thread, at int64) {
	n := len(t.open)
	for ; n > 0 && t.open[n-1].end <= at; n-- {
		o := &t.open[n-1]
		own := float64(max(o.duration-o.inside, 0))
		o.host.Add(own, o.weight)
		if l.wall != nil {
			t.holds(o.host, own*o.weight)
		}
		l.saw(o.host, o.slice, o.step, own, o.weight)
	}
	t.open = t.open[:n]
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
	rows, err := l.db.Query(l.ctx, `SELECT session_id, stack_id, state, count(*), sum(weight_ns)::DOUBLE, min(weight_ns)::DOUBLE,
		max(weight_ns)::DOUBLE,
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
		SELECT m.session_id, coalesce(m.python_stack_id, m.stack_id, s.python_stack_id, s.stack_id),
		coalesce(CASE WHEN s.layer = 'op' THEN s.name END, ''),
			sum(m.weight), sum(m.bytes * m.weight)::DOUBLE, min(m.bytes)::DOUBLE, max(m.bytes)::DOUBLE,
			coalesce(var_pop(m.bytes), 0) * sum(m.weight),
			m.slice_id, m.slice_step, sum(m.bytes)::DOUBLE, bool_or(m.weight <> 1)
		FROM memory m LEFT JOIN good_span s ON s.session_id = m.session_id AND s.span_id = m.span_id
		WHERE m.action = 'alloc' AND m.bytes IS NOT NULL GROUP BY ALL ORDER BY min(m.ts_ns)`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var session, operator string
		var stack sql.NullInt64
		var m Metric
		var id, step sql.NullInt64
		var known float64
		var weighted bool
		if err := rows.Scan(&session, &stack, &operator, &m.Count, &m.Sum, &m.Min, &m.Max, &m.M2, &id, &step, &known, &weighted); err != nil {
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
		weight := 1.0
		if weighted && known > 0 {
			weight = m.Sum / known
		}
		slice, in := l.slice(session, or(id), or(step))
		l.saw(at.own("bytes"), slice, in, known, weight)
	}
	return rows.Err()
}

func or(v sql.NullInt64) int64 {
	if !v.Valid {
		return dataset.Absent
	}
	return v.Int64
}
