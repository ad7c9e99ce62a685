package views

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// A trace that was merged into a recording covers a part of it: only there is it known what devices did, and when.

// Partial are the merged traces that cover a part of the recording. What a library in the job hands over is of all of it.
const Partial = "device_rows > 0 AND method <> 'cupti'"

// Windows are the times that merged traces cover, between two times (0 is no end), for Sweep: a process that has none is
// looked at from its devices' first work to the end of their last.
func Windows(from, until int64) string {
	if until == 0 {
		until = math.MaxInt64
	}
	return fmt.Sprintf(`(SELECT session_id, pid, greatest(ts_ns, %[1]d) AS from_ns, least(end_ns, %[2]d) AS until_ns
		FROM merged_trace WHERE `+Partial+` AND end_ns > %[1]d AND ts_ns < %[2]d)`, from, until)
}

// NoWindows is Sweep over rows that are known all the time.
const NoWindows = "(SELECT session_id, pid, ts_ns AS from_ns, end_ns AS until_ns FROM merged_trace WHERE false)"

// Covered is how much of a recording merged traces cover.
type Covered struct {
	Traces                    int64
	CoveredNS, RecordedNS     int64 // of the processes that have a trace, together
	DeviceRows, Launched      int64
	BoundsChecked, BoundsHeld int64
}

// CoveredBy reads what merged traces cover of what is recorded of their processes; of a rank if that is not nil.
func CoveredBy(ctx context.Context, db *dataset.DB, rank *int) (c Covered, err error) {
	where := Partial
	if rank != nil {
		where += fmt.Sprintf(" AND (session_id, pid) IN (SELECT (session_id, pid) FROM process WHERE rank = %d)", *rank)
	}
	var covered, recorded, rows, launched, checked, held sql.NullInt64
	err = db.Row(ctx, `WITH m AS (FROM merged_trace WHERE `+where+`)
		SELECT count(*), sum(end_ns - ts_ns)::BIGINT, sum(device_rows)::BIGINT, sum(launched)::BIGINT,
			sum(bounds_checked)::BIGINT, sum(bounds_held)::BIGINT,
			(SELECT sum(until_ns - from_ns)::BIGINT FROM (SELECT min(ts_ns) AS from_ns, max(ts_ns + coalesce(duration_ns, 0)) AS until_ns
				FROM span WHERE (session_id, pid) IN (SELECT (session_id, pid) FROM m) GROUP BY session_id, pid)) FROM m`,
		nil, &c.Traces, &covered, &rows, &launched, &checked, &held, &recorded)
	if err != nil {
		return c, fmt.Errorf("reading merged traces: %w", err)
	}
	c.CoveredNS, c.RecordedNS, c.DeviceRows, c.Launched = covered.Int64, recorded.Int64, rows.Int64, launched.Int64
	c.BoundsChecked, c.BoundsHeld = checked.Int64, held.Int64
	return c, nil
}

// FromStart says whether CUPTI recorded: it says what devices did from a process's first call of CUDA, also while the job
// starts and devices have nothing to do.
func FromStart(ctx context.Context, db *dataset.DB) (yes bool, err error) {
	if err = db.Row(ctx, "SELECT count(*) > 0 FROM merged_trace WHERE method = 'cupti' AND device_rows > 0", nil, &yes); err != nil {
		err = fmt.Errorf("reading merged traces: %w", err)
	}
	return yes, err
}

// Text names the time, as in "idle 30 % of TEXT"; "" where devices are known all the time.
func (c Covered) Text() string {
	if c.Traces == 0 {
		return ""
	}
	return fmt.Sprintf("the profiled %s (of %s recorded)", duration(c.CoveredNS), duration(c.RecordedNS))
}

// sentence is behind the sentence of a view.
func (c Covered) sentence() string {
	if c.Traces == 0 {
		return ""
	}
	return " This is of " + c.Text() + ", in which the job was slower."
}

func duration(ns int64) string {
	if ns < 10_000_000_000 {
		return fmt.Sprintf("%.0f ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.1f s", float64(ns)/1e9)
}
