package views

import (
	"fmt"
	"slices"
)

// regions make a view of the durations of like regions. An outlier is above the
// median by more than five times the median distance from it, and by a fifth. In a
// recording by slices a row stands for weight regions: count and total_ms are estimates
// then, the others are of the rows.
func regions(name, needs, sql, what string) view {
	return view{
		name: name, needs: needs,
		columns: []Column{{Name: "region"}, {Name: "count"}, {Name: "total_ms"}, {Name: "percent", Share: true}, {Name: "median_ms"},
			{Name: "p90_ms"}, {Name: "max_ms"},
			{Name: "outliers"}, {Name: "slowest_at_ms"}, {Name: "recorded"}},
		sql: fmt.Sprintf(`WITH region AS (%s),
			usual AS (SELECT name, median(duration_ns) AS middle FROM region GROUP BY ALL),
			apart AS (SELECT name, middle, median(abs(duration_ns - middle)) AS mad FROM region JOIN usual USING (name) GROUP BY ALL)
			SELECT r.name, round(sum(weight))::BIGINT, sum(weight * duration_ns) / 1e6,
			100.0 * sum(weight * duration_ns) / sum(sum(weight * duration_ns)) OVER (), any_value(middle) / 1e6,
				quantile_cont(duration_ns, 0.9) / 1e6, max(duration_ns) / 1e6,
				count(*) FILTER (duration_ns > middle + greatest(5 * mad, 0.2 * middle)),
				(arg_max(ts_ns, duration_ns) - (SELECT min(first_ns) FROM lint_window)) / 1e6, count(*)
			FROM region r JOIN apart USING (name) GROUP BY r.name ORDER BY 3 DESC, 1`, sql),
		estimated: func(t *Table) bool {
			return slices.ContainsFunc(t.Rows, func(row []any) bool { return row[1] != row[9] })
		},
		sentence: func(t *Table) string {
			most := 0
			for i := range t.Rows {
				if t.Rows[i][7].(int64) > t.Rows[most][7].(int64) {
					most = i
				}
			}
			if t.Rows[most][7].(int64) == 0 {
				return fmt.Sprintf("%d %s, none of which is ever far from its median.", len(t.Rows), what)
			}
			return fmt.Sprintf("%d %s; %s is far from its median most often: %d of %d times, at most %.3f ms instead of %.3f ms.",
				len(t.Rows), what, t.text(most, 0), t.Rows[most][7], t.Rows[most][9], t.Rows[most][6], t.Rows[most][4])
		},
	}
}

var modules = regions("modules", "modules or scopes: record with scopes, or profile with with_modules=True", `
	SELECT name, ts_ns, duration_ns, weight FROM picked
	WHERE duration_ns > 0 AND (layer = 'python' AND name LIKE 'nn.Module: %' OR layer = 'scope' AND NOT (name LIKE 'ProfilerStep#%')
		AND NOT EXISTS (FROM picked WHERE layer = 'python' AND name LIKE 'nn.Module: %'))`, "modules or scopes")

var collectives = regions("collectives", "collectives", `
	SELECT regexp_replace(name, '_(Sum|Prod|Max|Min|Avg).*$', '') || coalesce(', ' || element_count || ' elements',
	'') || coalesce(', ' || dtype, '')
		|| coalesce(', rank ' || (SELECT any_value(rank) FROM process p WHERE p.session_id = s.session_id AND p.pid = s.pid), '') AS name, ts_ns,
		duration_ns, weight
	FROM picked s WHERE duration_ns > 0 AND (layer = 'device' AND category = 'collective'
		OR layer = 'collective' AND NOT EXISTS (FROM picked WHERE layer = 'device' AND category = 'collective'))`, "kinds of collectives")

// steps are the table that internal/model/timeline leaves on the connection.
var steps = regions("steps", "steps: nothing repeats", `
	SELECT coalesce('rank ' || (SELECT any_value(rank) FROM process p WHERE p.pid = t.pid), 'pid ' || t.pid) || ', ' || kind AS name,
	begin_ns AS ts_ns, until_ns - begin_ns AS duration_ns, weight
	FROM timeline_step t WHERE kind <> 'other' AND until_ns > begin_ns`, "kinds of steps")
