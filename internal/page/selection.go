package page

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page/pyramid"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// selected is /api/selection: what ran in a box of the timeline.
type selected struct {
	SQL   string        `json:"sql"` // the query that found it
	Rows  []selectedRow `json:"rows"`
	More  bool          `json:"has_more"`
	CPUNS *int64        `json:"cpu_ns"` // of the threads, by samples; null without
	OffNS *int64        `json:"wait_ns"`
}

// selectedRow is what the calls of one name took. Time is that inside the box; calls are those that begin in it.
type selectedRow struct {
	Name        string  `json:"name"`
	Layer       string  `json:"layer"`
	Calls       int64   `json:"calls"`
	Represented float64 `json:"represented"` // calls that the rows represent, an estimate where it differs
	TimeNS      int64   `json:"time_ns"`
	LongestNS   *int64  `json:"longest_ns"`
	DeviceLoNS  *int64  `json:"device_lo_ns"`
	DeviceHiNS  *int64  `json:"device_hi_ns"`
	Unfinished  int64   `json:"unfinished"`
}

const mostSelected = 200

// literal is text in SQL.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// ofLane is the condition that chooses a lane's rows.
func ofLane(l pyramid.Lane) string {
	where := fmt.Sprintf("session_id = %s AND pid = %d AND tid = %d", literal(l.Session), l.PID, l.TID)
	if !l.Device {
		return where + " AND layer <> 'device'"
	}
	return where + " AND layer = 'device' AND " + same("device_id", l.DeviceID) + " AND " + same("stream", l.Stream)
}

func same(column string, n int64) string {
	if n == dataset.Absent {
		return column + " IS NULL"
	}
	return fmt.Sprintf("%s = %d", column, n)
}

func (s *edition) selection(r *http.Request) (any, error) {
	p, err := s.pyramid(r.Context())
	if err != nil {
		return nil, err
	}
	w, err := window(r)
	if err != nil {
		return nil, err
	}
	var ofLanes, ofThreads []string
	all := p.Lanes()
	for _, n := range w.Lanes {
		if n >= len(all) {
			continue
		}
		ofLanes = append(ofLanes, "("+ofLane(all[n])+")")
		if l := all[n]; !l.Device {
			ofThreads = append(ofThreads, fmt.Sprintf("(session_id = %s AND pid = %d AND tid = %d)", literal(l.Session), l.PID, l.TID))
		}
	}
	if len(ofLanes) == 0 {
		return nil, badRequest("no lane is selected")
	}
	from, until := p.Base()+w.From, p.Base()+w.Until
	d := selected{Rows: []selectedRow{}, SQL: fmt.Sprintf(`SELECT name, layer, count(*) FILTER (ts_ns >= %[1]d) AS calls,
  coalesce(sum(weight) FILTER (ts_ns >= %[1]d), 0) AS represented,
  sum(greatest(0, least(ts_ns + coalesce(duration_ns, 0), %[2]d) - greatest(ts_ns, %[1]d)))::BIGINT AS time_ns,
  max(duration_ns) AS longest_ns, sum(device_time_lo_ns)::BIGINT AS device_lo_ns, sum(device_time_hi_ns)::BIGINT AS device_hi_ns,
  count(*) FILTER (duration_ns IS NULL) AS unfinished
FROM span
WHERE ts_ns < %[2]d AND (ts_ns >= %[1]d OR ts_ns + duration_ns > %[1]d)
  AND (%[3]s)
GROUP BY ALL ORDER BY time_ns DESC, calls DESC, name, layer LIMIT %[4]d`, from, until, strings.Join(ofLanes, "\n    OR "), mostSelected)}
	err = s.query(r.Context(), func(ctx context.Context, db *dataset.DB) error {
		if err := d.read(ctx, db); err != nil || len(ofThreads) == 0 {
			return err
		}
		return d.samples(ctx, db, from, until, strings.Join(ofThreads, " OR "))
	})
	return d, err
}

func (d *selected) read(ctx context.Context, db *dataset.DB) error {
	rows, err := db.Query(ctx, d.SQL)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var row selectedRow
		err := rows.Scan(&row.Name, &row.Layer, &row.Calls, &row.Represented, &row.TimeNS, &row.LongestNS, &row.DeviceLoNS, &row.DeviceHiNS,
			&row.Unfinished)
		if err != nil {
			return err
		}
		row.Name, row.Layer = printable.Short(row.Name), printable.Short(row.Layer)
		d.Rows = append(d.Rows, row)
	}
	d.More = len(d.Rows) == mostSelected
	return rows.Err()
}

// samples adds how long the threads were on a CPU and waited.
func (d *selected) samples(ctx context.Context, db *dataset.DB, from, until int64, threads string) error {
	var cpu, off sql.NullInt64
	query := fmt.Sprintf(`SELECT sum(weight_ns) FILTER (state = 'on_cpu' AND ts_ns >= %[1]d)::BIGINT,
		sum(least(ts_ns + weight_ns, %[2]d) - greatest(ts_ns, %[1]d)) FILTER (state = 'off_cpu')::BIGINT
		FROM sample WHERE ts_ns < %[2]d AND ts_ns + weight_ns > %[1]d AND (%[3]s)`, from, until, threads)
	if err := db.Row(ctx, query, nil, &cpu, &off); err != nil {
		return err
	}
	if cpu.Valid || off.Valid {
		d.CPUNS, d.OffNS = &cpu.Int64, &off.Int64
	}
	return nil
}

// called is /api/call: all that is known of one call.
type called struct {
	Session string      `json:"session"`
	ID      string      `json:"span_id"` // beyond what a double has
	StartNS int64       `json:"start_ns"`
	Fields  [][2]string `json:"fields"`
	Stack   []line      `json:"stack"` // of Python, innermost first
	SQL     string      `json:"sql"`
}

type line struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     int64  `json:"line"`
}

// mostText of a value is sent whole.
const mostText = 1 << 20

func long(text string) string {
	if len(text) > mostText {
		return printable.Lines(strings.ToValidUTF8(text[:mostText], "")) + fmt.Sprintf("… (%d bytes)", len(text))
	}
	return printable.Lines(text)
}

// call finds the call of a lane that begins at a time, as exact as the picture has it.
func (s *edition) call(r *http.Request) (any, error) {
	p, err := s.pyramid(r.Context())
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	number, errLane := strconv.Atoi(q.Get("lane"))
	at, errAt := strconv.ParseInt(q.Get("at"), 10, 64)
	unit, errUnit := strconv.ParseInt(q.Get("unit"), 10, 64)
	all := p.Lanes()
	if errLane != nil || errAt != nil || errUnit != nil || number < 0 || number >= len(all) || at < 0 || at > widest || unit < 1 ||
		unit > widest {
		return nil, badRequest("give lane, at and unit, as the timeline has them")
	}
	where := fmt.Sprintf("%s AND ts_ns BETWEEN %d AND %d", ofLane(all[number]), p.Base()+at-unit, p.Base()+at+unit)
	order := fmt.Sprintf("abs(ts_ns - %d)", p.Base()+at)
	if id := q.Get("id"); id != "" {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return nil, badRequest("id=%q is no number", printable.Short(id))
		}
		where = fmt.Sprintf("%s AND span_id = %d", ofLane(all[number]), n)
	}
	// The name that the picture has may be cut; of the calls that begin here, that of the same duration is meant.
	if d, err := strconv.ParseInt(q.Get("duration"), 10, 64); err == nil {
		order = fmt.Sprintf("abs(coalesce(duration_ns, -1) - (%d)), %s", d, order)
	}
	c := called{Fields: [][2]string{}, Stack: []line{}, SQL: "SELECT * FROM span WHERE " + where}
	err = s.query(r.Context(), func(ctx context.Context, db *dataset.DB) error {
		return c.read(ctx, db, fmt.Sprintf("%s ORDER BY %s, span_id LIMIT 1", c.SQL, order), p.Base())
	})
	if err == nil && c.ID == "" {
		return nil, notFound("no call begins there")
	}
	c.SQL = fmt.Sprintf("SELECT * FROM span WHERE session_id = %s AND span_id = %s", literal(c.Session), c.ID)
	return c, err
}

func (c *called) read(ctx context.Context, db *dataset.DB, query string, base int64) error {
	rows, err := db.Query(ctx, query)
	if err != nil {
		return err
	}
	columns, err := rows.Columns()
	if err != nil {
		rows.Close()
		return err
	}
	values, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	found := rows.Next()
	if found {
		err = rows.Scan(targets...)
	}
	rows.Close()
	if err != nil || !found {
		return err
	}
	var stack any
	for i, name := range columns {
		v := values[i]
		if v == nil || name == "ts" {
			continue
		}
		switch name {
		case "session_id":
			c.Session = fmt.Sprint(v)
		case "span_id":
			c.ID = fmt.Sprint(v)
		case "ts_ns":
			c.StartNS, _ = v.(int64)
			c.StartNS -= base
		case "python_stack_id":
			stack = v
		}
		c.Fields = append(c.Fields, [2]string{name, long(fmt.Sprint(v))})
	}
	if stack == nil {
		return nil
	}
	return c.readStack(ctx, db, stack)
}

func (c *called) readStack(ctx context.Context, db *dataset.DB, id any) error {
	rows, err := db.Query(ctx, `SELECT coalesce(f."function", ''), coalesce(f.file, ''), coalesce(f.line, 0)
		FROM (SELECT unnest(frames) AS f FROM stack WHERE session_id = ? AND stack_id = ?) LIMIT 200`, c.Session, id)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var l line
		if err := rows.Scan(&l.Function, &l.File, &l.Line); err != nil {
			return err
		}
		c.Stack = append(c.Stack, line{printable.Short(l.Function), printable.Text(l.File), l.Line})
	}
	return rows.Err()
}
