package importer

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// nsys is an export of Nsight Systems. Tables and columns come and go between
// its versions: what a query needs is looked up first.
type nsys struct {
	*database
	base    int64 // Unix epoch minus the file's clock
	strings map[int64]string
	names   map[int32]string
	threads map[[2]int32]string
	device  string
	host    string
	calls   calls
	kinds   kernels
	row     row
}

func openNsys(path string) (source, error) {
	db, err := openDatabase(path)
	if err != nil {
		return nil, err
	}
	return newNsys(db)
}

func newNsys(db *database) (source, error) {
	n := &nsys{database: db, calls: calls{}, kinds: kernels{}, names: map[int32]string{}, threads: map[[2]int32]string{}}
	if err := n.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s %w: %w", db.path, ErrFormat, damaged(err)), db.Close())
	}
	return n, nil
}

func (n *nsys) name() string { return "nsys" }

func (n *nsys) again() bool { return false }

func (n *nsys) describe() description {
	d := description{base: n.base, rank: rankOf(n.path), deviceName: n.device, processNames: n.names, threadNames: n.threads, host: n.host}
	for _, t := range slices.Sorted(maps.Keys(n.tables)) {
		if !n.leaves(t) {
			continue
		}
		if rows := n.count(t); rows > 0 {
			d.warnings = append(d.warnings, event.Warning{Kind: "import", Source: t, Count: rows,
				Detail: fmt.Sprintf("%d rows of table %.80s are not imported", rows, t)})
		}
	}
	return d
}

// known are tables of rows with times that are read, or that have other rows' details.
var known = []string{
	"CUPTI_ACTIVITY_KIND_RUNTIME", "OSRT_API", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
	"CUPTI_ACTIVITY_KIND_MEMCPY",
	"CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "DIAGNOSTIC_EVENT",
}

// leaves reports whether a table has rows of events that are not imported: of a kind that is not known, or
// without a time.
func (n *nsys) leaves(table string) bool {
	name, columns := strings.ToUpper(unversioned(table)), n.tables[table]
	switch {
	case strings.HasPrefix(name, "TARGET_INFO"), strings.HasPrefix(name, "META_DATA"), strings.HasPrefix(name, "ENUM_"):
		return false
	case slices.Contains(known, name):
		return name != "DIAGNOSTIC_EVENT" && !columns["start"]
	}
	return columns["start"] || columns["timestamp"] || columns["rawTimestamp"] || name == "GPU_METRICS"
}

var tableVersion = regexp.MustCompile(`(?i)_v\d+$`)

// unversioned is a table's name without the version that some exports put behind it.
func unversioned(table string) string { return tableVersion.ReplaceAllString(table, "") }

// called are the tables of a name, with and without a version, the newest last.
func (n *nsys) called(name string) (all []string) {
	for t := range n.tables {
		if strings.EqualFold(unversioned(t), name) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return all
}

// newest is the last of the tables of a name with some columns, "" if there is none.
func (n *nsys) newest(name string, columns ...string) string {
	for _, t := range slices.Backward(n.called(name)) {
		if !slices.ContainsFunc(columns, func(c string) bool { return !n.tables[t][c] }) {
			return `"` + t + `"`
		}
	}
	return ""
}

func (n *nsys) load() error {
	names := n.newest("StringIds", "id", "value")
	if names == "" {
		return errors.New("it has no table StringIds, so it is no export of Nsight Systems")
	}
	var err error
	if n.strings, err = n.texts("SELECT id, value FROM " + names); err != nil {
		return err
	}
	n.loadTarget()
	return nil
}

// loadTarget reads what is good to know; an export may lack any of it.
func (n *nsys) loadTarget() {
	if t := n.newest("TARGET_INFO_SESSION_START_TIME", "utcEpochNs"); t != "" {
		_ = n.one("SELECT utcEpochNs FROM "+t, &n.base)
		if t := n.newest("TARGET_INFO_SESSION_START_TIME", "systemClockNs"); t != "" {
			var clock sql.NullInt64
			_ = n.one("SELECT systemClockNs FROM "+t, &clock)
			n.base -= clock.Int64
		}
	}
	if t := n.newest("TARGET_INFO_GPU", "name"); t != "" {
		_ = n.one("SELECT name FROM "+t, &n.device)
	}
	if t := n.newest("TARGET_INFO_SYSTEM_ENV", "name", "value"); t != "" {
		_ = n.one("SELECT value FROM "+t+" WHERE name = 'Hostname'", &n.host)
	}
	ctx := context.Background()
	if t := n.newest("PROCESSES", "pid", "name"); t != "" {
		_ = n.each(ctx, "SELECT pid, name FROM "+t, func(rows *sql.Rows) error {
			var pid int32
			var name sql.NullString
			if err := rows.Scan(&pid, &name); err != nil {
				return err
			}
			n.names[pid] = name.String
			return nil
		})
	}
	if t := n.newest("ThreadNames", "globalTid", "nameId"); t != "" {
		_ = n.each(ctx, "SELECT globalTid, nameId FROM "+t, func(rows *sql.Rows) error {
			var thread sql.NullInt64
			var name int64
			if err := rows.Scan(&thread, &name); err != nil {
				return err
			}
			pid, tid := split(thread.Int64)
			n.threads[[2]int32{pid, tid}] = n.strings[name]
			return nil
		})
	}
}

// split takes apart Nsight's serialised ids: 24 bits of process, 24 of thread.
func split(global int64) (pid, tid int32) {
	return int32(global >> 24 & 0xffffff), int32(global & 0xffffff)
}

func (n *nsys) read(ctx context.Context, brief bool, h handler, progress func(float64)) error {
	readers := []struct {
		table string
		read  func(context.Context, string, handler) error
	}{
		{"CUPTI_ACTIVITY_KIND_RUNTIME", n.runtime},
		{"OSRT_API", n.system},
		{"NVTX_EVENTS", n.ranges},
		{"CUPTI_ACTIVITY_KIND_KERNEL", n.kernels},
		{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", n.graphs},
		{"CUPTI_ACTIVITY_KIND_MEMCPY", n.copies},
		{"CUPTI_ACTIVITY_KIND_MEMSET", n.copies},
		{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", n.waits},
	}
	if brief {
		shift := n.base
		n.base = 0
		defer func() { n.base = shift }()
	}
	for i, r := range readers {
		if progress != nil {
			progress(float64(i) / float64(len(readers)))
		}
		for _, table := range n.called(r.table) {
			if !n.tables[table]["start"] {
				continue // leaves counts its rows
			}
			if err := r.read(ctx, table, h); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return fmt.Errorf("%s %w: table %s: %w", n.path, ErrFormat, table, damaged(err))
			}
		}
	}
	return nil
}

// begin fills the row with what all tables have.
func (n *nsys) begin(call event.Call, start int64, end sql.NullInt64) *row {
	n.row = row{call: n.calls.of(call), start: n.base + start, duration: missing, sequence: -1, calls: 1}
	if end.Valid {
		n.row.duration = end.Int64 - start
	}
	return &n.row
}

var versioned = regexp.MustCompile(`_(v\d+|ptsz)+$`)

// key makes a correlation of one process one of the file.
func key(pid int32, correlation int64) int64 { return int64(pid)<<38 | correlation&(1<<38-1) }

func (n *nsys) runtime(ctx context.Context, table string, h handler) error {
	return n.each(ctx, "SELECT start, "+n.columns(table, "end", "globalTid", "correlationId", "nameId", "returnValue")+" FROM "+table,
		func(rows *sql.Rows) error {
			var start int64
			var end, thread, correlation, name, result sql.NullInt64
			if err := rows.Scan(&start, &end, &thread, &correlation, &name, &result); err != nil {
				return err
			}
			text := versioned.ReplaceAllString(n.strings[name.Int64], "")
			r := n.begin(event.Call{Layer: "runtime", Category: runtimeCategory(text), Runtime: runtimeOf(text), Name: text}, start, end)
			r.pid, r.tid = split(thread.Int64)
			if correlation.Valid {
				r.correlation = key(r.pid, correlation.Int64)
			}
			switch code := result.Int64; code {
			case 0:
				r.status = event.StatusOK
			case 600: // cudaErrorNotReady, CUDA_ERROR_NOT_READY
				r.status = event.StatusNotReady
			default:
				r.status, r.detail.ErrorCode = event.StatusError, &code
			}
			return h.row(r)
		})
}

func (n *nsys) system(ctx context.Context, table string, h handler) error {
	return n.each(ctx, "SELECT start, "+n.columns(table, "end", "globalTid", "nameId")+" FROM "+table, func(rows *sql.Rows) error {
		var start int64
		var end, thread, name sql.NullInt64
		if err := rows.Scan(&start, &end, &thread, &name); err != nil {
			return err
		}
		r := n.begin(event.Call{Layer: "os", Category: "call", Name: n.strings[name.Int64]}, start, end)
		r.pid, r.tid = split(thread.Int64)
		return h.row(r)
	})
}

// What torch.autograd.profiler.emit_nvtx puts behind a name.
var nvtxSuffix = regexp.MustCompile(`^(.*?)(?:, seq = (\d+))?(?:, op_id = (\d+))?(?:, sizes = (\[.*\]))?(?:, input_op_ids = .*)?$`)

// onlyRanges is the condition by which marks are left out, as far as the columns
// of this version can say it.
func (n *nsys) onlyRanges(table string) string {
	var any []string
	if n.tables[table]["eventType"] {
		any = append(any, "eventType IN (59, 60, 70, 71)")
	}
	if n.tables[table]["end"] {
		any = append(any, `"end" IS NOT NULL`)
	}
	if len(any) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(any, " OR ")
}

// ranges are those of NVTX; marks have no end and are points, not work.
func (n *nsys) ranges(ctx context.Context, table string, h handler) error {
	return n.each(ctx, "SELECT start, "+n.columns(table, "end", "eventType", "globalTid", "text", "textId")+" FROM "+table+n.onlyRanges(table),
		func(rows *sql.Rows) error {
			var start int64
			var end, kind, thread, textID sql.NullInt64
			var text sql.NullString
			if err := rows.Scan(&start, &end, &kind, &thread, &text, &textID); err != nil {
				return err
			}
			if !text.Valid {
				text.String = n.strings[textID.Int64]
			}
			call, sequence, sizes := nvtxCall(text.String)
			r := n.begin(call, start, end)
			r.pid, r.tid = split(thread.Int64)
			r.sequence, r.arguments.dims = sequence, sizes
			return h.row(r)
		})
}

func nvtxCall(text string) (call event.Call, sequence int64, sizes string) {
	sequence = -1
	m := nvtxSuffix.FindStringSubmatch(text)
	name := text
	if m != nil {
		name, sizes = m[1], m[4]
		if s, err := strconv.ParseInt(m[2], 10, 64); err == nil {
			sequence = s
		}
	}
	switch {
	case strings.HasPrefix(name, evaluateFunction):
		return event.Call{Layer: "autograd", Category: "node", Name: strings.TrimPrefix(name, evaluateFunction)}, sequence, sizes
	case m != nil && (m[3] != "" || m[2] != "") || strings.HasPrefix(name, "aten::"):
		return event.Call{Layer: "op", Name: name}, sequence, sizes
	case strings.HasPrefix(name, "nccl"):
		return event.Call{Layer: "collective", Category: "issue", Runtime: "nccl", Name: name}, sequence, sizes
	}
	return event.Call{Layer: "scope", Name: name}, sequence, sizes
}
