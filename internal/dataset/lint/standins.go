package lint

// standIns find out how long calls may have lasted whose durations cannot be: as long as
// the median of their like, which for work on a device are those of the same launch shape
// where there are two or more, and else those of the same name; on the host no shorter
// than what was called in them and, other than that, no longer than the call around them;
// on a device not beyond the next work of their stream.
var standIns = []string{`
	CREATE OR REPLACE TEMP TABLE lint_broken AS
	SELECT s.session_id, s.span_id, s.parent_id, s.pid, s.tid, s.device_id, s.stream, s.ts_ns, s.layer, s.category, s.name,
		concat_ws(' ', s.grid_x, s.grid_y, s.grid_z, s.block_x, s.block_y, s.block_z) AS shape
	FROM span s JOIN left_out USING (session_id, span_id) WHERE left_out.reason <> '` + impossibleTime + `'`, `
	CREATE OR REPLACE TEMP TABLE lint_usual AS
	WITH alike AS (
		SELECT session_id, layer, name, concat_ws(' ', grid_x, grid_y, grid_z, block_x, block_y, block_z) AS shape, duration_ns
		FROM span ANTI JOIN left_out USING (session_id, span_id)
		WHERE duration_ns > 0 AND (session_id, layer, name) IN (SELECT (session_id, layer, name) FROM lint_broken))
	SELECT session_id, layer, name, NULL AS shape, median(duration_ns) AS ns FROM alike GROUP BY ALL
	UNION ALL
	SELECT session_id, layer, name, shape, median(duration_ns) FROM alike WHERE layer = 'device' GROUP BY ALL HAVING count(*) >= 2`, `
	UPDATE left_out SET stands_ns = t.ns FROM (
		SELECT b.session_id, b.span_id, CAST(greatest(1,
			least(coalesce(any_value(alike.ns), any_value(named.ns)), min(p.ts_ns + p.duration_ns) - any_value(b.ts_ns),
			min(n.ts_ns) - any_value(b.ts_ns)),
			max(c.ts_ns + c.duration_ns) - any_value(b.ts_ns)) AS BIGINT) AS ns
		FROM lint_broken b
		JOIN lint_usual named ON named.session_id = b.session_id AND named.layer = b.layer AND named.name = b.name AND named.shape IS NULL
		LEFT JOIN lint_usual alike ON alike.session_id = b.session_id AND alike.layer = b.layer AND alike.name = b.name AND alike.shape = b.shape
		LEFT JOIN (FROM span ANTI JOIN left_out USING (session_id, span_id)) p ON p.session_id = b.session_id AND p.span_id = b.parent_id
		LEFT JOIN (FROM span ANTI JOIN left_out USING (session_id, span_id)) c ON c.session_id = b.session_id AND c.parent_id = b.span_id
		LEFT JOIN (FROM span WHERE layer = 'device' AND category IN ('kernel', 'collective', 'copy', 'set')) n
			ON b.layer = 'device' AND n.session_id = b.session_id AND n.pid = b.pid AND n.device_id IS NOT DISTINCT FROM b.device_id
			AND n.stream IS NOT DISTINCT FROM b.stream AND n.ts_ns > b.ts_ns AND n.ts_ns < b.ts_ns + named.ns
		GROUP BY b.session_id, b.span_id) t
	WHERE left_out.session_id = t.session_id AND left_out.span_id = t.span_id`,
}
