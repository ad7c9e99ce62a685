package diff

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/kernelclass"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

const (
	mostWindows, stepsAWindow = 10, 2

	noOperator = "no operator" // of work that none is known to have launched

	onDevice = "layer = 'device' AND category IN ('kernel', 'collective', 'copy', 'set')"

	// Each part is a list of kind, name, ts, ms (of all that the row stands for) and seen (ms of
	// the row itself) in the stretch that %s stands for. Work on a device is of when it was
	// launched, where that is known: the host may have gone on to the next step since.
	onHostSQL = `
		SELECT 'operator' AS kind, o.name, o.ts_ns AS ts, greatest(o.duration_ns - coalesce(i.ns, 0), 0) * o.weight / 1e6 AS ms,
		greatest(o.duration_ns - coalesce(i.ns, 0), 0) / 1e6 AS seen
		FROM good_span o LEFT JOIN (SELECT session_id, parent_id AS span_id, sum(duration_ns) AS ns FROM good_span WHERE layer <> 'device'
		AND parent_id IS NOT NULL GROUP BY ALL) i USING (session_id, span_id)
		WHERE o.layer IN ('op', 'collective') AND o.ts_ns %s`
	ofDeviceSQL = `
		SELECT 'operator' AS kind, coalesce(l.operator, '` + noOperator +
		`') AS name, coalesce(l.called_ns, d.ts_ns) AS ts, d.duration_ns / 1e6 AS ms, ms AS seen
		FROM (FROM good_span WHERE ` + onDevice + `) d LEFT JOIN diff_launch l USING (session_id, launch_id)
		WHERE coalesce(l.called_ns, d.ts_ns) %s`
	kernelSQL = `
		SELECT 'kernel' AS kind, d.name, coalesce(l.called_ns, d.ts_ns) AS ts, d.duration_ns / 1e6 AS ms, ms AS seen
		FROM (FROM good_span WHERE ` + onDevice + `) d LEFT JOIN diff_launch l USING (session_id, launch_id)
		WHERE coalesce(l.called_ns, d.ts_ns) %s`
	lineSQL = `
		SELECT 'line' AS kind, coalesce(f.file, '') || coalesce(':' || f.line, '') || ' ' || coalesce(f."function", '') AS name, x.ts_ns AS ts,
		weight_ns / 1e6 AS ms, ms AS seen
		FROM sample x JOIN (SELECT DISTINCT ON (session_id, stack_id) session_id, stack_id, list_filter(frames, f -> f.kind = 'python')[1] AS f
		FROM stack) USING (session_id, stack_id)
		WHERE f IS NOT NULL AND x.state = 'on_cpu' AND ts_ns %s`
)

// launchSQL has when each call that launched work was made, and the innermost operator that it
// stands in: Python functions and scopes may lie between, as those of kernels that are
// written in Python do.
const launchSQL = `
	CREATE OR REPLACE TEMP TABLE diff_launch AS
	WITH RECURSIVE launched AS (SELECT DISTINCT session_id, launch_id FROM good_span WHERE layer = 'device' AND launch_id IS NOT NULL),
	host AS (SELECT session_id, span_id, parent_id, ts_ns, CASE WHEN layer IN ('op', 'autograd') THEN name END AS operator FROM span
	WHERE layer <> 'device'),
	up AS (
		SELECT l.session_id, l.launch_id, h.ts_ns AS called_ns, h.parent_id, h.operator, 0 AS depth
		FROM launched l JOIN host h ON h.session_id = l.session_id AND h.span_id = l.launch_id
		UNION ALL
		SELECT u.session_id, u.launch_id, u.called_ns, h.parent_id, h.operator, depth + 1
		FROM up u JOIN host h ON h.session_id = u.session_id AND h.span_id = u.parent_id
		WHERE u.operator IS NULL AND depth < 24)
	SELECT session_id, launch_id, any_value(called_ns) AS called_ns, max(operator) AS operator FROM up GROUP BY session_id, launch_id`

// rows are what a step spends in operators, kernels, classes of kernels and lines.
func (s *Side) rows(ctx context.Context, db *dataset.DB, w window) error {
	if err := db.Row(ctx, "SELECT count(*) > 0 FROM good_span WHERE "+onDevice, nil, &s.Device); err != nil {
		return err
	}
	in := fmt.Sprintf("BETWEEN %d AND %d", w.from, w.until-1)
	if s.Device {
		if err := db.Exec(ctx, launchSQL); err != nil {
			return err
		}
		return errors.Join(s.add(ctx, db, w, fmt.Sprintf(ofDeviceSQL, in), "whole"), s.add(ctx, db, w, fmt.Sprintf(kernelSQL, in), "whole"),
			s.add(ctx, db, w, fmt.Sprintf(lineSQL, in), "true"))
	}
	return errors.Join(s.add(ctx, db, w, fmt.Sprintf(onHostSQL, in), "whole"), s.add(ctx, db, w, fmt.Sprintf(lineSQL, in), "true"))
}

// add adds up a part by name, and in windows of the steps that the condition chooses.
func (s *Side) add(ctx context.Context, db *dataset.DB, w window, part, chosen string) error {
	query, looked := fmt.Sprintf("SELECT kind, name, NULL, sum(ms), NULL FROM (%s) GROUP BY ALL", part), len(w.all)
	if chosen == "whole" {
		looked = len(w.each)
	}
	// Where operators were recorded in slices, a slice that was cut short may stand for half of the
	// steps: all steps that have all their rows count alike, as they do in the phases.
	ofWhole := chosen == "whole" && s.Sliced && !s.Device && windows(looked) > 0
	if k := windows(looked); k > 0 {
		query = fmt.Sprintf(`
			WITH loop AS (SELECT begin_ns, until_ns, row_number() OVER (ORDER BY begin_ns) - 1 AS i FROM timeline_step
				WHERE kind = 'train' AND pid = %d AND tid = %d AND begin_ns BETWEEN %d AND %d AND %s)
			SELECT r.kind, r.name, CASE WHEN r.ts < l.until_ns AND l.i < %d THEN l.i * %d // %d END AS n, sum(r.ms), sum(r.seen)
			FROM (%s) r ASOF LEFT JOIN loop l ON r.ts >= l.begin_ns GROUP BY ALL`, w.pid, w.tid, w.from, w.until-1, chosen, looked, k, looked, part)
	}
	rows, err := db.Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var k Key
		var n sql.NullInt64
		var ms, seen sql.NullFloat64
		if err := rows.Scan(&k.Kind, &k.Name, &n, &ms, &seen); err != nil {
			return err
		}
		k.Name = strings.TrimSpace(k.Name)
		keys := []Key{k}
		if k.Kind == "kernel" {
			keys = append(keys, Key{"class", kernelclass.Of(k.Name)})
		}
		for _, k := range keys {
			switch {
			case !ofWhole:
				s.PerStep[k] += ms.Float64 / w.steps
			case n.Valid:
				s.PerStep[k] += seen.Float64 / float64(looked)
			}
			if n.Valid {
				s.inWindow(k, int(n.Int64), looked, seen.Float64)
			}
		}
	}
	return rows.Err()
}

// windows are how many n steps are divided into. A recording in slices has few steps with
// all their rows, so that a window of a row may be shorter than those of steps.Windows.
func windows(n int) int { return min(mostWindows, n/stepsAWindow) }

// windowOf is the window of the i-th of n steps.
func windowOf(i, n int) int { return i * windows(n) / n }

// inWindow adds milliseconds to a window of n steps.
func (s *Side) inWindow(k Key, window, n int, ms float64) {
	of := windows(n)
	if s.Windows == nil {
		s.Windows = map[Key][]float64{}
	}
	if s.Windows[k] == nil {
		s.Windows[k] = make([]float64, of)
	}
	from, to := (window*n+of-1)/of, ((window+1)*n+of-1)/of
	s.Windows[k][window] += ms / float64(to-from)
}

// windowsOf are a key's, as many as any has; zeros where it is not there.
func (s *Side) windowsOf(k Key) []float64 {
	if found := s.Windows[k]; found != nil {
		return found
	}
	most := 0
	for other, all := range s.Windows {
		if other.Kind == k.Kind {
			most = max(most, len(all))
		}
	}
	return make([]float64, most)
}

// noiseOf is by how much a row of two recordings differs by chance, in ms: its own windows
// within them (Welch), and what two recordings always differ by, which has nothing to do with
// that and so adds up by squares, beside what most operators differ by alike (machine, percent);
// never less than what a busy machine may have done. Not ok where there are too few steps.
func noiseOf(before, after *Side, k Key, machine float64) (ms float64, ok bool) {
	b, a := before.windowsOf(k), after.windowsOf(k)
	if min(len(b), len(a)) < 2 {
		return 0, false
	}
	size := max(before.PerStep[k], after.PerStep[k])
	ms = beside(math.Hypot(pairNoise/100*size, steps.Apart(b, a)), after.PerStep[k]-before.PerStep[k], machine/100*size)
	if before.What == "a step" {
		percent, _ := busy(before, after)
		ms = max(ms, percent/100*size)
	}
	return ms, true
}
