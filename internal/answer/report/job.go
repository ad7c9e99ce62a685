package report

import (
	"database/sql"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// lint leaves out what cannot be and makes the view that everything else reads:
// rows, the part of good_span that the options choose.
func (b *builder) lint() error {
	checks, err := lint.Run(b.ctx, b.db)
	if err != nil {
		return err
	}
	r := b.report
	r.checks, b.imported = checks, checks.Imported
	r.Rows = RowCount{Total: checks.Rows, LeftOut: checks.LeftOut, Replaced: checks.Replaced, ComputedPercent: checks.Percent,
		Sentence: checks.Sentence(), Reasons: []lint.Check{}}
	r.Rows.Reasons = append(r.Rows.Reasons, checks.Reasons...)
	if checks.LeftOut > 0 {
		r.Warnings = append(r.Warnings, checks.Sentence())
	}
	for _, c := range checks.Checks {
		if c.Severity == lint.Warning && c.Name != "events_lost" {
			r.Warnings = append(r.Warnings, c.Detail)
		}
		if c.Name == "estimated_from_slices" && c.Count > 0 {
			b.weighted = true
			r.Warnings = append(r.Warnings, c.Detail)
		}
	}
	if err := b.recorded(); err != nil {
		return err
	}
	return b.choose()
}

// eachKind is how many warnings of one kind are listed one by one: a job that compiles
// brings dozens of libraries.
const eachKind = 5

// recorded copies what the recording itself warned of, losses first. Slices, what came
// late and what is not whole have many rows: one sentence for all of a sort.
func (b *builder) recorded() error {
	told, more, times := map[string]int{}, map[string]int{}, map[string]int64{}
	var kinds []string
	err := b.each(`SELECT kind, source, sum(count)::BIGINT, detail FROM (
			SELECT kind, source, count, CASE WHEN kind = 'late' THEN regexp_replace(detail, '^the job has just begun to use these.*',
			'the job began to use some functions before they had probes: their first calls are not recorded')
				ELSE detail END AS detail FROM warning WHERE kind NOT IN ('memoised', 'incomplete') AND NOT (kind = 'slice' AND source = 'detail'))
		GROUP BY kind, source, detail ORDER BY kind = 'lost' DESC, 3 DESC, 2, 4`, func(scan scan) error {
		var kind, source string
		var count int64
		var detail sql.NullString
		if err := scan(&kind, &source, &count, &detail); err != nil {
			return err
		}
		if told[kind]++; told[kind] > eachKind {
			if more[kind]++; more[kind] == 1 {
				kinds = append(kinds, kind)
			}
			times[kind] += count
			return nil
		}
		b.report.Warnings = append(b.report.Warnings, warned(kind, source, detail.String, count))
		return nil
	})
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		b.report.Warnings = append(b.report.Warnings, fmt.Sprintf("%d %s: of %d more sources (query: SELECT * FROM warning WHERE kind = '%s')",
			times[kind], kind, more[kind], strings.ReplaceAll(kind, "'", "''")))
	}
	if err := b.sliced(); err != nil {
		return err
	}
	return b.each(`SELECT sum(n)::BIGINT, string_agg(n || ' ' || source, ', ' ORDER BY n DESC, source) FROM (
			SELECT source, sum(count) AS n FROM warning WHERE kind = 'incomplete' GROUP BY source) HAVING sum(n) > 0`, func(scan scan) error {
		var count int64
		var sources string
		if err := scan(&count, &sources); err != nil {
			return err
		}
		b.report.Warnings = append(b.report.Warnings, fmt.Sprintf("%d stacks, frames and rows are not whole: %s (query: SELECT * FROM warning "+
			"WHERE kind = 'incomplete')", count, cut(sources, 120)))
		return nil
	})
}

// warned is a warning as a sentence: where it is from, what it is, and how often, where
// the detail does not say that.
func warned(kind, source, detail string, count int64) string {
	if detail == "" {
		return fmt.Sprintf("%s: %s, %d times", kind, source, count)
	}
	text, base := detail, filepath.Base(source)
	if !strings.Contains(detail, base) {
		text = base + ": " + detail
	}
	switch {
	case kind == "lost":
		return fmt.Sprintf("%d lost: %s", count, text)
	case kind == "late":
		return fmt.Sprintf("%s (%d probes)", text, count)
	case count > 1 && !strings.Contains(detail, fmt.Sprint(count)):
		return fmt.Sprintf("%s, %d times", text, count)
	}
	return text
}

// sliced says of a recording in slices how much of it they are. Groups of probes have
// slices of their own; those of the group with the most stand for all. A slice has a row
// for each phase that it stands for.
func (b *builder) sliced() error {
	return b.each(`
		WITH every AS (SELECT session_id, pid, probe_group, begin_ns, end_ns, max(recorded) > 0 AS saw, min(from_ns) AS since, max(to_ns) AS until
		FROM slice GROUP BY ALL),
		most AS (SELECT session_id, pid, probe_group, count(*) FILTER (saw) AS n, coalesce(sum(end_ns - begin_ns) FILTER (saw), 0) AS seen,
		max(until) - min(since) AS whole FROM every GROUP BY 1, 2, 3
			QUALIFY row_number() OVER (PARTITION BY session_id, pid ORDER BY n DESC, probe_group) = 1)
		SELECT sum(n)::BIGINT, sum(seen) / 1e6, sum(whole) / 1e6 FROM most HAVING sum(n) > 0`, func(scan scan) error {
		var slices int64
		var seen, whole float64
		if err := scan(&slices, &seen, &whole); err != nil {
			return err
		}
		b.report.Warnings = append(b.report.Warnings, fmt.Sprintf("operators and their like were recorded in %s, %s of %s (query: SELECT * "+
			"FROM slice); --budget off records all",
			counted(slices, "slice", "slices"), msText(seen), msText(whole)))
		return nil
	})
}

func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// cut ends a list between its items.
func cut(list string, width int) string {
	if len(list) <= width {
		return list
	}
	if i := strings.LastIndex(list[:width], ", "); i > 0 {
		return list[:i] + ", …"
	}
	return shorten(list, width)
}

// choose makes the view rows.
func (b *builder) choose() error {
	of, when := "true", "true"
	if b.options.Rank != nil {
		if _, err := b.db.OfRank(b.ctx, *b.options.Rank); err != nil {
			return err
		}
		of = fmt.Sprintf("(session_id, pid) IN (SELECT (session_id, pid) FROM process WHERE rank = %d)", *b.options.Rank)
	}
	b.part = dataset.Scan{Instead: b.report.checks.Instead}
	var begin sql.NullInt64
	if err := b.db.Row(b.ctx, "SELECT min(first_ns) FROM lint_window", nil, &begin); err != nil {
		return err
	}
	if b.options.FromMS != nil {
		b.part.From = begin.Int64 + int64(math.Round(*b.options.FromMS*1e6))
		when += fmt.Sprintf(" AND ts_ns >= %d", b.part.From)
	}
	if b.options.ToMS != nil {
		b.part.Until = begin.Int64 + int64(math.Round(*b.options.ToMS*1e6))
		when += fmt.Sprintf(" AND ts_ns < %d", b.part.Until)
	}
	ranked, err := b.ranked()
	if err != nil {
		return err
	}
	b.part.Of = ranked
	if err := b.chooseRows(of, when); err != nil {
		return err
	}
	var first, last sql.NullInt64
	err = b.db.Row(b.ctx, `SELECT min(ts_ns), max(ts_ns + coalesce(duration_ns, 0)), count(*),
		(SELECT count(*) FROM rows WHERE layer = 'device'),
		(SELECT count(*) FROM sample) FROM `+clockRows, nil, &first, &last, &b.spans, &b.deviceRows, &b.samples)
	if err != nil {
		return err
	}
	b.firstNS, b.lastNS = first.Int64, last.Int64
	if b.spans == 0 { // a recording of samples and allocations alone
		err := b.db.Row(b.ctx, `SELECT min(ts_ns), max(ts_ns) FROM
			(SELECT ts_ns FROM sample UNION ALL SELECT ts_ns FROM memory)`, nil, &first, &last)
		if err != nil {
			return err
		}
		b.firstNS, b.lastNS = first.Int64, last.Int64
	}
	b.report.WindowMS = ms(b.lastNS - b.firstNS)
	if b.options.Rank != nil && b.spans == 0 {
		return fmt.Errorf("there is no row of rank %d", *b.options.Rank)
	}
	return nil
}

// clockRows is the view of the rows that begin in the chosen time. In the view rows, what devices did belongs
// to the time of its launch: a step has the kernels that it launched, whenever they ran.
const clockRows = "clock_rows"

func (b *builder) chooseRows(of, when string) error {
	if err := b.db.Exec(b.ctx, fmt.Sprintf("CREATE OR REPLACE TEMP VIEW %s AS SELECT * FROM good_span WHERE %s AND %s", clockRows, of,
		when)); err != nil {
		return err
	}
	if when == "true" {
		return b.db.Exec(b.ctx, "CREATE OR REPLACE TEMP VIEW rows AS SELECT * FROM "+clockRows)
	}
	err := b.db.Exec(b.ctx, fmt.Sprintf(`CREATE OR REPLACE TEMP TABLE launched_then AS SELECT session_id, span_id FROM (
		SELECT d.session_id, d.span_id, coalesce(l.ts_ns, d.ts_ns) AS ts_ns FROM (SELECT session_id, span_id, ts_ns, launch_id FROM good_span
		WHERE layer = 'device' AND %s) d
		LEFT JOIN (SELECT session_id, span_id, ts_ns FROM good_span WHERE layer <> 'device') l ON l.session_id = d.session_id
		AND l.span_id = d.launch_id)
		WHERE %s`, of, when))
	if err != nil {
		return err
	}
	return b.db.Exec(b.ctx, fmt.Sprintf(`CREATE OR REPLACE TEMP VIEW rows AS SELECT * FROM good_span
		WHERE layer <> 'device' AND %s AND %s OR layer = 'device' AND (session_id, span_id) IN (SELECT (session_id, span_id)
		FROM launched_then)`, of, when))
}

// chooseStep narrows the rows to the period of one step, if that is wanted. Which
// steps there are is asked of the whole recording.
func (b *builder) chooseStep() error {
	if b.options.Step == nil {
		return nil
	}
	threads, err := timeline.Steps(b.ctx, b.db)
	if err != nil {
		return err
	}
	if rank := b.options.Rank; rank != nil {
		threads = timeline.OfRank(threads, *rank)
	}
	_, step, err := timeline.Choose(threads, *b.options.Step)
	if err != nil {
		return err
	}
	var first int64
	if err := b.db.Row(b.ctx, "SELECT min(first_ns) FROM lint_window", nil, &first); err != nil {
		return err
	}
	from, to := ms(step.Begin-first), ms(step.Until()-first)
	b.options.FromMS, b.options.ToMS = &from, &to
	return b.choose()
}

// clocks says how far times of different hosts can be compared, in a dataset that join made.
func (b *builder) clocks() error {
	var there int
	err := b.db.Row(b.ctx, "SELECT count(*) FROM duckdb_views() WHERE view_name = 'clock' AND NOT internal", nil, &there)
	if err != nil || there == 0 {
		return err
	}
	err = b.each(`SELECT coalesce(host, session_id, ''), method, coalesce(ahead_ns, 0), coalesce(error_ns, 0) FROM clock
		WHERE method IN ('collectives', 'unknown') ORDER BY method DESC, error_ns DESC LIMIT 2`, func(scan scan) error {
		var host, method string
		var ahead, wrong int64
		if err := scan(&host, &method, &ahead, &wrong); err != nil {
			return err
		}
		text := fmt.Sprintf("the clock of %s was not compared with the others': times of different hosts tell no order", host)
		if method == "collectives" {
			text = fmt.Sprintf("the clock of %s was set by %.3f ms to the others', which is right to %.3f ms: a shorter order between hosts "+
				"is not known",
				host, -ms(ahead), ms(wrong))
		}
		b.report.Warnings = append(b.report.Warnings, text)
		return nil
	})
	if err != nil && b.ctx.Err() == nil { // whoever made that table
		b.report.Warnings = append(b.report.Warnings, "table clock is not one that join wrote: "+err.Error())
		return nil
	}
	return err
}

func (b *builder) job() error {
	if err := b.clocks(); err != nil {
		return err
	}
	var source, device sql.NullString
	if err := b.db.Row(b.ctx, "SELECT string_agg(DISTINCT coalesce(source, 'recorded'), ', ' ORDER BY coalesce(source, 'recorded')), "+
		"string_agg(DISTINCT device_name, ', ' ORDER BY device_name) FROM session", nil, &source, &device); err != nil {
		return err
	}
	b.report.Source = source.String
	return b.each(`SELECT pid, rank, world_size, coalesce(command, exe, ''), coalesce(python_version, ''),
			trim(coalesce(framework, '') || ' ' || coalesce(framework_version, ''))
		FROM process ORDER BY rank NULLS LAST, pid LIMIT 1000`, func(scan scan) error {
		var p Process
		if err := scan(&p.PID, &p.Rank, &p.WorldSize, &p.Command, &p.Python, &p.Framework); err != nil {
			return err
		}
		p.Device = device.String
		b.report.Job = append(b.report.Job, p)
		return nil
	})
}

type scan = func(targets ...any) error

// each calls f for each row of a query.
func (b *builder) each(query string, f func(scan) error) error {
	rows, err := b.db.Query(b.ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func ms(ns int64) float64 { return float64(ns) / 1e6 }

func msOf(ns sql.NullFloat64) *float64 {
	if !ns.Valid {
		return nil
	}
	v := ns.Float64 / 1e6
	return &v
}
