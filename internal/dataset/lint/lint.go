// Package lint says what must be true of a dataset before an answer is: which
// rows cannot be, and why, and what is missing around those that can.
//
// Rows that cannot be are left out: after Run the connection has a table left_out with
// one row and reason for each. Their calls were made all the same: left_out.stands_ns is
// what their like last, and the view good_span is span with that in place of their
// durations, and without those that have no like. Answers read good_span.
package lint

import (
	"context"
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// Severity of a check.
type Severity string

const (
	OK      Severity = "ok"      // looked at, nothing found
	Note    Severity = "note"    // good to know
	Warning Severity = "warning" // some answers are less sure
	LeftOut Severity = "left out"
)

// Check is one thing that was looked at.
type Check struct {
	Name     string   `json:"check"`
	Severity Severity `json:"severity"`
	Count    int64    `json:"count"`
	Of       int64    `json:"of"`
	Detail   string   `json:"detail"`
}

// Result is what Run found.
type Result struct {
	Rows     int64   `json:"rows"`     // of table span
	LeftOut  int64   `json:"left_out"` // of them
	Replaced int64   `json:"replaced"` // of these, those that count as long as their like
	Percent  float64 `json:"computed_on_percent"`
	Reasons  []Check `json:"-"`
	Checks   []Check `json:"checks"`
	Imported bool    `json:"imported"`

	// Instead are the durations that stand for those that were left out, for scans past
	// good_span; Absent where the row has none.
	Instead map[dataset.Row]int64 `json:"-"`
	devices bool                  // some rows are of devices
	dropped int64                 // rows that the import left out already
}

// Estimated says that counts and sums over rows are estimates, "" where each row is one call.
func (r *Result) Estimated() string {
	for _, c := range r.Checks {
		if c.Name == estimated && c.Count > 0 {
			return c.Detail
		}
	}
	return ""
}

// Sentence says on how much of the dataset answers are computed.
func (r *Result) Sentence() string {
	if r.LeftOut == 0 {
		return fmt.Sprintf("computed on 100 %% of %d rows", r.Rows)
	}
	var why []string
	for _, c := range r.Reasons {
		why = append(why, fmt.Sprintf("%d %s", c.Count, c.Detail))
	}
	s := fmt.Sprintf("computed on %s %% of rows; %d left out, because %s", percent(r.Percent), r.LeftOut, strings.Join(why, ", "))
	switch {
	case r.Replaced == 1 && r.LeftOut == 1:
		s += "; its call counts with the median time of its like"
	case r.Replaced == r.LeftOut:
		s += "; their calls count with the median times of their like"
	case r.Replaced > 0:
		s += fmt.Sprintf("; the calls of %d of them count with the median times of their like", r.Replaced)
	}
	return s
}

// percent does not round up to 100.
func percent(p float64) string {
	for digits := 1; digits < 6; digits++ {
		if s := fmt.Sprintf("%.*f", digits, p); !strings.HasPrefix(s, "100") {
			return s
		}
	}
	return "99.99999"
}

// reasons are in the order in which a row that meets several gets one.
var reasons = []struct{ name, detail, sql string }{
	{impossibleTime, "begin at impossible times", `
		SELECT session_id, span_id FROM span JOIN lint_window USING (session_id) WHERE ts_ns NOT BETWEEN first_ns AND last_ns`},
	{"no_duration", "have a negative duration or none", `
		SELECT session_id, span_id FROM span s
		WHERE duration_ns IS NULL AND end_method = 'imported'`},
	{"zero_duration", "are work on a device that took no time", `
		SELECT session_id, span_id FROM span JOIN lint_window USING (session_id)
		WHERE layer = 'device' AND duration_ns = 0 AND category IN ('kernel', 'collective', 'copy', 'set') AND fine`},
	{"longer_than_recording", "are longer than the recording", `
		SELECT session_id, span_id FROM span JOIN lint_window USING (session_id)
		WHERE imported AND duration_ns > last_ns - first_ns + 1e9`},
	{"longer_than_all_others", "last far longer than all other rows take from first to last", `
		SELECT s.session_id, s.span_id FROM span s JOIN lint_window USING (session_id) JOIN (
			SELECT session_id, max(ts_ns + duration_ns, 2)[-1] AS second_ns, count(*) AS n
			FROM span ANTI JOIN left_out USING (session_id, span_id) GROUP BY ALL) o USING (session_id)
		WHERE imported AND n >= 100 AND s.duration_ns / 20 > second_ns - first_ns`},
	{"covers_others", "of a device last over later work of their stream and far longer than their like", `
		SELECT session_id, span_id FROM lint_device
		WHERE session_id || '/' || span_id NOT IN (SELECT session_id || '/' || span_id FROM left_out)
			AND (alike >= 4 AND duration_ns > 20 * usual_ns AND ts_ns + duration_ns > second_ns AND launch_id IS DISTINCT FROM second_launch
				OR alike < 4 AND ts_ns + duration_ns > eighth_ns AND launch_id IS DISTINCT FROM eighth_launch
					AND duration_ns > 20 * usual_any_ns)`},
	{"leaves_its_caller", "end long after the call that they were made in, and last far longer than their like or it", `
		SELECT c.session_id, c.span_id FROM lint_host c JOIN span p ON p.session_id = c.session_id AND p.span_id = c.parent_id
		WHERE c.duration_ns > 20 * coalesce(c.usual_ns, p.duration_ns) AND c.ts_ns + c.duration_ns > p.ts_ns + p.duration_ns + 1000000
			AND (c.session_id, c.parent_id) NOT IN (SELECT (session_id, span_id) FROM left_out)`},
}

// impossibleTime is the reason of rows that begin at 0, in 1970 or in the far future. An import leaves them
// out itself, with a warning of that kind.
const impossibleTime = "impossible_time"

// prepare makes what the reasons look at. The window of a recording goes by
// where rows begin: a damaged duration does not move it.
var prepare = []string{`
	CREATE OR REPLACE TEMP TABLE lint_window AS
	SELECT session_id, min(ts_ns) AS first_ns, max(ts_ns) AS last_ns,
	bool_or(end_method = 'imported' AND coalesce(device_time_method, '') NOT IN ('profiler', 'file', 'cupti')) AS imported,
		bool_or(duration_ns % 1000 <> 0) AS fine, count(*) AS spans, count(*) FILTER (layer = 'device') AS device_rows
	FROM span GROUP BY ALL`, `
	-- Rows that begin a month from the median begin do not count for the window.
	UPDATE lint_window SET first_ns = w.first_ns, last_ns = w.last_ns FROM (
		SELECT session_id, min(ts_ns) AS first_ns, max(ts_ns) AS last_ns
		FROM span JOIN (
			SELECT session_id, approx_quantile(ts_ns, 0.5) AS middle_ns FROM span
			WHERE session_id IN (SELECT session_id FROM lint_window WHERE last_ns::DOUBLE - first_ns::DOUBLE > 30 * 86400e9) GROUP BY ALL)
			USING (session_id)
		WHERE abs(ts_ns::DOUBLE - middle_ns::DOUBLE) < 30 * 86400e9 GROUP BY ALL) w
	WHERE lint_window.session_id = w.session_id`, `
	CREATE OR REPLACE TEMP TABLE left_out (session_id VARCHAR, span_id BIGINT, reason VARCHAR, stands_ns BIGINT)`,
}

// prepareForeign is for rows of other tools and of devices.
var prepareForeign = []string{`
	CREATE OR REPLACE TEMP TABLE lint_device AS
	WITH work AS (
		SELECT session_id, span_id, pid, device_id, stream, ts_ns, duration_ns, name, launch_id, category = 'collective' AS communicates
		FROM span WHERE layer = 'device' AND category IN ('kernel', 'collective', 'copy', 'set') AND duration_ns > 0),
	usual AS (SELECT session_id, name, median(duration_ns) AS usual_ns, count(*) AS alike FROM work GROUP BY ALL),
	usual_any AS (SELECT session_id, median(duration_ns) AS usual_any_ns FROM work GROUP BY ALL),
	next AS (
		SELECT session_id, span_id, ts_ns, duration_ns, name, launch_id,
			lead(ts_ns, 2) OVER w AS second_ns, lead(launch_id, 2) OVER w AS second_launch,
			lead(ts_ns, 8) OVER w AS eighth_ns, lead(launch_id, 8) OVER w AS eighth_launch
		-- A collective waits for other ranks, as long as they take: what it lasts over counts only if that communicates, too.
		FROM work WINDOW w AS (PARTITION BY session_id, pid, device_id, stream, communicates ORDER BY ts_ns))
	SELECT * FROM next JOIN usual USING (session_id, name) JOIN usual_any USING (session_id)`, `
	CREATE OR REPLACE TEMP TABLE lint_host AS
	WITH usual AS (
		SELECT session_id, layer, name, approx_quantile(duration_ns, 0.5) AS usual_ns FROM span JOIN lint_window USING (session_id)
		WHERE imported AND layer IN ('op', 'autograd', 'runtime', 'collective') GROUP BY ALL HAVING count(*) >= 4)
	SELECT s.session_id, s.span_id, s.parent_id, s.ts_ns, s.duration_ns, usual_ns
	FROM span s JOIN lint_window USING (session_id) LEFT JOIN usual USING (session_id, layer, name)
	WHERE imported AND s.layer IN ('op', 'autograd', 'runtime', 'collective') AND s.duration_ns > 1000000 AND s.parent_id IS NOT NULL
		AND (usual_ns IS NULL OR s.duration_ns > 20 * usual_ns)`,
}

// Run checks the dataset and makes good_span and left_out.
func Run(ctx context.Context, db *dataset.DB) (*Result, error) {
	for _, sql := range prepare {
		if err := db.Exec(ctx, sql); err != nil {
			return nil, fmt.Errorf("checking the dataset: %w", err)
		}
	}
	r := &Result{}
	if err := r.droppedByImport(ctx, db); err != nil {
		return nil, fmt.Errorf("checking the dataset: %w", err)
	}
	err := db.Row(ctx, "SELECT coalesce(sum(spans), 0)::BIGINT, coalesce(bool_or(imported), false), coalesce(sum(device_rows), 0) > 0 FROM "+
		"lint_window",
		nil, &r.Rows, &r.Imported, &r.devices)
	if err != nil {
		return nil, err
	}
	if r.foreign() {
		for _, sql := range prepareForeign {
			if err := db.Exec(ctx, sql); err != nil {
				return nil, fmt.Errorf("checking the dataset: %w", err)
			}
		}
	}
	for _, reason := range reasons {
		if err := r.leaveOut(ctx, db, reason.name, reason.detail, reason.sql); err != nil {
			return nil, fmt.Errorf("checking the dataset (%s): %w", reason.name, err)
		}
	}
	good := "SELECT * FROM span"
	if r.LeftOut > 0 {
		for _, sql := range standIns {
			if err := db.Exec(ctx, sql); err != nil {
				return nil, fmt.Errorf("looking for the rows that replace invalid ones: %w", err)
			}
		}
		good = `SELECT s.* REPLACE (CASE WHEN l.span_id IS NULL THEN s.duration_ns ELSE l.stands_ns END AS duration_ns)
			FROM span s LEFT JOIN left_out l ON l.session_id = s.session_id AND l.span_id = s.span_id WHERE l.span_id IS NULL
			OR l.stands_ns IS NOT NULL`
		if err := r.readLeftOut(ctx, db); err != nil {
			return nil, err
		}
	}
	if err := db.Exec(ctx, "CREATE OR REPLACE TEMP VIEW good_span AS "+good); err != nil {
		return nil, err
	}
	r.Rows += r.dropped
	r.Percent = 100
	if r.Rows > 0 {
		r.Percent = 100 * float64(r.Rows-r.LeftOut) / float64(r.Rows)
	}
	for _, c := range checks {
		if err := r.check(ctx, db, c); err != nil {
			return nil, fmt.Errorf("checking the dataset (%s): %w", c.name, err)
		}
	}
	return r, nil
}

// droppedByImport counts the rows of the files that an import left out.
func (r *Result) droppedByImport(ctx context.Context, db *dataset.DB) error {
	return db.Row(ctx, "SELECT coalesce(sum(count), 0)::BIGINT FROM warning WHERE kind = '"+impossibleTime+"'", nil, &r.dropped)
}

// foreign says whether there is anything that a reason can be about: rows that the
// recorder wrote itself have none.
func (r *Result) foreign() bool { return r.Imported || r.devices }

func (r *Result) readLeftOut(ctx context.Context, db *dataset.DB) error {
	var err error
	if r.Instead, err = db.Instead(ctx, "SELECT session_id, span_id, stands_ns FROM left_out"); err != nil {
		return err
	}
	for _, ns := range r.Instead {
		if ns != dataset.Absent {
			r.Replaced++
		}
	}
	return nil
}

func (r *Result) leaveOut(ctx context.Context, db *dataset.DB, name, detail, sql string) error {
	if !r.foreign() {
		r.Checks = append(r.Checks, Check{Name: name, Severity: OK, Of: r.Rows, Detail: detail})
		return nil
	}
	err := db.Exec(ctx, fmt.Sprintf(`INSERT INTO left_out SELECT session_id, span_id, '%s', NULL FROM (%s) ANTI
		JOIN left_out USING (session_id, span_id)`, name, sql))
	if err != nil {
		return err
	}
	c := Check{Name: name, Severity: OK, Of: r.Rows, Detail: detail}
	if err := db.Row(ctx, "SELECT count(*) FROM left_out WHERE reason = ?", []any{name}, &c.Count); err != nil {
		return err
	}
	if name == impossibleTime {
		c.Count += r.dropped
	}
	if c.Count > 0 {
		c.Severity = LeftOut
		r.LeftOut += c.Count
		r.Reasons = append(r.Reasons, c)
	}
	r.Checks = append(r.Checks, c)
	return nil
}
