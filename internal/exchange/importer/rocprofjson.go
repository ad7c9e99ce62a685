package importer

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// rocprofJSON is a trace of AMD's rocprofv3 in its own JSON (--output-format json). Records name what they are by numbers,
// whose names stand elsewhere in the file.
type rocprofJSON struct {
	path string
	size int64

	calls     calls
	kinds     kernels
	row       row
	described description
	unread    map[string]int64 // records by member
	cut       bool             // the file ends early
	// of is what the file says about the process whose records are read; all are kept, by position, for the next pass.
	of  *rocprofProcess
	all []*rocprofProcess
	// late: records stood before what names them.
	late bool
}

type rocprofProcess struct {
	pid     int32
	domains []rocprofDomain
	markers map[uint64]string // messages by correlation
	agents  map[uint64]agent
	symbols map[uint64]kernelSymbol
	// complete: all of it was read once, so that what stands behind the records is known.
	complete bool
	// streams: some record has one; else queues say what runs side by side.
	streams bool
}

type rocprofDomain struct {
	Kind       string   `json:"kind"`
	Operations []string `json:"operations"`
}

const rocprofTool = "rocprofiler-sdk-tool"

type handle struct {
	Handle uint64 `json:"handle"`
}

type extent struct {
	X int64 `json:"x"`
	Y int64 `json:"y"`
	Z int64 `json:"z"`
}

func (e extent) sides() [3]int64 { return [3]int64{e.X, e.Y, e.Z} }

// rocprofRecord has the members of all records that are read.
type rocprofRecord struct {
	Kind        int   `json:"kind"`
	Operation   int   `json:"operation"`
	Thread      int32 `json:"thread_id"`
	Start       int64 `json:"start_timestamp"`
	End         int64 `json:"end_timestamp"`
	Correlation struct {
		Internal uint64 `json:"internal"`
	} `json:"correlation_id"`
	Stream *handle `json:"stream_id"`
	// Of copies.
	Bytes *int64  `json:"bytes"`
	To    *handle `json:"dst_agent_id"`
	From  *handle `json:"src_agent_id"`
	// Of kernels.
	Dispatch *struct {
		Agent  handle `json:"agent_id"`
		Queue  handle `json:"queue_id"`
		Kernel uint64 `json:"kernel_id"`
		Shared *int64 `json:"group_segment_size"`
		Group  extent `json:"workgroup_size"`
		Work   extent `json:"grid_size"`
	} `json:"dispatch_info"`
}

func (r *rocprofJSON) name() string { return "rocprofv3" }

func (r *rocprofJSON) again() bool { return r.late }

func (r *rocprofJSON) describe() description {
	d := r.described
	d.rank = rankOf(r.path)
	for _, member := range slices.Sorted(maps.Keys(r.unread)) {
		if n := r.unread[member]; n > 0 {
			d.warnings = append(d.warnings, event.Warning{Kind: "import", Source: member, Count: n,
				Detail: fmt.Sprintf("%d records of %.80s are not imported", n, member)})
		}
	}
	if r.cut {
		d.warnings = append(d.warnings, event.Warning{Kind: "import", Source: r.path, Count: 1,
			Detail: "the file ends early, as of a job that was killed while it was written: what it holds up to there was imported"})
	}
	return d
}

func (r *rocprofJSON) read(ctx context.Context, _ bool, h handler, progress func(float64)) error {
	file, err := os.Open(r.path)
	if err != nil {
		return fmt.Errorf("importing %s: %w", r.path, err)
	}
	defer file.Close()
	r.described = description{processNames: map[int32]string{}}
	r.unread, r.cut, r.late = map[string]int64{}, false, false
	d := json.NewDecoder(bufio.NewReaderSize(file, 1<<20))
	reader := &jsonReader{Decoder: d}
	progressed := func() {
		if progress != nil {
			progress(float64(d.InputOffset()) / float64(r.size))
		}
	}
	err = reader.members(func(member string) error {
		if member != rocprofTool {
			return reader.skip()
		}
		first, err := d.Token()
		if err != nil {
			return err
		}
		if first == json.Delim('{') { // one process, in releases before 6.3
			return r.process(ctx, reader, 0, h, progressed)
		}
		if first != json.Delim('[') {
			return fmt.Errorf("%v where the list of processes should be", first)
		}
		for i := 0; d.More(); i++ {
			if err := reader.opens('{'); err != nil {
				return err
			}
			if err := r.process(ctx, reader, i, h, progressed); err != nil {
				return err
			}
		}
		_, err = d.Token()
		return err
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		r.cut = true
		return nil
	}
	return fmt.Errorf("%s %w: byte %d: %w", r.path, ErrFormat, d.InputOffset(), err)
}

// process reads one process's part of the file, which is open.
func (r *rocprofJSON) process(ctx context.Context, d *jsonReader, i int, h handler, progress func()) error {
	if i == len(r.all) {
		r.all = append(r.all, &rocprofProcess{markers: map[uint64]string{}, agents: map[uint64]agent{}, symbols: map[uint64]kernelSymbol{}})
	}
	p := r.all[i]
	r.of = p
	err := d.rest(func(member string) error {
		switch member {
		case "metadata":
			return r.metadata(d)
		case "agents":
			return r.agentsOf(d)
		case "strings":
			return r.stringsOf(d)
		case "kernel_symbols":
			return d.list(func() error {
				var k struct {
					ID        uint64 `json:"kernel_id"`
					Symbol    string `json:"kernel_name"`
					Formatted string `json:"formatted_kernel_name"`
				}
				if err := d.Decode(&k); err != nil {
					return err
				}
				p.symbols[k.ID] = kernelOf(k.Symbol, k.Formatted)
				return nil
			})
		case "buffer_records":
			if !p.complete && (p.pid == 0 || len(p.domains) == 0 || len(p.symbols) == 0) {
				r.late = true
			}
			return d.members(func(kind string) error { return r.records(ctx, d, kind, h, progress) })
		}
		return d.skip()
	})
	p.complete = true
	return err
}

func (r *rocprofJSON) metadata(d *jsonReader) error {
	var m struct {
		PID     int32    `json:"pid"`
		Command []string `json:"command"`
		Node    struct {
			Hostname string `json:"hostname"`
		} `json:"node"`
	}
	if err := d.Decode(&m); err != nil {
		return err
	}
	r.of.pid = m.PID
	if len(m.Command) > 0 {
		r.described.processNames[m.PID] = filepath.Base(m.Command[0])
	}
	if r.described.host == "" {
		r.described.host = m.Node.Hostname
	}
	return nil
}

// Of agents' types, rocprofiler_agent_type_t.
const gpuAgent = 2

func (r *rocprofJSON) agentsOf(d *jsonReader) error {
	return d.list(func() error {
		var a struct {
			ID      handle `json:"id"`
			Type    int    `json:"type"`
			Index   *int64 `json:"logical_node_type_id"`
			Product string `json:"product_name"`
			Model   string `json:"model_name"`
			Name    string `json:"name"`
		}
		if err := d.Decode(&a); err != nil {
			return err
		}
		known := agent{gpu: a.Type == gpuAgent, name: a.Product}
		if known.name == "" {
			known.name = a.Model
		}
		if known.name == "" {
			known.name = a.Name
		}
		if a.Index != nil {
			known.index.Int64, known.index.Valid = *a.Index, true
		}
		r.of.agents[a.ID.Handle] = known
		if known.gpu && r.described.deviceName == "" {
			r.described.deviceName = known.name
		}
		return nil
	})
}

func (r *rocprofJSON) stringsOf(d *jsonReader) error {
	return d.members(func(member string) error {
		switch member {
		case "buffer_records":
			r.of.domains = nil
			return d.list(func() error {
				var domain rocprofDomain
				if err := d.Decode(&domain); err != nil {
					return err
				}
				r.of.domains = append(r.of.domains, domain)
				return nil
			})
		case "marker_api":
			return d.list(func() error {
				var m struct {
					Key   uint64 `json:"key"`
					Value string `json:"value"`
				}
				if err := d.Decode(&m); err != nil {
					return err
				}
				r.of.markers[m.Key] = m.Value
				return nil
			})
		}
		return d.skip()
	})
}

// rocprofCalls are the members whose records are calls on a thread.
var rocprofCalls = []string{"hip_api", "hsa_api", "marker_api", "rccl_api"}

func (r *rocprofJSON) records(ctx context.Context, d *jsonReader, kind string, h handler, progress func()) error {
	build := r.call
	switch {
	case kind == "kernel_dispatch":
		build = r.kernel
	case kind == "memory_copy":
		build = r.copy
	case !slices.Contains(rocprofCalls, kind):
		return d.list(func() error {
			r.unread[kind]++
			return d.skip()
		})
	}
	read := 0
	return d.list(func() error {
		if read++; read%4096 == 0 {
			progress()
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		var record rocprofRecord
		var unfit *json.UnmarshalTypeError
		if err := d.Decode(&record); errors.As(err, &unfit) {
			r.unread[kind]++
			return nil
		} else if err != nil {
			return err
		}
		row := build(&record)
		if row == nil {
			r.unread[kind]++
			return nil
		}
		return h.row(row)
	})
}

// operation is what a record is: its domain and the name of the operation.
func (p *rocprofProcess) operation(record *rocprofRecord) (domain, operation string) {
	if record.Kind < 0 || record.Kind >= len(p.domains) {
		return "", ""
	}
	d := &p.domains[record.Kind]
	if record.Operation < 0 || record.Operation >= len(d.Operations) {
		return d.Kind, ""
	}
	return d.Kind, d.Operations[record.Operation]
}

func (r *rocprofJSON) begin(call event.Call, record *rocprofRecord) *row {
	r.row = row{call: r.calls.of(call), start: record.Start, duration: record.End - record.Start, sequence: -1, calls: 1, pid: r.of.pid}
	if id := record.Correlation.Internal; id != 0 {
		r.row.correlation = key(r.of.pid, int64(id))
	}
	return &r.row
}

// call is nil for what is no work, such as a mark.
func (r *rocprofJSON) call(record *rocprofRecord) *row {
	domain, operation := r.of.operation(record)
	call, ok := rocmCall(domain, operation, r.of.markers[record.Correlation.Internal])
	if !ok {
		return nil
	}
	row := r.begin(call, record)
	row.tid = record.Thread
	return row
}

func (r *rocprofJSON) kernel(record *rocprofRecord) *row {
	if record.Dispatch == nil {
		return nil
	}
	k := r.of.symbols[record.Dispatch.Kernel]
	if k.name == "" {
		k.name = fmt.Sprintf("kernel %d", record.Dispatch.Kernel)
	}
	row := r.begin(event.Call{Layer: "device", Category: r.kinds.category(k.name), Name: k.name}, record)
	row.onAgent(r.of.agents[record.Dispatch.Agent.Handle], r.lane(record.Stream, &record.Dispatch.Queue))
	row.detail.Symbol = k.symbol
	row.dispatch(record.Dispatch.Work.sides(), record.Dispatch.Group.sides())
	row.detail.SharedBytes = record.Dispatch.Shared
	return row
}

func (r *rocprofJSON) copy(record *rocprofRecord) *row {
	_, operation := r.of.operation(record)
	row := r.begin(event.Call{Layer: "device", Category: deviceCopy, Name: rocmCopy(operation)}, record)
	on := agent{}
	for _, end := range []*handle{record.From, record.To} {
		if end != nil && r.of.agents[end.Handle].gpu {
			on = r.of.agents[end.Handle]
		}
	}
	row.onAgent(on, r.lane(record.Stream, nil))
	row.detail.Direction, row.detail.Bytes = direction(operation), record.Bytes
	return row
}

// lane is what runs one after the other: a stream, or a queue where no stream was recorded.
func (r *rocprofJSON) lane(stream, queue *handle) (number sql.NullInt64) {
	if stream != nil && stream.Handle != 0 && !r.of.streams {
		r.of.streams, r.late = true, true
	}
	if !r.of.streams && queue != nil {
		stream = queue
	}
	if stream != nil {
		number = sql.NullInt64{Int64: int64(stream.Handle), Valid: true}
	}
	return number
}

// jsonReader walks through JSON without holding it.
type jsonReader struct{ *json.Decoder }

// members calls f at the value of each member of an object, which f must read.
func (d *jsonReader) members(f func(member string) error) error {
	if err := d.opens('{'); err != nil {
		return err
	}
	return d.rest(f)
}

// rest is members of an object that was opened.
func (d *jsonReader) rest(f func(member string) error) error {
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if err := f(name.(string)); err != nil { // encoding/json: a member's name is a string
			return err
		}
	}
	_, err := d.Token()
	return err
}

// list calls f at each value of an array, which f must read.
func (d *jsonReader) list(f func() error) error {
	if err := d.opens('['); err != nil {
		return err
	}
	for d.More() {
		if err := f(); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func (d *jsonReader) opens(delim json.Delim) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	if token != delim {
		return fmt.Errorf("%v where %v should be", token, delim)
	}
	return nil
}

// skip reads a value that nobody needs.
func (d *jsonReader) skip() error {
	depth := 0
	for {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
