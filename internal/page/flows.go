package page

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page/pyramid"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// flows is /api/flows: what led to a call and what it led to, one hop. Whole graphs are not walked: they can be as large
// as the recording.
type flows struct {
	Edges []edge `json:"edges"`
	More  bool   `json:"has_more"`
	SQL   string `json:"sql"`
}

// edge leads from a call that came first to one that it caused; the call at its other end.
type edge struct {
	Out      bool   `json:"out"` // from the selected call on
	Kind     string `json:"kind"`
	Method   string `json:"method"`
	Lane     int    `json:"lane"`
	ID       string `json:"span_id"`
	Name     string `json:"name"`
	StartNS  int64  `json:"start"`
	Duration *int64 `json:"duration"` // null: its end was not seen
}

// mostEdges of a call are drawn.
const mostEdges = 200

// flowSQL has the edges of table flow, and those from a launch to the work on a device that it asked for.
const flowSQL = `WITH edge AS (
  SELECT true AS later, to_span_id AS other, kind, method FROM flow WHERE session_id = %[1]s AND from_span_id = %[2]d
  UNION ALL SELECT false, from_span_id, kind, method FROM flow WHERE session_id = %[1]s AND to_span_id = %[2]d
  UNION ALL SELECT true, span_id, 'launch', 'launch_id' FROM span WHERE session_id = %[1]s AND launch_id = %[2]d AND span_id <> %[2]d
  UNION ALL SELECT false, launch_id, 'launch', 'launch_id' FROM span WHERE session_id = %[1]s AND span_id = %[2]d AND launch_id <> %[2]d)
SELECT later, kind, method, s.pid, s.tid, s.layer = 'device' AS device, s.device_id, s.stream, s.span_id, s.name, s.ts_ns, s.duration_ns
FROM edge JOIN span s ON s.session_id = %[1]s AND s.span_id = edge.other
ORDER BY later, s.ts_ns, s.span_id LIMIT %[3]d`

func (s *edition) flows(r *http.Request) (any, error) {
	p, err := s.pyramid(r.Context())
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	n, errLane := strconv.Atoi(q.Get("lane"))
	id, errID := strconv.ParseInt(q.Get("id"), 10, 64)
	lanes := p.Lanes()
	if errLane != nil || errID != nil || n < 0 || n >= len(lanes) {
		return nil, badRequest("give lane and id of a call, as the timeline has them")
	}
	session := lanes[n].Session
	d := flows{Edges: []edge{}, SQL: fmt.Sprintf(flowSQL, literal(session), id, mostEdges+1)}
	numbers := numbered(lanes)
	err = s.query(r.Context(), func(ctx context.Context, db *dataset.DB) error {
		rows, err := db.Query(ctx, d.SQL)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			e := edge{}
			l := pyramid.Key{Session: session}
			var device, stream, id *int64
			if err := rows.Scan(&e.Out, &e.Kind, &e.Method, &l.PID, &l.TID, &l.Device, &device, &stream, &id, &e.Name, &e.StartNS,
				&e.Duration); err != nil {
				return err
			}
			l.DeviceID, l.Stream = orAbsent(device), orAbsent(stream)
			e.Lane, e.StartNS, e.ID = laneOf(numbers, l), e.StartNS-p.Base(), strconv.FormatInt(*id, 10)
			e.Kind, e.Method, e.Name = printable.Short(e.Kind), printable.Short(e.Method), printable.Short(e.Name)
			d.Edges = append(d.Edges, e)
		}
		return rows.Err()
	})
	if len(d.Edges) > mostEdges {
		d.Edges, d.More = d.Edges[:mostEdges], true
	}
	return d, err
}

func orAbsent(n *int64) int64 {
	if n == nil {
		return dataset.Absent
	}
	return *n
}
