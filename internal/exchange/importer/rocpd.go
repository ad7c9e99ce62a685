package importer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// rocpd is a trace of AMD's rocprofv3 in its default form, a database: each process has a set of
// tables whose names end in the process's own id. Since schema 4 a row's times and thread are in
// tables of their own.
type rocpd struct {
	*database
	sets  []*rocpdSet
	calls calls
	kinds kernels
	row   row
	// unplaced are rows that begin at no time, and marks, which are no work.
	unplaced int64
}

// rocpdSet is what one set of tables says about its rows.
type rocpdSet struct {
	suffix              string
	strings, categories map[int64]string
	processes           map[int64]int32 // pid by the table's id
	threads             map[int64]int32
	agents              map[int64]agent
	symbols             map[int64]kernelSymbol
	byQueue             bool // no stream is known: queues tell what runs side by side
	host                string
}

// agent is a processor or a device.
type agent struct {
	gpu   bool
	index sql.NullInt64 // among its kind
	name  string
}

type kernelSymbol struct{ symbol, name string }

const rocpdStrings = "rocpd_string"

// isRocpd reports whether the tables are those of a trace of rocprofv3.
func isRocpd(d *database) bool {
	for t := range d.tables {
		if strings.HasPrefix(t, rocpdStrings) {
			return true
		}
	}
	return false
}

// openSQLite recognises whose database it is by its tables.
func openSQLite(path string) (source, error) {
	db, err := openDatabase(path)
	if err != nil {
		return nil, err
	}
	if isRocpd(db) {
		return newRocpd(db)
	}
	return newNsys(db)
}

func newRocpd(db *database) (source, error) {
	r := &rocpd{database: db, calls: calls{}, kinds: kernels{}}
	for _, t := range slices.Sorted(maps.Keys(db.tables)) {
		suffix, of := strings.CutPrefix(t, rocpdStrings)
		if !of {
			continue
		}
		set := &rocpdSet{suffix: suffix}
		if err := r.load(set); err != nil {
			return nil, errors.Join(fmt.Errorf("%s %w: %w", db.path, ErrFormat, damaged(err)), db.Close())
		}
		r.sets = append(r.sets, set)
	}
	return r, nil
}

// load reads what rows refer to; a table that is not there says nothing.
func (r *rocpd) load(s *rocpdSet) (err error) {
	if s.strings, err = r.texts("SELECT id, " + r.columns(rocpdStrings+s.suffix, "string") + " FROM " +
		quoted(rocpdStrings+s.suffix)); err != nil {
		return err
	}
	s.categories = s.strings
	if t := "rocpd_info_category" + s.suffix; r.tables[t]["id"] { // since schema 4
		if s.categories, err = r.texts("SELECT id, " + r.columns(t, "name") + " FROM " + quoted(t)); err != nil {
			return err
		}
	}
	if s.processes, err = r.ids("rocpd_info_process"+s.suffix, "pid"); err != nil {
		return err
	}
	if s.threads, err = r.ids("rocpd_info_thread"+s.suffix, "tid"); err != nil {
		return err
	}
	if err := r.loadAgents(s); err != nil {
		return err
	}
	if err := r.loadSymbols(s); err != nil {
		return err
	}
	s.byQueue = r.count("rocpd_info_stream"+s.suffix) < 2
	if t := "rocpd_info_node" + s.suffix; r.tables[t]["hostname"] {
		var host sql.NullString
		_ = r.one("SELECT hostname FROM "+quoted(t), &host)
		s.host = host.String
	}
	return nil
}

func (r *rocpd) ids(table, column string) (map[int64]int32, error) {
	ids := map[int64]int32{}
	if !r.tables[table]["id"] {
		return ids, nil
	}
	return ids, r.each(context.Background(), "SELECT id, "+r.columns(table, column)+" FROM "+quoted(table), func(rows *sql.Rows) error {
		var id int64
		var value sql.NullInt64
		if err := rows.Scan(&id, &value); err != nil {
			return err
		}
		ids[id] = int32(value.Int64)
		return nil
	})
}

func (r *rocpd) loadAgents(s *rocpdSet) error {
	s.agents = map[int64]agent{}
	t := "rocpd_info_agent" + s.suffix
	if !r.tables[t]["id"] {
		return nil
	}
	columns := r.columns(t, "type", "type_index", "logical_index", "product_name", "model_name", "name")
	return r.each(context.Background(), "SELECT id, "+columns+" FROM "+quoted(t), func(rows *sql.Rows) error {
		var id int64
		var kind, product, model, name sql.NullString
		var index, logical sql.NullInt64
		if err := rows.Scan(&id, &kind, &index, &logical, &product, &model, &name); err != nil {
			return err
		}
		if !index.Valid {
			index = logical
		}
		a := agent{gpu: kind.String == "GPU", index: index}
		for _, text := range []string{product.String, model.String, name.String} {
			if a.name == "" {
				a.name = text
			}
		}
		s.agents[id] = a
		return nil
	})
}

func (r *rocpd) loadSymbols(s *rocpdSet) error {
	s.symbols = map[int64]kernelSymbol{}
	t := "rocpd_info_kernel_symbol" + s.suffix
	if !r.tables[t]["id"] {
		return nil
	}
	held := 0
	columns := r.columns(t, "kernel_name", "display_name")
	return r.each(context.Background(), "SELECT id, "+columns+" FROM "+quoted(t), func(rows *sql.Rows) error {
		var id int64
		var symbol, name sql.NullString
		if err := rows.Scan(&id, &symbol, &name); err != nil {
			return err
		}
		if held += len(symbol.String) + len(name.String); held > mostStringBytes || len(s.symbols) >= mostStrings {
			return errLarge
		}
		s.symbols[id] = kernelOf(symbol.String, name.String)
		return nil
	})
}

// kernelOf is a kernel by its symbol, which has a suffix for the descriptor, and by its name as people read it.
func kernelOf(symbol, name string) kernelSymbol {
	symbol = strings.TrimSuffix(symbol, ".kd")
	if name = strings.TrimSuffix(name, ".kd"); name == "" {
		name = symbol
	}
	return kernelSymbol{symbol, name}
}

func (r *rocpd) name() string { return "rocprofv3" }

func (r *rocpd) again() bool { return false }

func (r *rocpd) describe() description {
	d := description{rank: rankOf(r.path), processNames: map[int32]string{}, threadNames: map[[2]int32]string{}}
	for _, s := range r.sets {
		if d.host == "" {
			d.host = s.host
		}
		for _, id := range slices.Sorted(maps.Keys(s.agents)) {
			if a := s.agents[id]; a.gpu && d.deviceName == "" {
				d.deviceName = a.name
			}
		}
		r.describeProcesses(s, &d)
	}
	if r.unplaced > 0 {
		d.warnings = append(d.warnings, event.Warning{Kind: "import", Source: rocpdRegions, Count: r.unplaced,
			Detail: fmt.Sprintf("%d rows are marks without a length, or have no time: they are not imported", r.unplaced)})
	}
	for _, t := range slices.Sorted(maps.Keys(r.tables)) {
		if !r.leaves(t) {
			continue
		}
		if rows := r.count(t); rows > 0 {
			d.warnings = append(d.warnings, event.Warning{Kind: "import", Source: t, Count: rows,
				Detail: fmt.Sprintf("%d rows of table %.80s are not imported", rows, t)})
		}
	}
	return d
}

func (r *rocpd) describeProcesses(s *rocpdSet, d *description) {
	ctx := context.Background()
	if t := "rocpd_info_process" + s.suffix; r.tables[t]["pid"] {
		_ = r.each(ctx, "SELECT "+r.columns(t, "pid", "command")+" FROM "+quoted(t), func(rows *sql.Rows) error {
			var pid sql.NullInt64
			var command sql.NullString
			if err := rows.Scan(&pid, &command); err != nil {
				return err
			}
			program, _, _ := strings.Cut(command.String, " ")
			d.processNames[int32(pid.Int64)] = filepath.Base(program)
			return nil
		})
	}
	if t := "rocpd_info_thread" + s.suffix; r.tables[t]["tid"] {
		_ = r.each(ctx, "SELECT "+r.columns(t, "pid", "tid", "name")+" FROM "+quoted(t), func(rows *sql.Rows) error {
			var pid, tid sql.NullInt64
			var name sql.NullString
			if err := rows.Scan(&pid, &tid, &name); err != nil {
				return err
			}
			if name.String != "" {
				d.threadNames[[2]int32{s.process(pid), int32(tid.Int64)}] = name.String
			}
			return nil
		})
	}
}

// Tables of rows with times that are read, and of what belongs to them.
const (
	rocpdRegions  = "rocpd_region"
	rocpdKernels  = "rocpd_kernel_dispatch"
	rocpdCopies   = "rocpd_memory_copy"
	rocpdEvents   = "rocpd_event"
	rocpdTracks   = "rocpd_track"
	rocpdInstants = "rocpd_timestamp"
)

// rocpdUnread have rows of events that are not imported: allocations, samples and counters.
var rocpdUnread = []string{"rocpd_memory_allocate", "rocpd_sample", "rocpd_pmc_event"}

func (r *rocpd) leaves(table string) bool {
	return slices.ContainsFunc(rocpdUnread, func(t string) bool {
		return slices.ContainsFunc(r.sets, func(s *rocpdSet) bool { return table == t+s.suffix })
	})
}

func (r *rocpd) read(ctx context.Context, _ bool, h handler, progress func(float64)) error {
	readers := []struct {
		table string
		read  func(context.Context, *rocpdSet, handler) error
	}{{rocpdRegions, r.regions}, {rocpdKernels, r.kernels}, {rocpdCopies, r.copies}}
	r.unplaced = 0
	for i, s := range r.sets {
		for j, reader := range readers {
			if progress != nil {
				progress(float64(i*len(readers)+j) / float64(len(readers)*len(r.sets)))
			}
			if err := reader.read(ctx, s, h); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return fmt.Errorf("%s %w: table %s: %w", r.path, ErrFormat, reader.table, damaged(err))
			}
		}
	}
	return nil
}

// query selects a table's rows with their times and where they ran, in either schema: start, end, process, thread,
// agent, stream and queue, the correlation and the category of their event; then the columns. "" without the table.
func (r *rocpd) query(s *rocpdSet, table string, columns ...string) string {
	name := table + s.suffix
	have := r.tables[name]
	if !have["start"] && !have["start_id"] {
		return ""
	}
	column := func(t, c string) string {
		if t != "x" || have[c] {
			return t + `."` + c + `"`
		}
		return "NULL"
	}
	at, from := "x", quoted(name)+" x"
	times := []string{`x."start"`, column("x", "end")}
	if have["start_id"] {
		at = "t"
		times = []string{"a.value", "b.value"}
		from += fmt.Sprintf(" LEFT JOIN %s a ON a.id = x.start_id LEFT JOIN %s b ON b.id = x.end_id LEFT JOIN %s t ON t.id = x.track_id",
			quoted(rocpdInstants+s.suffix), quoted(rocpdInstants+s.suffix), quoted(rocpdTracks+s.suffix))
	}
	all := slices.Clone(times)
	for _, c := range []string{"pid", "tid", "agent_id", "stream_id", "queue_id"} {
		if at == "t" && !r.tables[rocpdTracks+s.suffix][c] {
			all = append(all, "NULL")
			continue
		}
		all = append(all, column(at, c))
	}
	if events := rocpdEvents + s.suffix; have["event_id"] && r.tables[events]["stack_id"] {
		from += fmt.Sprintf(" LEFT JOIN %s e ON e.id = x.event_id", quoted(events))
		all = append(all, "e.stack_id", "e.category_id")
		message := "NULL"
		if r.tables[events]["extdata"] {
			message = `CASE WHEN json_valid(e.extdata) THEN json_extract(e.extdata, '$.message') END`
		}
		all = append(all, message)
	} else {
		all = append(all, "NULL", "NULL", "NULL")
	}
	for _, c := range columns {
		all = append(all, column("x", c))
	}
	return "SELECT " + strings.Join(all, ", ") + " FROM " + from
}

// placed is what every row's query begins with.
type placed struct {
	start, end, process, thread, agent, stream, queue, correlation, category sql.NullInt64
	message                                                                  sql.NullString
}

func (p *placed) into(more ...any) []any {
	return append([]any{&p.start, &p.end, &p.process, &p.thread, &p.agent, &p.stream, &p.queue, &p.correlation, &p.category, &p.message},
		more...)
}

func (s *rocpdSet) process(id sql.NullInt64) int32 {
	if pid, known := s.processes[id.Int64]; known && id.Valid {
		return pid
	}
	return int32(id.Int64)
}

func (s *rocpdSet) thread(id sql.NullInt64) int32 {
	if tid, known := s.threads[id.Int64]; known && id.Valid {
		return tid
	}
	return int32(id.Int64)
}

// begin fills the row with what all tables have.
func (r *rocpd) begin(s *rocpdSet, call event.Call, p *placed) *row {
	r.row = row{call: r.calls.of(call), start: p.start.Int64, duration: missing, sequence: -1, calls: 1, pid: s.process(p.process)}
	if p.end.Valid {
		r.row.duration = p.end.Int64 - p.start.Int64
	}
	if p.correlation.Int64 != 0 {
		r.row.correlation = key(r.row.pid, p.correlation.Int64)
	}
	return &r.row
}

// onAgent says which device a row ran on, and on which stream or queue.
func (r *row) onAgent(a agent, lane sql.NullInt64) {
	r.device = true
	if a.index.Valid {
		id := int32(a.index.Int64)
		r.detail.DeviceID = &id
	}
	if lane.Valid {
		number := lane.Int64
		r.detail.Stream = &number
	}
}

// lane is what runs one after the other.
func (s *rocpdSet) lane(p *placed) sql.NullInt64 {
	if s.byQueue && p.queue.Valid {
		return p.queue
	}
	return p.stream
}

// regions are calls of interfaces, and ranges of roctx.
func (r *rocpd) regions(ctx context.Context, s *rocpdSet, h handler) error {
	query := r.query(s, rocpdRegions, "name_id")
	if query == "" {
		return nil
	}
	return r.each(ctx, query, func(rows *sql.Rows) error {
		var p placed
		var name sql.NullInt64
		if err := rows.Scan(p.into(&name)...); err != nil {
			return err
		}
		call, ok := rocmCall(s.categories[p.category.Int64], s.strings[name.Int64], p.message.String)
		if !ok || !p.start.Valid {
			r.unplaced++
			return nil
		}
		w := r.begin(s, call, &p)
		w.tid = s.thread(p.thread)
		return h.row(w)
	})
}

func (r *rocpd) kernels(ctx context.Context, s *rocpdSet, h handler) error {
	query := r.query(s, rocpdKernels, "kernel_id", "grid_size_x", "grid_size_y", "grid_size_z", "workgroup_size_x", "workgroup_size_y",
		"workgroup_size_z", "group_segment_size")
	if query == "" {
		return nil
	}
	return r.each(ctx, query, func(rows *sql.Rows) error {
		var p placed
		var kernel, shared sql.NullInt64
		var size [6]sql.NullInt64
		if err := rows.Scan(p.into(&kernel, &size[0], &size[1], &size[2], &size[3], &size[4], &size[5], &shared)...); err != nil {
			return err
		}
		if !p.start.Valid {
			r.unplaced++
			return nil
		}
		k := s.symbols[kernel.Int64]
		if k.name == "" {
			k.name = fmt.Sprintf("kernel %d", kernel.Int64)
		}
		w := r.begin(s, event.Call{Layer: "device", Category: r.kinds.category(k.name), Name: k.name}, &p)
		w.onAgent(s.agents[p.agent.Int64], s.lane(&p))
		w.detail.Symbol = k.symbol
		if size[0].Valid && size[3].Valid {
			w.dispatch([3]int64{size[0].Int64, size[1].Int64, size[2].Int64}, [3]int64{size[3].Int64, size[4].Int64, size[5].Int64})
		}
		if shared.Valid {
			w.detail.SharedBytes = &shared.Int64
		}
		return h.row(w)
	})
}

// dispatch takes a kernel's size as HSA has it: work items in all, and in a group.
func (r *row) dispatch(work, group [3]int64) {
	blocks := [3]int64{}
	for i := range 3 {
		group[i] = max(group[i], 1)
		blocks[i] = (work[i] + group[i] - 1) / group[i]
	}
	r.detail.Grid, r.detail.Block, r.detail.Work = &blocks, &group, &work
}

func (r *rocpd) copies(ctx context.Context, s *rocpdSet, h handler) error {
	query := r.query(s, rocpdCopies, "name_id", "size", "src_agent_id", "dst_agent_id")
	if query == "" {
		return nil
	}
	return r.each(ctx, query, func(rows *sql.Rows) error {
		var p placed
		var name, bytes, from, to sql.NullInt64
		if err := rows.Scan(p.into(&name, &bytes, &from, &to)...); err != nil {
			return err
		}
		if !p.start.Valid {
			r.unplaced++
			return nil
		}
		w := r.begin(s, event.Call{Layer: "device", Category: deviceCopy, Name: rocmCopy(s.strings[name.Int64])}, &p)
		on := to
		if !s.agents[to.Int64].gpu {
			on = from
		}
		w.onAgent(s.agents[on.Int64], s.lane(&p))
		w.detail.Direction = direction(s.strings[name.Int64])
		if bytes.Valid {
			w.detail.Bytes = &bytes.Int64
		}
		return h.row(w)
	})
}

// rocmCall is a row of a domain that rocprofiler names, such as HIP_RUNTIME_API or MARKER_CORE_RANGE_API. Ranges of roctx
// are scopes by their message; its other calls are no work.
func rocmCall(domain, name, message string) (call event.Call, ok bool) {
	switch {
	case strings.HasPrefix(domain, "MARKER"):
		if !strings.Contains(name, "Range") && message == "" {
			return call, false
		}
		if message == "" {
			message = name
		}
		call, _, _ = nvtxCall(message)
		return call, true
	case strings.HasPrefix(domain, "RCCL"):
		return event.Call{Layer: "collective", Category: "issue", Runtime: "nccl", Name: name}, name != ""
	case strings.HasPrefix(domain, "HIP"), strings.HasPrefix(domain, "HSA"):
		return event.Call{Layer: "runtime", Category: runtimeCategory(name), Runtime: "hip", Name: name}, name != ""
	}
	return event.Call{Layer: "runtime", Category: runtimeCategory(name), Runtime: runtimeOf(name), Name: name}, name != ""
}

// rocmCopies are rocprofiler's names of copies, in torch.profiler's words.
var rocmCopies = map[string]string{
	"host_to_device": "Memcpy HtoD", "device_to_host": "Memcpy DtoH", "device_to_device": "Memcpy DtoD", "host_to_host": "Memcpy HtoH",
}

func rocmCopy(name string) string {
	if known := rocmCopies[direction(name)]; known != "" {
		return known
	}
	return "Memcpy"
}
