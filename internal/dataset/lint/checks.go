package lint

import (
	"context"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// check is a question that leaves no row out. The SQL gives how many and of how
// many; detail says what it means, with %d for how many.
type check struct {
	name     string
	severity Severity
	detail   string
	devices  bool // only where there are rows of devices
	sql      string
}

// estimated is the check of rows that stand for more calls than one.
const estimated = "estimated_from_slices"

// covered are the launches whose work would have rows of devices: where a trace was merged into a recording, those of its
// time, with a margin for what was under way when it began and ended.
const covered = `(SELECT l.* FROM good_span l WHERE l.layer = 'runtime' AND l.category = 'launch' AND (
	NOT EXISTS (FROM merged_trace WHERE device_rows > 0) OR EXISTS (FROM merged_trace m WHERE m.session_id = l.session_id AND m.pid = l.pid
		AND l.ts_ns BETWEEN m.ts_ns + (m.end_ns - m.ts_ns) // 20 AND m.end_ns - (m.end_ns - m.ts_ns) // 20)))`

var checks = []check{
	{"events_lost", Warning, "%d events were lost while recording: times and counts around them are too small (see table warning)", false,
		`SELECT coalesce(sum(count), 0)::BIGINT, (SELECT count(*) FROM span) FROM warning WHERE kind = 'lost'`},
	{estimated, Note, "%d rows represent more than one call: counts and sums are estimates", false,
		`SELECT count(*) FILTER (weight > 1), count(*) FROM good_span`},
	{"launches_without_work", Warning, "%d launches have no row of the device: its work was not recorded, or lies outside the window", true,
		`SELECT count(*) FILTER (d.launch_id IS NULL), count(*) FROM ` + covered + ` l
		 LEFT JOIN (SELECT DISTINCT session_id, launch_id FROM good_span WHERE layer = 'device') d ON d.session_id = l.session_id
		AND d.launch_id = l.span_id`},
	{"no_work_of_devices", Warning, "the kernels of %d launches are missing: the trace has no row of a device, so that its profiler lost " +
		"them or did not record devices", false,
		`SELECT CASE WHEN any_device THEN 0 ELSE launches END, launches FROM (
			SELECT count(*) FILTER (layer = 'runtime' AND category IN ('launch', 'graph') AND end_method = 'imported') AS launches,
				coalesce(bool_or(layer = 'device'), false) AS any_device FROM good_span)`},
	{"work_without_launch", Note, "%d rows of the device have no launch: it lies before the window, or was not recorded", true,
		// CUPTI has the work of all launches, and a recording in slices the launches of some: that is no loss.
		`SELECT (count(*) FILTER (launch_id IS NULL AND coalesce(device_time_method, '') <> 'cupti') + (
			SELECT coalesce(sum(CASE outside_slices WHEN 0 THEN device_rows - launched ELSE calls - matched - outside_slices END), 0)
			FROM merged_trace WHERE method = 'cupti'))::BIGINT, count(*) FROM good_span WHERE layer = 'device'
			AND category IN ('kernel', 'collective', 'copy', 'set')`},
	{"work_before_its_launch", Warning, "%d rows of the device begin before the call that launched them: the clocks disagree", true,
		`SELECT count(*) FILTER (d.ts_ns < l.ts_ns), count(*) FROM good_span d JOIN good_span l ON l.session_id = d.session_id
			AND l.span_id = d.launch_id
		 WHERE d.layer = 'device'`},
	{"overlaps_on_a_stream", Note, "%d rows of the device begin before the one before them on their stream has ended: graphs and chained " +
		"launches do that", true,
		`SELECT count(*) FILTER (ts_ns < before_ns), count(*) FROM (
			SELECT ts_ns, max(ts_ns + duration_ns) OVER (PARTITION BY session_id, pid, device_id, stream
			ORDER BY ts_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
			FROM good_span WHERE layer = 'device' AND category IN ('kernel', 'collective', 'copy', 'set'))`},
	{"nothing_at_the_start", Warning, "%d launches at the start of the window have no work on the device, and later ones do: the " +
		"profiler dropped it", true,
		`WITH l AS (
			SELECT l.session_id, l.ts_ns, d.launch_id IS NOT NULL AS has FROM ` + covered + ` l
			LEFT JOIN (SELECT DISTINCT session_id, launch_id FROM good_span WHERE layer = 'device') d ON d.session_id = l.session_id
			AND d.launch_id = l.span_id),
		 f AS (SELECT session_id, min(ts_ns) FILTER (has) AS first_ns FROM l GROUP BY ALL)
		 SELECT count(*) FILTER (ts_ns < first_ns), count(*) FROM l JOIN f USING (session_id)`},
	{"devices_of_a_part", Note, "the rows of devices are of %d merged traces, which cover a part of the recording: answers about devices " +
		"are of that part", true,
		`SELECT count(*), count(*) FROM merged_trace WHERE device_rows > 0 AND method <> 'cupti'`},
	{"device_time_bounds", Warning, "the bounds of %d launches do not hold the time that a merged trace has for them", true,
		`SELECT coalesce(sum(bounds_checked - bounds_held), 0)::BIGINT, coalesce(sum(bounds_checked), 0)::BIGINT FROM merged_trace`},
	{"ranks_twice", Warning, "%d ranks belong to more than one process: one of them may have overwritten the other", false,
		`SELECT count(*) FILTER (n > 1), count(*) FROM (
			SELECT session_id, rank, count(DISTINCT process_id) AS n FROM process p
			WHERE rank IS NOT NULL AND parent_pid NOT IN (SELECT pid FROM process q WHERE q.session_id = p.session_id) GROUP BY ALL)`},
	{"ranks_missing", Warning, "%d ranks of the job are not in the dataset: their waits, and waits for them, are unknown", false,
		`SELECT greatest(0, coalesce(max(world_size), 0) - count(DISTINCT rank))::BIGINT, coalesce(max(world_size), 0)::BIGINT FROM process
			WHERE rank IS NOT NULL`},
	{"ranks_unknown", Warning, "%d processes take part in collectives and have no rank: neither their environment nor a group of all " +
		"ranks shows it", false,
		`SELECT count(*) FILTER (rank IS NULL), count(*) FROM (SELECT p.session_id, p.pid, max(p.rank) AS rank FROM process p
			WHERE (p.session_id, p.pid) IN (SELECT (session_id, pid) FROM communicator WHERE ranks > 1) GROUP BY ALL)`},
	{"not_ended", Note, "%d recordings have no end: the tracer was killed, or still runs", false,
		`SELECT count(*) FILTER (ended_ns IS NULL), count(*) FROM session`},
}

func (r *Result) check(ctx context.Context, db *dataset.DB, c check) error {
	found := Check{Name: c.name, Severity: OK, Detail: c.detail}
	if r.devices || !c.devices {
		if err := db.Row(ctx, c.sql, nil, &found.Count, &found.Of); err != nil {
			return err
		}
	}
	if found.Count > 0 {
		found.Severity = c.severity
	}
	found.Detail = fmt.Sprintf(c.detail, found.Count)
	r.Checks = append(r.Checks, found)
	return nil
}
