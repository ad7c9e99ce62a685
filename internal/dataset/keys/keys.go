// Package keys numbers the processes, threads and spans of several recordings so that no two of
// them have the same number. Each host gives out process ids of its own, and each recording
// counts its spans from one: put side by side, two processes with one number would be taken for
// one process with twice the steps.
//
// A recording whose process ids are taken is moved up as a whole, by a multiple of 2^22, which is
// more than Linux gives out: what the host called a process is its number modulo 2^22.
package keys

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Kind is what the number in a column means.
type Kind int

// The kinds. None is a value that is the same in all recordings.
const (
	None Kind = iota
	PID
	TID
	ID   // of a span or of a slice
	Time // since the Unix epoch, in ns
)

// kinds are those of the columns of a recording's tables. A name means the same in all of them.
var kinds = map[string]Kind{
	"pid": PID, "parent_pid": PID, "tid": TID, "waker_tid": TID,

	"span_id": ID, "parent_id": ID, "launch_id": ID, "from_span_id": ID, "to_span_id": ID, "slice_id": ID,
	"correlation_id": ID, "wait_correlation_id": ID,

	"ts_ns": Time, "end_ns": Time, "begin_ns": Time, "from_ns": Time, "to_ns": Time, "started_ns": Time, "ended_ns": Time,
	"seen_ns": Time, "since_ns": Time, "issued_ns": Time, "completed_ns": Time, "first_in_ns": Time, "clock_offset_ns": Time,
}

// Of is the kind of a column of a recording's table.
func Of(column string) Kind { return kinds[column] }

// Above is more than any process id that Linux gives out.
const Above = 1 << 22

// Recording is what its numbers are chosen by.
type Recording struct {
	Session   string
	PIDs      []int64
	Low, High int64 // the lowest and the highest number of its spans and slices; High is 0 where it has none
}

// Shift is what is added to the numbers of a recording.
type Shift struct{ PID, ID int64 }

// Shifts are those of the recordings that need any, by session.
type Shifts map[string]Shift

// For chooses shifts for the recordings, in their order: the first keeps its numbers.
func For(recordings []Recording) (Shifts, error) {
	shifts := Shifts{}
	taken := map[int64]bool{}
	var spans []Recording // that have their places
	for _, r := range recordings {
		s := Shift{PID: free(taken, r.PIDs)}
		for _, pid := range r.PIDs {
			if pid+s.PID > math.MaxInt32 {
				return nil, fmt.Errorf("the processes of %d recordings have the same ids: at most %d can be put together", len(recordings),
					math.MaxInt32/Above+1)
			}
			taken[pid+s.PID] = true
		}
		if r.High > 0 {
			s.ID = above(spans, r)
			if s.ID > math.MaxInt64-r.High {
				return nil, fmt.Errorf("the numbers of the spans of session %s are too high to be told from those of %d other recordings", r.Session,
					len(spans))
			}
			r.Low, r.High = r.Low+s.ID, r.High+s.ID
			spans = append(spans, r)
		}
		if s != (Shift{}) {
			shifts[r.Session] = s
		}
	}
	return shifts, nil
}

// free is the lowest multiple of Above by which no process id is taken.
func free(taken map[int64]bool, pids []int64) int64 {
	for by := int64(0); ; by += Above {
		if !slices.ContainsFunc(pids, func(pid int64) bool { return taken[pid+by] }) {
			return by
		}
	}
}

// above is by how much the spans of a recording are to go up to be above those that overlap with them.
func above(placed []Recording, r Recording) int64 {
	overlaps := func(o Recording) bool { return r.Low <= o.High && o.Low <= r.High }
	if !slices.ContainsFunc(placed, overlaps) {
		return 0
	}
	highest := slices.MaxFunc(placed, func(a, b Recording) int { return cmp.Compare(a.High, b.High) }).High
	return highest - min(r.Low, 1) + 1
}

// By is what is added to a value of the kind. Only numbers of the kernel's are moved with their
// process: importers number threads in other ways.
func (s Shift) By(k Kind, value int64) int64 {
	switch k {
	case PID:
		if value > 0 {
			return s.PID
		}
	case TID:
		if value > 0 && value < Above {
			return s.PID
		}
	case ID:
		if value > 0 {
			return s.ID
		}
	}
	return 0
}

// SQL is a column's value with the shift of its row's session.
func (s Shifts) SQL(k Kind, column string) string {
	if len(s) == 0 || k != PID && k != TID && k != ID {
		return column
	}
	condition := column + " > 0"
	if k == TID {
		condition += fmt.Sprintf(" AND %s < %d", column, Above)
	}
	var by string
	for _, session := range slices.Sorted(maps.Keys(s)) {
		if n := s[session].By(k, 1); n != 0 {
			by += fmt.Sprintf(" WHEN %s THEN %d", quote(session), n)
		}
	}
	if by == "" {
		return column
	}
	return fmt.Sprintf("CASE WHEN %s THEN %s + CASE session_id%s ELSE 0 END ELSE %s END", condition, column, by, column)
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
