package page

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strconv"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/answer/report"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page/pyramid"
)

// marked is /api/marked: where on the timeline the rows of a finding are, or the calls of a name.
type marked struct {
	Rows   int64    `json:"rows"` // in the window
	BinNS  int64    `json:"bin_ns"`
	Places []place  `json:"places"`
	More   bool     `json:"has_more"` // there are more places in this window than are drawn
	Within *stretch `json:"within"`   // from the first place of the recording to the last; null where there is none
	SQL    string   `json:"sql"`
	Why    string   `json:"why"` // nothing can be marked
}

// place is a stretch of a lane, of rows that are closer together than a bin.
type place struct {
	Lane   int   `json:"lane"`   // -1 of a thread without calls
	Thread int   `json:"thread"` // -1 of a stream
	FromNS int64 `json:"from"`
	ToNS   int64 `json:"to"`
	Rows   int64 `json:"rows"`
}

// stretch is a time of the recording, from its base on.
type stretch struct {
	FromNS int64 `json:"from"`
	ToNS   int64 `json:"to"`
}

const mostPlaces = 4000

func (s *edition) marked(r *http.Request) (any, error) {
	p, err := s.pyramid(r.Context())
	if err != nil {
		return nil, err
	}
	w, err := window(r)
	if err != nil {
		return nil, err
	}
	rows, d, err := s.rowsToMark(r)
	if err != nil || rows == "" {
		return d, err
	}
	d.BinNS = pyramid.Width(w.Level)
	base, from, until := p.Base(), p.Base()+w.From, p.Base()+w.Until
	err = s.query(r.Context(), func(ctx context.Context, db *dataset.DB) error {
		var first, last sql.NullInt64
		if err := db.Row(ctx, fmt.Sprintf("SELECT min(ts), max(till) FROM (%s)", rows), nil, &first, &last); err != nil {
			return err
		}
		if first.Valid {
			d.Within = &stretch{first.Int64 - base, last.Int64 - base}
		}
		list, err := db.Query(ctx, fmt.Sprintf(`SELECT session_id, pid, tid, device, coalesce(device_id, %d), coalesce(stream, %d),
			(ts - %d) // %d AS bin, min(ts), max(till), count(*) FROM (%s) WHERE ts < %d AND till >= %d GROUP BY ALL ORDER BY ALL LIMIT %d`,
			dataset.Absent, dataset.Absent, from, d.BinNS, rows, until, from, mostPlaces+1))
		if err != nil {
			return err
		}
		defer list.Close()
		numbers := numbered(p.Lanes())
		for list.Next() {
			var l pyramid.Key
			var at place
			var bin int64
			if err := list.Scan(&l.Session, &l.PID, &l.TID, &l.Device, &l.DeviceID, &l.Stream, &bin, &at.FromNS, &at.ToNS, &at.Rows); err != nil {
				return err
			}
			at.FromNS, at.ToNS = at.FromNS-base, at.ToNS-base
			at.Lane, at.Thread = laneOf(numbers, l), -1
			if t, known := s.lanes.threads[threadKey{l.Session, l.PID, l.TID}]; known && !l.Device {
				at.Thread = t.number
			}
			d.add(at)
		}
		return list.Err()
	})
	return d, err
}

// add joins a place to the last one, if both are of one lane and no bin lies between.
func (d *marked) add(at place) {
	d.Rows += at.Rows
	if n := len(d.Places); n > 0 {
		last := &d.Places[n-1]
		if last.Lane == at.Lane && last.Thread == at.Thread && at.FromNS-last.ToNS < d.BinNS {
			last.ToNS, last.Rows = max(last.ToNS, at.ToNS), last.Rows+at.Rows
			return
		}
	}
	if len(d.Places) == mostPlaces {
		d.More = true
		return
	}
	d.Places = append(d.Places, at)
}

// numbered are the lanes' numbers by what they are.
func numbered(lanes []pyramid.Lane) map[pyramid.Key]int {
	n := map[pyramid.Key]int{}
	for i, l := range lanes {
		n[l.Key] = i
	}
	return n
}

// laneOf is the number of a row's lane, -1 where it has no calls.
func laneOf(numbers map[pyramid.Key]int, k pyramid.Key) int {
	if !k.Device {
		k.DeviceID, k.Stream = 0, 0
	}
	if i, known := numbers[k]; known {
		return i
	}
	return -1
}

// ofSpan and ofSample are rows of one shape: whose they are, and from when until when.
const (
	ofSpan = `SELECT session_id, pid, tid, layer = 'device' AS device, CASE WHEN layer = 'device' THEN device_id::BIGINT END AS device_id,
	CASE WHEN layer = 'device' THEN stream::BIGINT END AS stream, ts_ns AS ts, ts_ns + coalesce(duration_ns, 0) AS till FROM span WHERE `
	ofSample = `SELECT s.session_id, s.pid, s.tid, false AS device, NULL::BIGINT AS device_id, NULL::BIGINT AS stream, s.ts_ns AS ts,
	s.ts_ns + CASE WHEN s.state = 'off_cpu' THEN s.weight_ns ELSE 0 END AS till
	FROM sample s LEFT JOIN stack st USING (session_id, stack_id) WHERE `
)

// rowsToMark is the query of the rows that a request means: finding=N of the report, or name= and layer=.
func (s *edition) rowsToMark(r *http.Request) (rows string, d marked, err error) {
	q := r.URL.Query()
	d = marked{Places: []place{}}
	if name := q.Get("name"); name != "" {
		where := "name = " + literal(name)
		if layer := q.Get("layer"); layer != "" {
			where += " AND layer = " + literal(layer)
		}
		d.SQL = "SELECT * FROM span WHERE " + where + " ORDER BY ts_ns"
		return ofSpan + where, d, nil
	}
	n, err := strconv.Atoi(q.Get("finding"))
	if err != nil || n < 0 {
		return "", d, badRequest("finding=%q is no number of a finding", q.Get("finding"))
	}
	c := s.reports.of(report.Options{})
	select {
	case <-c.done:
	case <-r.Context().Done():
		return "", d, r.Context().Err()
	}
	if c.err != nil {
		return "", d, c.err
	}
	if n >= len(c.findings) {
		return "", d, notFound("there are %d findings", len(c.findings))
	}
	f := c.findings[n]
	d.SQL = f.EvidenceSQL
	rows = evidenceRows(f)
	if rows == "" {
		d.Why = "the evidence of this finding is no calls or samples: run its query"
	}
	return rows, d, nil
}

// evidenceRows are the rows that a finding adds up; of one that accuses a line, those that show it.
func evidenceRows(f findings.Finding) string {
	switch where := f.Evidence.Where; f.Evidence.Table {
	case "span":
		return ofSpan + where
	case "sample":
		if f.File != nil && f.Line != nil {
			where += fmt.Sprintf(" AND list_bool_or(list_transform(st.frames, x -> x.kind = 'python' AND x.file = %s AND x.line = %d))",
				literal(*f.File), *f.Line)
		}
		return ofSample + where
	}
	return ""
}
