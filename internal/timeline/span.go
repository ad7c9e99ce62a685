package timeline

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// Span is a row of table span, as far as a step's graph needs it.
type Span struct {
	ID, Parent int64 // Parent is 0 where there is none
	TID        int
	Begin, End int64
	Layer      string
	Category   string
	Name       string
	Device     int
	Stream     int64 // of work on a device, and of calls that name one; -1 without
	Launch     int64 // on a row of layer device: the span that launched it; 0 without
	WaitStream int64 // on a device's wait: the stream that it waits for; -1 without
	Sequence   int64 // autograd's number; -1 without
	Stack      int64 // stack_id at its begin; 0 without
}

// OnDevice says whether the span is work that a device did.
func (s Span) OnDevice() bool {
	return s.Layer == "device" && s.Category != "annotation" && s.Category != "sync"
}

const spanColumns = `span_id, coalesce(parent_id, 0), tid, ts_ns, ts_ns + duration_ns, layer, coalesce(category, ''), name,
	coalesce(device_id, 0), coalesce(stream, -1), coalesce(launch_id, 0), coalesce(wait_stream, -1),
	coalesce(sequence_number, -1), coalesce(stack_id, 0)`

// stepSpansSQL has what runs in a period of a process; Python functions and
// system calls of imported traces lie around or inside what counts.
const stepSpansSQL = "SELECT " + spanColumns + ` FROM span
WHERE pid = ? AND ts_ns >= ? AND ts_ns < ? AND duration_ns IS NOT NULL AND duration_ns >= 0
  AND layer NOT IN ('python', 'os') AND coalesce(category, '') <> 'annotation'
ORDER BY ts_ns, ts_ns + duration_ns DESC, span_id`

// Spans are those that begin in the step's period, in order of time; outer ones first.
func Spans(ctx context.Context, db *dataset.DB, t Thread, s Step) ([]Span, error) {
	rows, err := db.Query(ctx, stepSpansSQL, t.PID, s.Begin, s.Until())
	if err != nil {
		return nil, fmt.Errorf("reading step %d: %w", s.Number, err)
	}
	return scanSpans(rows)
}

func scanSpans(rows *sql.Rows) (all []Span, err error) {
	defer rows.Close()
	for rows.Next() {
		var s Span
		err := rows.Scan(&s.ID, &s.Parent, &s.TID, &s.Begin, &s.End, &s.Layer, &s.Category, &s.Name, &s.Device, &s.Stream,
			&s.Launch, &s.WaitStream, &s.Sequence, &s.Stack)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}
