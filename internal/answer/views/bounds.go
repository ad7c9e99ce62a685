package views

import "fmt"

// Bounded is what the host handed to devices of rows, with one end (lo, hi) of the time that it can
// have taken there, as rows of devices: from when it was handed over.
func Bounded(rows, end string) string {
	return fmt.Sprintf(`(SELECT session_id, pid, device_id, ts_ns, device_time_%s_ns AS duration_ns, 'device' AS layer,
		CASE WHEN layer = 'collective' THEN 'collective' WHEN category IN ('copy', 'set') THEN category ELSE 'kernel' END AS category
	FROM %s WHERE device_time_lo_ns IS NOT NULL AND device_time_hi_ns IS NOT NULL AND weight <= 1
		AND (layer = 'runtime' AND category IN ('launch', 'graph', 'copy', 'set') OR layer = 'collective'))`, end, rows)
}

// boundedBreakdown is the breakdown where only bounds of device times are known: the same sweep
// with the least and with the most time, the lesser of each value first. At the least a device is
// idle no longer than its waits leave room for: they say for how long it was at work, with whatever.
var boundedBreakdown = view{
	name: "breakdown", needs: deviceRows,
	columns: []Column{{Name: "device"}, {Name: "total_lo_ms"}, {Name: "total_hi_ms"}, {Name: "computation_lo_ms"}, {Name: "computation_hi_ms"},
		{Name: "computation_lo_percent"}, {Name: "computation_hi_percent"}, {Name: "non_computation_lo_ms"}, {Name: "non_computation_hi_ms"},
		{Name: "idle_lo_ms"}, {Name: "idle_hi_ms"}, {Name: "idle_lo_percent"}, {Name: "idle_hi_percent"}},
	sql: `WITH least AS (` + Sweep(Bounded("picked", "lo"), NoWindows) + `), most AS (` + Sweep(Bounded("picked", "hi"), NoWindows) + `),
		waited AS (SELECT session_id, pid, device_id, sum(device_busy_lo_ns)::DOUBLE AS busy FROM picked WHERE device_busy_lo_ns IS NOT NULL
		AND weight <= 1 GROUP BY ALL),
		ends AS (SELECT m.session_id, m.pid, m.device_id, [l.total, m.total] AS total, [l.computation, m.computation] AS computation,
				[l.busy - l.computation, m.busy - m.computation] AS other, [l.total - greatest(l.busy, least(coalesce(w.busy, 0), l.total)),
				m.idle] AS idle,
				[100 * l.computation / greatest(l.total, 1), 100 * m.computation / greatest(m.total, 1)] AS computing,
				[100 * (1 - greatest(l.busy, least(coalesce(w.busy, 0), l.total)) / greatest(l.total, 1)),
				100 * m.idle / greatest(m.total, 1)] AS idling
			FROM most m JOIN least l ON l.session_id = m.session_id AND l.pid = m.pid AND l.device_id IS NOT DISTINCT FROM m.device_id
				LEFT JOIN waited w ON w.session_id = m.session_id AND w.pid = m.pid AND w.device_id IS NOT DISTINCT FROM m.device_id)
		SELECT ` + who + `, list_min(total) / 1e6, list_max(total) / 1e6, list_min(computation) / 1e6, list_max(computation) / 1e6,
			list_min(computing), list_max(computing),
			list_min(other) / 1e6, list_max(other) / 1e6, list_min(idle) / 1e6, list_max(idle) / 1e6, list_min(idling), list_max(idling)
		FROM ends s LEFT JOIN process p USING (session_id, pid) WHERE list_max(total) > 0 ORDER BY p.rank NULLS LAST, s.pid, device_id`,
	sentence: func(t *Table) string {
		n := float64(len(t.Rows))
		return fmt.Sprintf("Devices compute %.1f to %.1f %% of the time and are idle %.1f to %.1f %% (mean of %d): only bounds of what work "+
			"took there are known.",
			t.total(5)/n, t.total(6)/n, t.total(11)/n, t.total(12)/n, len(t.Rows))
	},
}
