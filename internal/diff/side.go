// Package diff compares two recordings of a job: whether a step takes longer,
// whether that is more than noise, what changed, and whether the two can be
// compared at all.
package diff

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/kernelclass"
	"github.com/ebpfprof/ebpfprof/internal/lint"
	"github.com/ebpfprof/ebpfprof/internal/timeline"
)

// Side is what a recording is compared by.
type Side struct {
	Checks *lint.Result
	// Facts say what the recording is of, in the order of factNames.
	Facts [len(factNames)]string
	// Periods of the settled steps, in milliseconds; of a recording without steps
	// the time that its devices span, or the recording itself.
	Periods []float64
	What    string // that Periods are of
	// PerStep are milliseconds a step, by kind and key.
	PerStep map[Key]float64
	// Device says whether operators' times are of devices.
	Device bool
	// Waited is the share of the steps' time, in percent, in which the training thread was
	// ready to run and had no CPU: what a busy machine makes of the times.
	Waited float64
	// Repeats are other recordings of the same side: Periods has the mean of each
	// then, this one's first, and PerStep the means.
	Repeats []*Side

	held held
}

// Key names what is compared, the same in both recordings.
type Key struct{ Kind, Name string }

var factNames = [...]string{"job", "framework", "Python", "device", "processor", "ranks", "recorded by", "level"}

// Load reads a recording, by its steps if it has any.
func Load(ctx context.Context, db *dataset.DB) (*Side, error) { return load(ctx, db, true) }

// LoadWhole reads a recording as one stretch, for a comparison with one that has no
// steps.
func LoadWhole(ctx context.Context, db *dataset.DB) (*Side, error) { return load(ctx, db, false) }

func load(ctx context.Context, db *dataset.DB, bySteps bool) (*Side, error) {
	s := &Side{PerStep: map[Key]float64{}}
	var err error
	if s.Checks, err = lint.Run(ctx, db); err != nil {
		return nil, err
	}
	if err := s.facts(ctx, db); err != nil {
		return nil, err
	}
	w := window{}
	if bySteps {
		w, err = s.steps(ctx, db)
	}
	if err == nil && w.steps == 0 {
		w, err = s.whole(ctx, db)
	}
	if err != nil {
		return nil, err
	}
	if err := s.rows(ctx, db, w); err != nil {
		return nil, err
	}
	if err := s.memory(ctx, db); err != nil {
		return nil, err
	}
	return s, s.phases(ctx, db, w)
}

func (s *Side) facts(ctx context.Context, db *dataset.DB) error {
	var facts [len(factNames)]sql.NullString
	targets := make([]any, len(facts))
	for i := range facts {
		targets[i] = &facts[i]
	}
	// A command's program and script, without the paths of one machine.
	err := db.Row(ctx, `
		WITH p AS (SELECT * FROM process WHERE framework IS NOT NULL UNION ALL SELECT * FROM process WHERE (SELECT count(framework) FROM process) = 0)
		SELECT (SELECT string_agg(DISTINCT regexp_replace(command, '\S*/', '', 'g'), '; ') FROM p),
			(SELECT string_agg(DISTINCT trim(framework || ' ' || coalesce(framework_version, '')), ', ') FROM p), (SELECT string_agg(DISTINCT python_version, ', ') FROM p),
			(SELECT string_agg(DISTINCT device_name, ', ') FROM session), (SELECT string_agg(DISTINCT cpu_model, ', ') FROM session),
			(SELECT nullif(greatest(count(DISTINCT rank), max(world_size)), 0)::VARCHAR FROM process), (SELECT string_agg(DISTINCT source, ', ') FROM session),
			(SELECT string_agg(DISTINCT level, ', ') FROM session)`, nil, targets...)
	for i, f := range facts {
		s.Facts[i] = f.String
	}
	return err
}

// window is the stretch that rows are taken from, and how many steps lie in it.
type window struct {
	from, until int64
	steps       float64 // 0: there are none
	pid, tid    int
	each        []timeline.Stretch
}

func (s *Side) steps(ctx context.Context, db *dataset.DB) (window, error) {
	threads, err := timeline.Steps(ctx, db)
	if err != nil {
		return window{}, err
	}
	var best []timeline.Step
	var w window
	for _, t := range threads {
		if all := t.Training(); len(all) > len(best) {
			best, w.pid, w.tid = all, t.PID, t.TID
		}
	}
	if len(best) == 0 {
		return window{}, nil
	}
	s.What = "a step"
	contention, err := timeline.ContentionOf(ctx, db, w.pid, w.tid, best[0].Begin, best[len(best)-1].Until())
	if err != nil {
		return window{}, err
	}
	s.Waited = contention.Percent()
	for _, step := range best {
		s.Periods = append(s.Periods, float64(step.Period)/1e6)
		if step.Whole {
			w.each = append(w.each, timeline.Stretch{Begin: step.Begin, Until: step.Until()})
		}
	}
	w.from, w.until, w.steps = best[0].Begin, best[len(best)-1].Until(), float64(len(best))
	return w, nil
}

// phases of the steps that have all their rows.
func (s *Side) phases(ctx context.Context, db *dataset.DB, w window) error {
	took, err := timeline.Phases(ctx, db, dataset.Scan{Without: s.Checks.Without}, w.pid, w.tid, w.each)
	for _, m := range took {
		for phase, ns := range m {
			s.PerStep[Key{"phase", phase}] += float64(ns) / 1e6 / float64(len(took))
		}
	}
	return err
}

// whole takes the recording as one stretch: the time that its devices span, or all.
func (s *Side) whole(ctx context.Context, db *dataset.DB) (window, error) {
	var first, last sql.NullInt64
	var device bool
	err := db.Row(ctx, `SELECT coalesce(min(ts_ns) FILTER (layer = 'device'), min(ts_ns)),
		coalesce(max(ts_ns + duration_ns) FILTER (layer = 'device'), max(ts_ns + duration_ns)), coalesce(bool_or(layer = 'device'), false)
		FROM good_span WHERE layer <> 'device' OR category IN ('kernel', 'collective', 'copy', 'set')`, nil, &first, &last, &device)
	if err != nil {
		return window{}, err
	}
	if !first.Valid {
		return window{}, fmt.Errorf("there is nothing to compare: no span")
	}
	s.What = "the recording"
	if device {
		s.What = "the device's work, first to last"
	}
	s.Periods = []float64{float64(last.Int64-first.Int64) / 1e6}
	return window{from: math.MinInt64, until: math.MaxInt64, steps: 1}, nil
}

func (s *Side) rows(ctx context.Context, db *dataset.DB, w window) error {
	if err := db.Row(ctx, "SELECT count(*) > 0 FROM good_span WHERE layer = 'device' AND category IN ('kernel', 'collective', 'copy', 'set')", nil, &s.Device); err != nil {
		return err
	}
	in := fmt.Sprintf("ts_ns BETWEEN %d AND %d", w.from, w.until-1)
	queries := []string{`
		WITH inside AS (SELECT session_id, parent_id AS span_id, sum(duration_ns) AS ns FROM good_span WHERE layer <> 'device' AND parent_id IS NOT NULL GROUP BY ALL)
		SELECT 'operator', o.name, sum(greatest(o.duration_ns - coalesce(i.ns, 0), 0) * o.weight)::DOUBLE / 1e6
		FROM good_span o LEFT JOIN inside i USING (session_id, span_id) WHERE o.layer IN ('op', 'collective') AND o.` + in + ` GROUP BY ALL`, `
		SELECT 'line', coalesce(f.file, '') || coalesce(':' || f.line, '') || ' ' || coalesce(f."function", ''), sum(weight_ns)::DOUBLE / 1e6
		FROM sample x JOIN (SELECT DISTINCT ON (session_id, stack_id) session_id, stack_id, list_filter(frames, f -> f.kind = 'python')[1] AS f FROM stack) USING (session_id, stack_id)
		WHERE f IS NOT NULL AND x.state = 'on_cpu' AND ` + in + ` GROUP BY ALL`}
	if s.Device {
		queries[0] = `
		SELECT 'operator', coalesce(CASE WHEN p.layer IN ('op', 'autograd') THEN p.name WHEN g.layer IN ('op', 'autograd') THEN g.name END, 'no operator'), sum(d.duration_ns)::DOUBLE / 1e6
		FROM good_span d LEFT JOIN good_span l ON l.session_id = d.session_id AND l.span_id = d.launch_id
		LEFT JOIN good_span p ON p.session_id = d.session_id AND p.span_id = CASE WHEN l.layer IN ('op', 'autograd') THEN l.span_id ELSE l.parent_id END
		LEFT JOIN good_span g ON g.session_id = d.session_id AND g.span_id = p.parent_id
		WHERE d.layer = 'device' AND d.category IN ('kernel', 'collective', 'copy', 'set') AND d.` + in + ` GROUP BY ALL`
		queries = append(queries, `
		SELECT 'kernel', name, sum(duration_ns)::DOUBLE / 1e6 FROM good_span
		WHERE layer = 'device' AND category IN ('kernel', 'collective', 'copy', 'set') AND `+in+` GROUP BY ALL`)
	}
	for _, query := range queries {
		rows, err := db.Query(ctx, query)
		if err != nil {
			return err
		}
		for rows.Next() {
			var k Key
			var v sql.NullFloat64
			if err := rows.Scan(&k.Kind, &k.Name, &v); err != nil {
				rows.Close()
				return err
			}
			k.Name = strings.TrimSpace(k.Name)
			s.PerStep[k] += v.Float64 / w.steps
			if k.Kind == "kernel" {
				s.PerStep[Key{"class", kernelclass.Of(k.Name)}] += v.Float64 / w.steps
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
	}
	return nil
}
