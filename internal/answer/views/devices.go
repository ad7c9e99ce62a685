package views

import "fmt"

// Sweep walks over the edges of all work of the devices of a view's rows: between two
// edges a device does the most useful thing that is open. Sets count as computation,
// as TraceLens has it. One row for each device: session_id, pid, device_id, and in
// nanoseconds total, busy, computation, exposed communication, exposed copies, idle,
// communication, copies, and computation beside communication. Of processes with windows
// it is about these alone.
func Sweep(rows, windows string) string {
	return fmt.Sprintf(`
	WITH work AS (
		SELECT session_id, pid, device_id, ts_ns, duration_ns, category IN ('kernel', 'set') AS computes, category = 'collective' AS communicates,
		category = 'copy' AS copies
		FROM %s WHERE layer = 'device' AND category IN ('kernel', 'set', 'collective', 'copy') AND duration_ns IS NOT NULL),
	covered AS (
		SELECT DISTINCT session_id, pid, device_id, from_ns, until_ns FROM work JOIN %s USING (session_id, pid)
		UNION ALL
		SELECT session_id, pid, device_id, min(ts_ns), max(ts_ns + duration_ns) FROM work
		WHERE (session_id, pid) NOT IN (SELECT (session_id, pid) FROM merged_trace WHERE `+Partial+`)
			AND (session_id, pid) NOT IN (SELECT (session_id, pid) FROM %s) OR NOT %t GROUP BY ALL),
	edges AS (
		SELECT session_id, pid, device_id, ts_ns AS t, computes::INT AS a, communicates::INT AS b, copies::INT AS c, 0 AS d FROM work
		UNION ALL
		SELECT session_id, pid, device_id, ts_ns + duration_ns, -computes::INT, -communicates::INT, -copies::INT, 0 FROM work
		UNION ALL
		SELECT session_id, pid, device_id, from_ns, 0, 0, 0, 1 FROM covered
		UNION ALL
		SELECT session_id, pid, device_id, until_ns, 0, 0, 0, -1 FROM covered),
	moments AS (SELECT session_id, pid, device_id, t, sum(a) AS a, sum(b) AS b, sum(c) AS c, sum(d) AS d FROM edges GROUP BY ALL),
	spells AS (
		SELECT session_id, pid, device_id, lead(t) OVER w - t AS ns, sum(d) OVER w > 0 AS inside, sum(a) OVER w > 0 AS computing,
		sum(b) OVER w > 0 AS communicating, sum(c) OVER w > 0 AS copying
		FROM moments WINDOW w AS (PARTITION BY session_id, pid, device_id ORDER BY t))
	SELECT session_id, pid, device_id, sum(ns)::DOUBLE AS total,
		coalesce(sum(ns) FILTER (computing OR communicating OR copying), 0)::DOUBLE AS busy,
		coalesce(sum(ns) FILTER (computing), 0)::DOUBLE AS computation,
		coalesce(sum(ns) FILTER (communicating AND NOT computing), 0)::DOUBLE AS exposed_communication,
		coalesce(sum(ns) FILTER (copying AND NOT computing AND NOT communicating), 0)::DOUBLE AS exposed_copies,
		coalesce(sum(ns) FILTER (NOT (computing OR communicating OR copying)), 0)::DOUBLE AS idle,
		coalesce(sum(ns) FILTER (communicating), 0)::DOUBLE AS communication, coalesce(sum(ns) FILTER (copying), 0)::DOUBLE AS copies,
		coalesce(sum(ns) FILTER (computing AND communicating), 0)::DOUBLE AS overlap
	FROM spells WHERE ns IS NOT NULL AND inside GROUP BY ALL`, rows, windows, windows, windows != NoWindows)
}

// who is a device's rank, process and number.
const who = "coalesce('rank ' || p.rank, 'pid ' || s.pid) || coalesce(', device ' || s.device_id, '')"

var breakdown = view{
	name: "breakdown", ofDevices: true, ofAllTime: true, needs: deviceRows, bounded: &boundedBreakdown,
	columns: []Column{{Name: "device"}, {Name: "total_ms"}, {Name: "computation_ms"}, {Name: "computation_percent", Share: true},
		{Name: "non_computation_ms"},
		{Name: "non_computation_percent", Share: true}, {Name: "idle_ms"}, {Name: "idle_percent", Share: true}},
	sql: `SELECT ` + who +
		`, total / 1e6, computation / 1e6, 100 * computation / total, (busy - computation) / 1e6, 100 * (busy - computation) / total, idle / 1e6, 100 * idle / total
		FROM (` + Sweep("picked", Windows(0, 0)) + `) s LEFT JOIN process p USING (session_id, pid) WHERE total > 0 ORDER BY p.rank NULLS LAST,
			s.pid, device_id`,
	sentence: func(t *Table) string {
		n := float64(len(t.Rows))
		return fmt.Sprintf("Devices compute %.1f %% of the time, do something else %.1f %%, and are idle %.1f %% (mean of %d).", t.total(3)/n,
			t.total(5)/n, t.total(7)/n, len(t.Rows))
	},
}

var overlap = view{
	name: "overlap", ofDevices: true, needs: "collectives on devices: import a trace of torch.profiler or Nsight Systems of a job that " +
		"communicates there",
	columns: []Column{{Name: "device"}, {Name: "communication_ms"}, {Name: "overlapped_ms"}, {Name: "overlapped_percent", Share: true},
		{Name: "exposed_ms"}},
	sql: `SELECT ` + who + `, communication / 1e6, overlap / 1e6, 100 * overlap / communication, exposed_communication / 1e6
		FROM (` + Sweep("picked", Windows(0, 0)) + `) s LEFT JOIN process p USING (session_id, pid) WHERE communication > 0
			ORDER BY p.rank NULLS LAST, s.pid, device_id`,
	sentence: func(t *Table) string {
		return fmt.Sprintf("%.1f %% of the communication has computation beside it.", t.total(3)/float64(len(t.Rows)))
	},
}

// work are rows of devices with the call that launched them.
const work = `
	work AS (
		SELECT d.session_id, d.pid, d.device_id, d.stream, d.name, d.ts_ns, d.duration_ns, l.ts_ns AS launched_ns, l.duration_ns AS launch_ns
		FROM picked d LEFT JOIN picked l ON l.session_id = d.session_id AND l.span_id = d.launch_id
		WHERE d.layer = 'device' AND d.category IN ('kernel', 'set', 'collective', 'copy') AND d.duration_ns IS NOT NULL)`

// kernelGap is the longest time between two kernels that counts as the device's own, in
// nanoseconds: HTA's consecutive_kernel_delay.
const kernelGap = 30

var idle = view{
	name: "idle", ofDevices: true, needs: deviceRows,
	columns: []Column{{Name: "device"}, {Name: "stream"}, {Name: "idle_ms"}, {Name: "host_ms"}, {Name: "host_percent", Share: true},
		{Name: "kernel_ms"}, {Name: "kernel_percent", Share: true},
		{Name: "other_ms"}, {Name: "other_percent", Share: true}},
	sql: fmt.Sprintf(`WITH %s,
		gaps AS (
			SELECT *, ts_ns - max(ts_ns + duration_ns) OVER w AS gap, max(ts_ns + duration_ns) OVER w AS before_ns FROM work
			WINDOW w AS (PARTITION BY session_id, pid, device_id, stream ORDER BY ts_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
		caused AS (SELECT *, CASE WHEN launched_ns > before_ns THEN 'host' WHEN gap <= %d THEN 'kernel' ELSE 'other' END AS cause FROM gaps
		WHERE gap > 0
			-- From one merged trace to the next nothing is known.
			AND NOT EXISTS (FROM merged_trace m WHERE m.session_id = gaps.session_id AND m.pid = gaps.pid AND m.ts_ns > before_ns
			AND m.ts_ns <= gaps.ts_ns))
		SELECT %s, s.stream, sum(gap) / 1e6, coalesce(sum(gap) FILTER (cause = 'host'), 0) / 1e6,
		coalesce(100 * sum(gap) FILTER (cause = 'host') / sum(gap), 0),
			coalesce(sum(gap) FILTER (cause = 'kernel'), 0) / 1e6, coalesce(100 * sum(gap) FILTER (cause = 'kernel') / sum(gap), 0),
			coalesce(sum(gap) FILTER (cause = 'other'), 0) / 1e6, coalesce(100 * sum(gap) FILTER (cause = 'other') / sum(gap), 0)
		FROM caused s LEFT JOIN process p USING (session_id, pid) GROUP BY 1, 2, p.rank, s.pid, s.device_id ORDER BY p.rank NULLS LAST, s.pid,
		s.device_id, s.stream`, work, kernelGap, who),
	sentence: func(t *Table) string {
		sum := max(t.total(2), 1e-9)
		return fmt.Sprintf("%.1f %% of the streams' idle time waits for the host to launch, %.1f %% lies between kernels in a row, %.1f %% has "+
			"another cause (dependencies, or no launch is known).",
			100*t.total(3)/sum, 100*t.total(5)/sum, 100*t.total(7)/sum)
	},
}

// blocked is the length at which launching blocks the host: CUDA's queue.
const blocked = 1024

var queue = view{
	name: "queue", ofDevices: true, needs: deviceRows + ", with their launches",
	columns: []Column{{Name: "device"}, {Name: "stream"}, {Name: "launches"}, {Name: "mean_length"}, {Name: "max_length"},
		{Name: "empty_percent", Share: true}, {Name: "full_ms"}},
	sql: fmt.Sprintf(`WITH %s,
		edges AS (
			SELECT session_id, pid, device_id, stream, launched_ns AS t, 1 AS n FROM work WHERE launched_ns IS NOT NULL
			UNION ALL SELECT session_id, pid, device_id, stream, greatest(ts_ns, launched_ns), -1 FROM work WHERE launched_ns IS NOT NULL),
		lengths AS (
			SELECT *, sum(n) OVER w AS length, coalesce(lead(t) OVER w - t, 0) AS ns FROM edges
			WINDOW w AS (PARTITION BY session_id, pid, device_id, stream ORDER BY t, n DESC ROWS UNBOUNDED PRECEDING))
		SELECT %s, s.stream, count(*) FILTER (n = 1), sum(length * ns)::DOUBLE / greatest(sum(ns), 1), max(length)::BIGINT,
			100 * coalesce(sum(ns) FILTER (length = 0), 0) / greatest(sum(ns), 1), coalesce(sum(ns) FILTER (length >= %d), 0) / 1e6
		FROM lengths s LEFT JOIN process p USING (session_id, pid) GROUP BY 1, 2, p.rank, s.pid, s.device_id ORDER BY p.rank NULLS LAST, s.pid,
		s.device_id, s.stream`, work, who, blocked),
	sentence: func(t *Table) string {
		longest := 0
		for i := range t.Rows {
			if t.Rows[i][4].(int64) > t.Rows[longest][4].(int64) {
				longest = i
			}
		}
		return fmt.Sprintf("Launches that have not begun, at most: %s, on stream %s of %s; at %d the host blocks.", t.text(longest, 4),
			t.text(longest, 1), t.text(longest, 0), blocked)
	},
}

// What an outlier is among launches: HTA's defaults, in nanoseconds.
const (
	slowLaunch = 50_000
	lateStart  = 100_000
)

var launches = view{
	name: "launches", ofDevices: true, needs: deviceRows + ", with their launches",
	columns: []Column{{Name: "kernel"}, {Name: "launches"}, {Name: "mean_host_us"}, {Name: "mean_device_us"}, {Name: "mean_delay_us"},
		{Name: "shorter_than_launch"},
		{Name: "shorter_percent", Share: true}, {Name: "slow_launches"}, {Name: "late_starts"}},
	sql: fmt.Sprintf(`WITH %s
		SELECT name, count(*), avg(launch_ns) / 1e3, avg(duration_ns) / 1e3, avg(ts_ns - launched_ns - launch_ns) / 1e3,
			count(*) FILTER (duration_ns < launch_ns), 100.0 * count(*) FILTER (duration_ns < launch_ns) / count(*),
			count(*) FILTER (launch_ns > %d), count(*) FILTER (ts_ns - launched_ns - launch_ns > %d)
		FROM work WHERE launch_ns IS NOT NULL GROUP BY name ORDER BY 2 DESC, 1`, work, slowLaunch, lateStart),
	sentence: func(t *Table) string {
		n := max(t.total(1), 1)
		return fmt.Sprintf("Of %.0f launches %.0f %% take the host longer than the work takes the device, %.0f take it more than 50 µs, and "+
			"work of %.0f begins more than 100 µs later.",
			n, 100*t.total(5)/n, t.total(7), t.total(8))
	},
}
