package timeline

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

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
	// Correlation joins calls of the runtime with what the device says of them, and
	// WaitCorrelation, on a device's wait, names the call that recorded its event;
	// 0 without.
	Correlation, WaitCorrelation int64
	Bytes                        int64 // of a copy; 0 where it is not known
	Sequence                     int64 // autograd's number, or which collective of its group; -1 without
	Communicator                 int64 // the group of a collective; 0 where it is not known
	Stack                        int64 // the stack with the Python code behind it; 0 without
	// Bounds are of what a call handed to a device, and, on the row of a device that is made
	// of them, that call's; nil where none are known.
	Bounds *Bounds
	Busy   int64 // of a wait: for how long a device was at work meanwhile, at least; 0 where it is not known
	after  int64 // of such a row: the wait with which it began; 0 without
}

// OnDevice says whether the span is work that a device did.
func (s Span) OnDevice() bool {
	return s.Layer == "device" && s.Category != "annotation" && s.Category != "sync"
}

const spanColumns = `span_id, coalesce(parent_id, 0), tid, ts_ns, ts_ns + duration_ns, layer, coalesce(category, ''), name,
	coalesce(device_id, 0)::BIGINT, coalesce(stream, -1), coalesce(launch_id, 0), coalesce(wait_stream, -1),
	coalesce(correlation_id, 0), coalesce(wait_correlation_id, 0), coalesce(bytes, 0), coalesce(sequence_number, -1), coalesce(python_stack_id, stack_id, 0),
	coalesce(communicator, 0), device_time_lo_ns, device_time_hi_ns, coalesce(device_busy_lo_ns, 0)`

// launchedSQL has also the work that was launched in the period and ran later, and what
// devices were still at that was launched before, or by nobody knows what. Where only bounds
// are known, what was handed over before and may have run on.
const launchedSQL = "SELECT " + spanColumns + ` FROM span
WHERE pid = %[1]d AND duration_ns IS NOT NULL AND duration_ns >= 0
  AND layer NOT IN ('python', 'os') AND coalesce(category, '') <> 'annotation'
  AND (layer <> 'device' AND ts_ns >= %[2]d AND ts_ns < %[3]d
    OR layer IN ('runtime', 'collective') AND ts_ns < %[2]d AND ts_ns + device_time_hi_ns > %[2]d OR layer = 'device'
AND (ts_ns < %[3]d AND ts_ns + duration_ns > %[2]d
    OR (session_id, launch_id) IN (SELECT (session_id, span_id) FROM span WHERE pid = %[1]d AND layer <> 'device' AND ts_ns >= %[2]d
AND ts_ns < %[3]d)))
ORDER BY ts_ns, ts_ns + duration_ns DESC, span_id`

// Launched are the spans of the step's period, the work that was launched in it, which may
// have run later, and what devices did meanwhile that was launched before.
func Launched(ctx context.Context, db *dataset.DB, t Thread, s Step) ([]Span, error) {
	var all []Span
	err := db.Each(ctx, fmt.Sprintf(launchedSQL, t.PID, s.Begin, s.Until()), func(v []driver.Value) error {
		all = append(all, spanOf(v))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading step %d: %w", s.Number, err)
	}
	// What bounds nothing only stands before the step.
	all = slices.DeleteFunc(all, func(x Span) bool { return x.Begin < s.Begin && x.Layer != "device" && x.Bounds == nil })
	return all, ended(ctx, db, t, all)
}

// scanned are the columns that a Span is made of.
var scanned = []string{"span_id", "parent_id", "tid", "ts_ns", "duration_ns", "layer", "category", "name", "device_id", "stream",
	"launch_id",
	"wait_stream", "correlation_id", "wait_correlation_id", "bytes", "sequence_number", "python_stack_id", "stack_id", "pid", "communicator",
	"device_time_lo_ns", "device_time_hi_ns", "device_busy_lo_ns"}

// walk finds the steps that times lie in which come in order, of steps that do not overlap and
// are in order, too.
type walk struct {
	steps []Step
	next  int
}

// at is the step of the next time, -1 between them.
func (w *walk) at(ns int64) int {
	for w.next < len(w.steps) && ns >= w.steps[w.next].Until() {
		w.next++
	}
	if w.next < len(w.steps) && ns >= w.steps[w.next].Begin {
		return w.next
	}
	return -1
}

// SpansOf are the spans of steps that do not overlap and are in order of time, a list
// for each step, in one pass. Python functions and system calls of imported traces lie
// around or inside what counts.
func SpansOf(ctx context.Context, db *dataset.DB, t Thread, steps []Step) ([][]Span, error) {
	all := make([][]Span, len(steps))
	if len(steps) == 0 {
		return all, nil
	}
	const duration, pid = 4, 18
	along := walk{steps: steps}
	scan := dataset.Scan{Table: "span", Columns: scanned, From: steps[0].Begin, Until: steps[len(steps)-1].Until(),
		Before: func(b *dataset.Batch, i, k int) bool {
			if x, y := b.Columns[duration][i], b.Columns[duration][k]; x != y {
				return x > y
			}
			return b.Columns[0][i] < b.Columns[0][k]
		}}
	err := db.Scan(ctx, scan, func(b *dataset.Batch) error {
		for i := range b.Rows {
			if b.Columns[pid][i] != int64(t.PID) || b.Columns[duration][i] < 0 {
				continue // what has no duration is far below zero
			}
			s := spanAt(b, i)
			if s.Layer == "python" || s.Layer == "os" || s.Category == "annotation" {
				continue
			}
			if step := along.at(s.Begin); step >= 0 {
				all[step] = append(all[step], s)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading steps %d to %d: %w", steps[0].Number, steps[len(steps)-1].Number, err)
	}
	return all, ended(ctx, db, t, all...)
}

// spanAt is a row of the scanned columns.
func spanAt(b *dataset.Batch, i int) Span {
	or := func(column int, without int64) int64 {
		if v := b.Columns[column][i]; v != dataset.Absent {
			return v
		}
		return without
	}
	text := func(column int) string { return b.Text(b.Columns[column][i]) }
	begin := b.Columns[3][i]
	s := Span{ID: b.Columns[0][i], Parent: or(1, 0), TID: int(b.Columns[2][i]), Begin: begin, End: begin + b.Columns[4][i],
		Layer: text(5), Category: text(6), Name: text(7), Device: int(or(8, 0)), Stream: or(9, -1), Launch: or(10, 0), WaitStream: or(11, -1),
		Correlation: or(12, 0), WaitCorrelation: or(13, 0), Bytes: or(14, 0), Sequence: or(15, -1), Stack: or(16, or(17, 0)),
		Communicator: or(19, 0), Busy: or(22, 0)}
	least, most := b.Columns[20][i], b.Columns[21][i]
	s.Bounds = bounded(s, least, most, least != dataset.Absent && most != dataset.Absent)
	return s
}

// spanOf is a row of spanColumns.
func spanOf(v []driver.Value) (s Span) {
	integer := func(i int) int64 {
		switch n := v[i].(type) {
		case int64:
			return n
		case int32:
			return int64(n)
		}
		return 0
	}
	s.ID, s.Parent, s.TID, s.Begin, s.End = integer(0), integer(1), int(integer(2)), integer(3), integer(4)
	s.Layer, _ = v[5].(string)
	s.Category, _ = v[6].(string)
	s.Name, _ = v[7].(string)
	s.Device, s.Stream, s.Launch, s.WaitStream = int(integer(8)), integer(9), integer(10), integer(11)
	s.Correlation, s.WaitCorrelation, s.Bytes, s.Sequence, s.Stack = integer(12), integer(13), integer(14), integer(15), integer(16)
	s.Communicator, s.Busy = integer(17), integer(20)
	s.Bounds = bounded(s, integer(18), integer(19), v[18] != nil && v[19] != nil)
	return s
}
