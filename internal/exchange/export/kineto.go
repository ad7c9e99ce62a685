package export

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/exchange/importer"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// kinetoWriter writes the JSON of torch.profiler: integer microseconds of at
// least one, which its readers want, and the exact nanoseconds in args, from
// which `ebpfprof import` takes them.
type kinetoWriter struct {
	*stream
	out     *bufio.Writer
	who     names
	line    bytes.Buffer
	first   bool
	size    int64
	cut     int64
	damaged int64
	mainPID int32
	texts   map[string]string // names as JSON
	checked map[string]bool   // shapes that are JSON
}

var kineto = Format{
	Name: "kineto", Help: "readers of torch.profiler's traces: HTA, TraceLens, traceinsight", write: (*stream).kineto,
}

func (s *stream) kineto(w io.Writer) (err error) {
	k := &kinetoWriter{stream: s, out: bufio.NewWriterSize(w, 1<<20), first: true, texts: map[string]string{}, checked: map[string]bool{}}
	if k.who, err = s.names(); err != nil {
		return err
	}
	if len(k.who.ranks) > 1 && s.options.Rank == nil {
		return fmt.Errorf("the dataset has %d ranks, and this form is of one: choose with --rank", len(k.who.ranks))
	}
	if err := k.begin(); err != nil {
		return err
	}
	for _, part := range []func() error{k.metadata, k.steps, func() error { return s.spans(kinetoColumns, k.span) }, k.memory} {
		if err := part(); err != nil {
			return err
		}
	}
	s.result.leave(k.damaged, "rows have an invalid duration")
	s.result.leave(k.cut, "slices did not fit into the maximum size")
	fmt.Fprint(k.out, "\n]}\n")
	return k.out.Flush()
}

// begin writes what stands before the events. Readers find the rank by a regular
// expression that wants a space after the colon.
func (k *kinetoWriter) begin() error {
	rank := int32(0)
	for pid, r := range k.who.ranks {
		if k.options.Rank == nil || int32(*k.options.Rank) == r {
			rank, k.mainPID = r, pid
		}
	}
	distinct := map[int32]bool{}
	for _, r := range k.who.ranks {
		distinct[r] = true
	}
	world := max(k.who.worldSize, int32(len(distinct)), 1)
	if k.mainPID == 0 {
		err := k.db.Row(k.ctx, "SELECT coalesce(mode(pid), 0) FROM export_span", nil, &k.mainPID)
		if err != nil {
			return err
		}
	}
	var device sql.NullString
	if err := k.db.Row(k.ctx, "SELECT any_value(device_name) FROM session", nil, &device); err != nil {
		return err
	}
	fmt.Fprintf(k.out, "{\n\"schemaVersion\": 1,\n\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": 0,\n")
	if device.Valid {
		fmt.Fprintf(k.out, "\"deviceProperties\": [{\"id\": 0, \"name\": %s}],\n", quoted(device.String))
	}
	own, err := k.facts()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(k.out, "\"ebpfprof\": %s,\n\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": "+
		"%d},\n\"traceEvents\": [\n", own, rank, world)
	return err
}

// facts are what the form has no place for: without them an export that is imported again
// would not be comparable to its recording. Readers of the form want a rank where none
// is known; RankTold says whether it is true.
func (k *kinetoWriter) facts() ([]byte, error) {
	var f importer.Facts
	var framework, version, python, processor, level sql.NullString
	err := k.db.Row(k.ctx, `SELECT any_value(framework), any_value(framework_version), any_value(python_version),
		(SELECT any_value(cpu_model) FROM session), (SELECT any_value(level) FROM session) FROM process WHERE framework IS NOT NULL
		AND (? = 0 OR pid = ?)`,
		[]any{k.mainPID, k.mainPID}, &framework, &version, &python, &processor, &level)
	if err != nil {
		return nil, err
	}
	f.RankTold = len(k.who.ranks) > 0
	f.Framework, f.FrameworkVersion, f.Python, f.Processor, f.Level = framework.String, version.String, python.String, processor.String,
		level.String
	return json.Marshal(f)
}

func quoted(s string) string {
	text, err := json.Marshal(strings.ToValidUTF8(s, "\ufffd"))
	if err != nil {
		return `""`
	}
	return string(text)
}

// event starts an event; end writes it.
func (k *kinetoWriter) event(ph, cat, name string, pid, tid int64, ts int64) {
	k.line.Reset()
	k.words(`{"ph": "`, ph, `", "cat": "`, cat, `", "name": `, k.quoted(name))
	k.value(`, "pid": `, pid)
	k.value(`, "tid": `, tid)
	k.value(`, "ts": `, ts/1000)
}

func (k *kinetoWriter) words(all ...string) {
	for _, s := range all {
		k.line.WriteString(s)
	}
}

// value writes a number behind its key.
func (k *kinetoWriter) value(key string, v int64) {
	k.line.WriteString(key)
	k.line.Write(strconv.AppendInt(k.line.AvailableBuffer(), v, 10))
}

// quoted is a name as JSON, made once for all events that have it.
func (k *kinetoWriter) quoted(name string) string {
	if text, ok := k.texts[name]; ok {
		return text
	}
	text := quoted(name)
	if len(k.texts) < mostTexts {
		k.texts[name] = text
	}
	return text
}

// valid says whether a text of the dataset is JSON, once for all events that have it.
func (k *kinetoWriter) valid(text string) bool {
	if ok, known := k.checked[text]; known {
		return ok
	}
	ok := json.Valid([]byte(text))
	if len(k.checked) < mostTexts {
		k.checked[text] = ok
	}
	return ok
}

// mostTexts bounds what is kept of names and shapes.
const mostTexts = 1 << 16

func (k *kinetoWriter) end() error {
	k.line.WriteByte('}')
	if !k.first {
		k.size += 2
		if _, err := k.out.WriteString(",\n"); err != nil {
			return err
		}
	}
	k.first = false
	k.size += int64(k.line.Len())
	_, err := k.out.Write(k.line.Bytes())
	return err
}

func (k *kinetoWriter) metadata() error {
	for pid, name := range k.who.processes {
		if rank, is := k.who.ranks[pid]; is { // the file is of one, and says which
			name = strings.TrimPrefix(name, fmt.Sprintf("rank %d ", rank))
		}
		k.event("M", "__metadata", "process_name", int64(pid), 0, k.firstNS)
		fmt.Fprintf(&k.line, `, "args": {"name": %s}`, quoted(name))
		if err := k.end(); err != nil {
			return err
		}
	}
	for key, name := range k.who.threads {
		k.event("M", "__metadata", "thread_name", int64(key[0]), int64(key[1]), k.firstNS)
		fmt.Fprintf(&k.line, `, "args": {"name": %s}`, quoted(name))
		if err := k.end(); err != nil {
			return err
		}
	}
	return nil
}

// steps marks the steps as the profiler's schedule would have, where it did not:
// readers of this form find them by these names alone.
func (k *kinetoWriter) steps() error {
	var marked int64
	if err := k.db.Row(k.ctx, "SELECT count(*) FROM export_span WHERE layer = 'scope' AND name LIKE 'ProfilerStep#%'", nil,
		&marked); err != nil || marked > 0 {
		return err
	}
	threads, err := timeline.Steps(k.ctx, k.db)
	if err != nil {
		return err
	}
	n := 0
	for _, t := range threads {
		if int32(t.PID) != k.mainPID {
			continue
		}
		for _, s := range t.Of(steps.Warmup, steps.Train) {
			n++
			k.event("X", "user_annotation", "ProfilerStep#"+strconv.Itoa(n), int64(t.PID), int64(t.TID), s.Begin)
			fmt.Fprintf(&k.line, `, "dur": %d, "args": {"found by": %s}`, max((s.Until()-s.Begin)/1000, 1), quoted(string(s.Method)))
			if err := k.end(); err != nil {
				return err
			}
		}
	}
	if n > 0 {
		k.result.LeftOut = append(k.result.LeftOut, fmt.Sprintf("added: %d steps as ProfilerStep#N", n))
	}
	return nil
}

// categoryOf is the event's cat and name.
func categoryOf(r *span) (cat, name string) {
	switch r.layer {
	case "op":
		return "cpu_op", r.name
	case "autograd":
		if r.category.String == "node" {
			return "cpu_op", "autograd::engine::evaluate_function: " + r.name
		}
		return "user_annotation", r.name
	case "python":
		return "python_function", r.name
	case "runtime":
		if strings.HasPrefix(r.name, "cu") && len(r.name) > 2 && r.name[2] >= 'A' && r.name[2] <= 'Z' {
			return "cuda_driver", r.name
		}
		return "cuda_runtime", r.name
	case "device":
		switch r.category.String {
		case "copy":
			return "gpu_memcpy", r.name
		case "set":
			return "gpu_memset", r.name
		case "sync":
			return "cuda_sync", r.name
		case "annotation":
			return "gpu_user_annotation", r.name
		}
		return "kernel", r.name
	case "scope":
		if r.category.String == "function" { // so PyTorch's profiler has them
			return "cpu_op", r.name
		}
	case "collective":
		if r.name == "record_param_comms" || strings.HasPrefix(r.name, "c10d::") {
			return "cpu_op", r.name
		}
	}
	return "user_annotation", r.name
}

func (k *kinetoWriter) span(r *span) error {
	end, ok := k.until(r)
	if !ok {
		k.damaged++
		return nil
	}
	if k.options.MaxBytes > 0 && k.size > k.options.MaxBytes {
		k.cut++
		return nil
	}
	k.result.Slices++
	cat, name := categoryOf(r)
	pid, tid := int64(r.pid), int64(r.tid)
	if r.layer == "device" {
		pid, tid = int64(r.device.Int32), r.stream.Int64
	}
	k.event("X", cat, name, pid, tid, r.ts)
	// Both ends are cut to microseconds, so that what stood in something still
	// does.
	k.value(`, "dur": `, max(end/1000-r.ts/1000, 1))
	k.value(`, "args": {"ts_ns": `, r.ts)
	k.value(`, "dur_ns": `, end-r.ts)
	k.arguments(r)
	k.line.WriteByte('}')
	if err := k.end(); err != nil {
		return err
	}
	return k.flows(r, pid, tid)
}

// arguments are those that readers of the form look for.
func (k *kinetoWriter) arguments(r *span) {
	number := func(key string, v sql.NullInt64) {
		if v.Valid {
			k.words(`, "`, key)
			k.value(`": `, v.Int64)
		}
	}
	raw := func(key string, v sql.NullString) {
		if v.Valid && k.valid(v.String) {
			k.words(`, "`, key, `": `, v.String)
		}
	}
	triple := func(key string, x, y, z sql.NullInt64) {
		if x.Valid {
			k.words(`, "`, key)
			k.value(`": [`, x.Int64)
			k.value(`, `, y.Int64)
			k.value(`, `, z.Int64)
			k.line.WriteByte(']')
		}
	}
	if c, ok := correlation(r); ok {
		k.value(`, "correlation": `, c)
	}
	if r.layer == "device" {
		number("stream", r.stream) // readers take what has one for work
		k.value(`, "device": `, int64(r.device.Int32))
		number("context", r.context)
		triple("grid", r.gridX, r.gridY, r.gridZ)
		triple("block", r.blockX, r.blockY, r.blockZ)
		number("wait_on_stream", r.waitStream)
		number("wait_on_cuda_event_record_corr_id", r.waitCorrelation)
	}
	if r.layer == "op" || r.layer == "autograd" {
		k.value(`, "External id": `, r.id)
		number("Sequence number", r.sequence)
		raw("Input Dims", r.dims)
		raw("Input type", r.types)
		raw("Input Strides", r.strides)
	}
	number("bytes", r.bytes)
	if r.weight != 1 {
		fmt.Fprintf(&k.line, `, "stands for calls": %g`, r.weight)
	}
}

// correlation joins a launch and its work: the recording's own number, else the
// launch's.
func correlation(r *span) (int64, bool) {
	switch {
	case r.layer != "device" && r.layer != "runtime":
		return 0, false
	case r.correlation.Valid:
		return r.correlation.Int64, true
	case r.layer == "device":
		return r.launch.Int64, r.launch.Valid
	}
	return r.id, true
}

// flows are written with the event that they begin or end at.
func (k *kinetoWriter) flows(r *span, pid, tid int64) error {
	write := func(ph, cat string, id int64) error {
		k.event(ph, cat, cat, pid, tid, r.ts)
		k.value(`, "id": `, id)
		if ph == "f" {
			k.line.WriteString(`, "bp": "e"`)
		}
		k.value(`, "args": {"ts_ns": `, r.ts)
		k.line.WriteByte('}')
		return k.end()
	}
	if r.from {
		if err := write("s", "fwdbwd", r.target); err != nil {
			return err
		}
	}
	if r.to {
		if err := write("f", "fwdbwd", r.id); err != nil {
			return err
		}
	}
	if c, ok := correlation(r); ok {
		switch {
		case r.layer == "device" && r.launch.Valid:
			return write("f", "ac2g", c)
		case r.layer == "runtime" && (r.category.String == "launch" || r.category.String == "copy" || r.category.String == "set" ||
			r.category.String == "graph"):
			return write("s", "ac2g", c)
		}
	}
	return nil
}

// memory are the allocator's instants.
func (k *kinetoWriter) memory() error {
	where := ""
	if k.options.Rank != nil {
		where = fmt.Sprintf(" AND pid = %d", k.mainPID)
	}
	rows, err := k.db.Query(k.ctx, `SELECT ts_ns, pid, tid, space, device_id, action, address, bytes, total_allocated_bytes,
		total_reserved_bytes FROM memory
		WHERE level = 'allocator' AND action IN ('alloc', 'free') AND bytes IS NOT NULL`+where+" ORDER BY ts_ns")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var ts, address, bytes int64
		var pid, tid int64
		var space, action string
		var device sql.NullInt32
		var allocated, reserved sql.NullInt64
		if err := rows.Scan(&ts, &pid, &tid, &space, &device, &action, &address, &bytes, &allocated, &reserved); err != nil {
			return err
		}
		if action == "free" {
			bytes = -bytes
		}
		kind, id := 0, int32(-1)
		if space != "host" {
			kind, id = 1, device.Int32
		}
		k.event("i", "cpu_instant_event", "[memory]", pid, tid, ts)
		fmt.Fprintf(&k.line, `, "s": "t", "args": {"ts_ns": %d, "Bytes": %d, "Addr": %d, "Device Type": %d, "Device Id": %d`, ts, bytes, address,
			kind, id)
		if allocated.Valid {
			fmt.Fprintf(&k.line, `, "Total Allocated": %d`, allocated.Int64)
		}
		if reserved.Valid {
			fmt.Fprintf(&k.line, `, "Total Reserved": %d`, reserved.Int64)
		}
		k.line.WriteByte('}')
		if err := k.end(); err != nil {
			return err
		}
	}
	return rows.Err()
}
