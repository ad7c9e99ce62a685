package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/flops"
	"github.com/ebpfprof/ebpfprof/internal/redact"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// writing is an import under way.
type writing struct {
	options Options
	files   []string
	dir     string
	dataset *output.Dataset
	sink    event.Sink // on the way into it
	session event.Recording
	summary Summary
	pids    map[int32]int // which file uses a process id, by file + 1
	base    int64         // span ids of the files before
	last    int64
	stacks  map[int64]bool

	// Of the file at hand.
	nest   *nesting
	device int32 // the process that device rows belong to
	rename map[int32]int32
	next   int32

	nextMemory int // number of the next allocation or free
	spans      []event.Span
	memory     []event.Memory
	chainID    map[int32]int64
	dims       map[string]event.Shape
	possible   possible // when rows can begin
	damaged    struct {
		negative, missing int64
		impossible        impossible
	}
}

const batch = 4096

// all writes the files. Of several, those that are no traces are left out with a warning: a rank
// whose profiler saw nothing does not cost the others.
func (w *writing) all(ctx context.Context, sources []opened) error {
	w.stacks = map[int64]bool{}
	var unread []error
	for i, s := range sources {
		err := s.err
		if err == nil {
			err = w.file(ctx, i, s.source)
		}
		switch {
		case err == nil:
			w.summary.Files++
		case errors.Is(err, ErrFormat) && len(sources) > 1:
			unread = append(unread, err)
		default:
			return err
		}
	}
	if w.summary.Files == 0 {
		return errors.Join(unread...)
	}
	for _, err := range unread {
		if err := w.warn(event.Warning{Kind: "import", Count: 1, Detail: "the other files are imported without it: " + err.Error()}); err != nil {
			return err
		}
	}
	w.session.EndedNS = &w.last
	return w.writeSession()
}

func (w *writing) file(ctx context.Context, i int, s source) error {
	n := newNesting()
	progress := func(pass float64) func(float64) {
		if w.options.Progress == nil {
			return nil
		}
		return func(part float64) { w.options.Progress(w.files[i], (pass+part)/2) }
	}
	first := func() error {
		add := func(r *row) error { n.add(r); return nil }
		return s.read(ctx, true, handler{row: add, edge: n.addEdge, memory: n.addMemory}, progress(0))
	}
	if err := first(); err != nil {
		return err
	}
	if s.again() {
		n = newNesting()
		if err := first(); err != nil {
			return err
		}
	}
	if n.rows == 0 {
		return fmt.Errorf("%s %w: it has no events, only metadata; was the profiler active while it recorded?", w.files[i], ErrFormat)
	}
	n.finish()
	base := s.describe().base
	n.base = base
	w.possible = possible{n.possible.first + base, n.possible.last + base}
	w.nest, w.device, w.next, w.nextMemory = n, n.mainPID(), 0, 0
	w.rename, w.chainID, w.dims = map[int32]int32{}, map[int32]int64{}, map[string]event.Shape{}
	w.damaged.negative, w.damaged.missing, w.damaged.impossible = 0, 0, impossible{}
	if err := w.begin(s); err != nil {
		return err
	}
	if err := w.describe(i, s); err != nil {
		return err
	}
	if err := s.read(ctx, false, handler{row: w.row, edge: func(*edge) error { return nil }, memory: w.memoryRow}, progress(1)); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.flows(); err != nil {
		return err
	}
	w.base += int64(n.rows)
	return w.warnDamaged(w.files[i])
}

// begin makes the dataset when the first file has shown that it is one.
func (w *writing) begin(s source) error {
	d := s.describe()
	if w.dataset != nil {
		w.session.StartedNS = min(w.session.StartedNS, w.possible.first)
		if !strings.Contains(w.session.Source, s.name()) {
			w.session.Source += " and " + s.name()
		}
		return nil
	}
	w.session = event.Recording{
		ID: sessionID(w.files), ToolVersion: w.options.ToolVersion, CommandLine: w.options.CommandLine,
		StartedNS: w.possible.first, Source: "imported from " + s.name(), DeviceName: d.deviceName, Host: d.host, CPUModel: d.processor,
		Level: d.level,
	}
	dataset, err := output.Create(w.dir, output.Options{})
	if err != nil {
		return err
	}
	w.dataset, w.sink = dataset, dataset
	if w.options.Redact {
		w.sink = redact.NewSink(dataset)
	}
	return w.writeSession()
}

// writeSession writes the session, as it is known by now.
func (w *writing) writeSession() error {
	if w.options.Redact {
		return w.dataset.Session(redact.Recording(w.session))
	}
	return w.dataset.Session(w.session)
}

// describe writes processes, threads and what the file says is missing. Ranks
// in containers often have the same process id: the second is given another.
func (w *writing) describe(file int, s source) error {
	d := s.describe()
	if d.rank == nil && len(w.files) > 1 {
		rank := int32(file)
		d.rank = &rank
		if err := w.warn(event.Warning{Kind: "import", Source: w.files[file], Count: 1,
			Detail: fmt.Sprintf("the file does not name its rank: rank %d is assumed from its position", file)}); err != nil {
			return err
		}
	}
	pids := map[int32]bool{w.device: true}
	for pid := range w.nest.pids {
		if pid != 0 { // torch.profiler's for threads that it could not place
			pids[pid] = true
		}
	}
	for pid := range pids {
		to := pid
		for owner := w.pids[to]; owner != 0 && owner != file+1; owner = w.pids[to] {
			to += 1 << 22 // above the largest pid that Linux gives out
		}
		w.pids[to], w.rename[pid] = file+1, to
		nspid := pid
		p := event.Process{
			ID: processID(s.name(), w.files[file], pid), PID: to, NSPID: &nspid, StartedNS: w.possible.first, Command: d.processNames[pid],
		}
		if w.nest.owners.busy(pid) { // a process that only marks ranges is no rank of the job
			d.job(&p)
		}
		if err := w.sink.Write(&event.Batch{Processes: []event.Process{p}}); err != nil {
			return err
		}
	}
	if _, ok := w.rename[0]; !ok {
		w.rename[0] = w.rename[w.device]
	}
	for key, name := range d.threadNames {
		if !pids[key[0]] || strings.HasPrefix(name, "stream ") {
			continue
		}
		if err := w.sink.Write(&event.Batch{Threads: []event.Thread{{PID: w.rename[key[0]], TID: key[1], Name: name}}}); err != nil {
			return err
		}
	}
	for _, warning := range d.warnings {
		if err := w.warn(warning); err != nil {
			return err
		}
	}
	return nil
}

// job fills in what the file says of the job.
func (d *description) job(p *event.Process) {
	p.Rank, p.WorldSize = d.rank, d.worldSize
	if d.framework != "" {
		p.Framework = &d.framework
	}
	if d.frameworkVersion != "" {
		p.FrameworkVersion = &d.frameworkVersion
	}
	if d.python != "" {
		p.PythonVersion = &d.python
	}
}

func processID(parts ...any) int64 {
	h := fnv.New64a()
	fmt.Fprint(h, parts...)
	return int64(h.Sum64() >> 1)
}

func (w *writing) warn(row event.Warning) error {
	if row.TSNS == 0 {
		row.TSNS = w.session.StartedNS
	}
	w.summary.Warnings = append(w.summary.Warnings, row)
	return w.sink.Write(&event.Batch{Warnings: []event.Warning{row}})
}

func (w *writing) warnDamaged(file string) error {
	if i := &w.damaged.impossible; i.rows > 0 {
		if err := w.warn(event.Warning{Kind: "impossible_time", Source: file, Count: i.rows, Detail: i.sentence()}); err != nil {
			return err
		}
	}
	for _, d := range []struct {
		kind   string
		n      int64
		detail string
	}{
		{"negative_duration", w.damaged.negative, "%s of the file with a negative duration: no duration here, and left out of answers"},
		{"no_duration", w.damaged.missing, "%s of the file without a duration: left out of answers"},
		{"crossing", int64(w.nest.crossing), "%s with an end after that of the row around: shown inside of it"},
	} {
		if d.n == 0 {
			continue
		}
		if err := w.warn(event.Warning{Kind: d.kind, Source: file, Count: d.n, Detail: fmt.Sprintf(d.detail, countedRows(d.n))}); err != nil {
			return err
		}
	}
	return nil
}

// row writes the next row of the file, with what the first pass found.
func (w *writing) row(r *row) error {
	i := w.next
	if int(i) >= w.nest.rows {
		return fmt.Errorf("%w: the file grew while it was read", errStopped)
	}
	w.next++
	if !w.possible.has(r.start) {
		w.damaged.impossible.add(r.call.Name, r.start)
		return nil
	}
	if w.last = max(w.last, r.start); r.duration >= 0 && r.duration < longest {
		w.last = max(w.last, r.start+r.duration)
	}
	s := event.Span{
		ID: w.base + int64(i) + 1, StartNS: r.start, DurationNS: r.duration, PID: w.rename[r.pid], TID: r.tid,
		Call: r.call, End: event.EndImported, Status: r.status, Weight: r.calls, SequenceNumber: r.sequence,
	}
	switch {
	case r.duration == missing:
		s.DurationNS = -1
		w.damaged.missing++
	case r.duration < 0:
		s.DurationNS = -1
		w.damaged.negative++
	}
	d := r.detail
	if r.device {
		w.summary.DeviceRows++
		if r.pid == 0 {
			s.PID = w.rename[cmp.Or(w.nest.owners.of(r), w.device)]
		}
		if launcher := w.nest.launcher(r); launcher >= 0 {
			id := w.base + int64(launcher) + 1
			d.LaunchID = &id
		}
		d.DeviceTimeMethod = "imported"
	} else if parent := w.nest.parents[i]; parent >= 0 {
		s.ParentID = w.base + int64(parent) + 1
	}
	if r.correlation != 0 {
		correlation := r.correlation
		d.CorrelationID = &correlation
	}
	if r.call.Layer != "python" && !r.device {
		stack, err := w.stack(w.nest.chains[i])
		if err != nil {
			return err
		}
		d.StackID = stack
	}
	d.Shape = w.shape(r, w.nest.counted[i])
	if d != (event.Detail{}) {
		s.Detail = &d
	}
	w.spans = append(w.spans, s)
	w.summary.Spans++
	if len(w.spans) == batch {
		return w.flush()
	}
	return nil
}

func (w *writing) flush() error {
	err := w.sink.Write(&event.Batch{Spans: w.spans, Memory: w.memory})
	w.spans, w.memory = w.spans[:0], w.memory[:0]
	return err
}

func (w *writing) memoryRow(m *event.Memory) error {
	row := *m
	i := w.nextMemory
	w.nextMemory++
	if m.TSNS < w.possible.first-slack || m.TSNS > w.possible.last+longest {
		w.damaged.impossible.add("an allocation or free", m.TSNS)
		return nil
	}
	if i < len(w.nest.holders) && w.nest.holders[i] >= 0 {
		row.SpanID = w.base + int64(w.nest.holders[i]) + 1
	}
	if to, ok := w.rename[m.PID]; ok {
		row.PID = to
	}
	w.summary.MemoryRows++
	w.memory = append(w.memory, row)
	if len(w.memory) == batch {
		return w.flush()
	}
	return nil
}

func (w *writing) flows() error {
	var rows []event.Flow
	for id, from := range w.nest.from {
		to, ok := w.nest.to[id]
		if !ok {
			continue
		}
		rows = append(rows, event.Flow{
			TSNS: w.session.StartedNS, FromSpanID: w.base + int64(from) + 1, ToSpanID: w.base + int64(to) + 1,
			Kind: "forward_backward", Method: "imported",
		})
	}
	w.summary.Flows += len(rows)
	return w.sink.Write(&event.Batch{Flows: rows})
}

// pythonName is a function as torch.profiler names it: file.py(12): function.
var pythonName = regexp.MustCompile(`^(.*)\((\d+)\): (.*)$`)

// stack is the id of the stack of Python functions of a chain, written once.
func (w *writing) stack(chain int32) (*int64, error) {
	if chain == 0 {
		return nil, nil
	}
	if id, ok := w.chainID[chain]; ok {
		return &id, nil
	}
	names := w.nest.python(chain)
	stack := event.Stack{Status: event.StackComplete}
	h := fnv.New64a()
	folded := make([]string, len(names))
	for i, name := range names {
		fmt.Fprintf(h, "%s\x00", name)
		f := event.Frame{Kind: "python", Function: name, Offset: -1}
		if m := pythonName.FindStringSubmatch(name); m != nil {
			line, _ := strconv.ParseInt(m[2], 10, 32)
			f.File, f.Function, f.Line = m[1], m[3], int32(line)
		}
		stack.Frames = append(stack.Frames, f)
		folded[len(names)-1-i] = strings.ReplaceAll(f.Function, ";", ":")
	}
	stack.ID, stack.Folded = int64(h.Sum64()>>1), strings.Join(folded, ";")
	w.chainID[chain] = stack.ID
	if w.stacks[stack.ID] {
		return &stack.ID, nil
	}
	w.stacks[stack.ID] = true
	return &stack.ID, w.sink.Write(&event.Batch{Stacks: []event.Stack{stack}})
}

// shape is what the arguments say; FLOPs only where no operator around it has them.
func (w *writing) shape(r *row, counted bool) *event.Shape {
	a := r.arguments
	if a.dims == "" {
		return nil
	}
	s := event.Shape{Dims: a.dims, Types: a.types, Strides: a.strides, Source: "imported"}
	if counted {
		key := r.call.Name + a.dims + a.types + a.concrete
		known, ok := w.dims[key]
		if !ok {
			known = event.Shape{}
			if work, ok := flops.Of(r.call.Name, parseArguments(a)); ok {
				known.FLOPs = &work.FLOPs
				if work.Bytes >= 0 {
					known.BytesMoved = &work.Bytes
				}
				if work.Causal >= 0 {
					known.FLOPsCausal = &work.Causal
				}
			}
			if len(w.dims) < 1<<16 {
				w.dims[key] = known
			}
		}
		s.FLOPs, s.FLOPsCausal, s.BytesMoved = known.FLOPs, known.FLOPsCausal, known.BytesMoved
	}
	return &s
}

func parseArguments(a arguments) flops.Arguments {
	var parsed flops.Arguments
	var dims []json.RawMessage
	_ = json.Unmarshal([]byte(a.dims), &dims)
	for _, d := range dims {
		var sizes []int64 // of a list of tensors there is none
		_ = json.Unmarshal(d, &sizes)
		parsed.Dims = append(parsed.Dims, sizes)
	}
	_ = json.Unmarshal([]byte(a.types), &parsed.Types)
	_ = json.Unmarshal([]byte(a.concrete), &parsed.Concrete)
	return parsed
}
