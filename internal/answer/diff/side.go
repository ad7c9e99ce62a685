// Package diff compares two recordings of a job: whether a step takes longer,
// whether that is more than noise, what changed, and whether the two can be
// compared at all.
package diff

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
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
	// Between are those of Periods that no slice touched: the job ran without the probes of
	// detail in them. Sliced says whether there were slices at all.
	Between []float64
	Sliced  bool
	// Done are how long the steps took by when their work on the device was done, and Behind
	// says whether that was later than the host's end. Nil without such work.
	Done   []float64
	Behind bool
	// BeginNS is when the first of the steps began.
	BeginNS int64
	// PerStep are milliseconds a step, by kind and key.
	PerStep map[Key]float64
	// Windows are the same of each of some equal windows of the recording's steps: what a row
	// differs by within it. Nil where there are too few steps.
	Windows map[Key][]float64
	// Device says whether operators' times are of devices.
	Device bool
	// Waited is the share of the steps' time, in percent, in which the training thread was
	// ready to run and had no CPU: what a busy machine makes of the times.
	Waited float64
	// Repeats are other recordings of the same side: Periods has the mean of each
	// then, this one's first, and PerStep the means.
	Repeats []*Side

	held held
	// rates and the number of samples on a CPU, of a recording without steps; nil and 0 otherwise.
	rates   rates
	samples float64
	// factor is what times of rows in slices are multiplied with: of a step between slices
	// they have the share that they have of one in a slice. 0 where that is not known.
	factor float64
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
	// A command's program and script, without the paths of one machine; a framework without
	// a version only where no process has it with one (a child may end before it is read).
	err := db.Row(ctx, `
		WITH p AS (SELECT * FROM process WHERE framework IS NOT NULL UNION ALL SELECT * FROM process
		WHERE (SELECT count(framework) FROM process) = 0)
		SELECT (SELECT string_agg(DISTINCT regexp_replace(command, '\S*/', '', 'g'), '; ' ORDER BY regexp_replace(command, '\S*/', '', 'g'))
		FROM p),
			(SELECT string_agg(DISTINCT trim(framework || ' ' || coalesce(framework_version, '')), ', '
				ORDER BY trim(framework || ' ' || coalesce(framework_version, ''))) FROM p
				WHERE framework_version IS NOT NULL OR framework NOT IN (SELECT framework FROM p WHERE framework_version IS NOT NULL)),
				(SELECT string_agg(DISTINCT python_version, ', ' ORDER BY python_version) FROM p),
			(SELECT string_agg(DISTINCT device_name, ', ' ORDER BY device_name) FROM session),
			(SELECT string_agg(DISTINCT cpu_model, ', ' ORDER BY cpu_model) FROM session),
			(SELECT nullif(greatest(count(DISTINCT rank), max(world_size)), 0)::VARCHAR FROM process),
			(SELECT string_agg(DISTINCT source, ', ' ORDER BY source) FROM session),
			(SELECT string_agg(DISTINCT level, ', ' ORDER BY level) FROM session)`, nil, targets...)
	for i, f := range facts {
		s.Facts[i] = f.String
	}
	return err
}

var errNothing = errors.New("there is nothing to compare: neither calls nor samples")

// window is the stretch that rows are taken from, and how many steps lie in it.
type window struct {
	from, until int64
	steps       float64 // 0: there are none
	pid, tid    int
	each        []timeline.Stretch // steps with all their rows
	all         []timeline.Stretch // settled steps
}

func (s *Side) steps(ctx context.Context, db *dataset.DB) (window, error) {
	threads, err := timeline.Steps(ctx, db)
	if err != nil {
		return window{}, err
	}
	var best []timeline.Step
	var thread timeline.Thread
	var w window
	for _, t := range threads {
		if all := t.Training(); len(all) > len(best) {
			best, thread, w.pid, w.tid = all, t, t.PID, t.TID
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
	s.Sliced, s.BeginNS = thread.InSlices, best[0].Begin
	for _, step := range best {
		s.Periods = append(s.Periods, float64(step.Period)/1e6)
		if s.Sliced && !step.Sliced {
			s.Between = append(s.Between, float64(step.Period)/1e6)
		}
		stretch := timeline.Stretch{Begin: step.Begin, Until: step.Until()}
		if w.all = append(w.all, stretch); step.Whole {
			w.each = append(w.each, stretch)
		}
	}
	if stretched, ok := timeline.StretchedOf(best); ok {
		whole := 0.0
		for _, e := range w.each {
			whole += float64(e.Until-e.Begin) / 1e6 / float64(len(w.each))
		}
		s.factor = stretched.BetweenMS / whole
	}
	w.from, w.until, w.steps = best[0].Begin, best[len(best)-1].Until(), float64(len(best))
	return w, s.completions(ctx, db, w, best)
}

// phases of the steps that have all their rows.
func (s *Side) phases(ctx context.Context, db *dataset.DB, w window) error {
	took, err := timeline.Phases(ctx, db, dataset.Scan{Instead: s.Checks.Instead}, w.pid, w.tid, w.each, false)
	for i, m := range took {
		for phase, ns := range m {
			k, ms := Key{"phase", phase}, float64(ns)/1e6
			s.PerStep[k] += ms / float64(len(took))
			if windows(len(took)) > 0 {
				s.inWindow(k, windowOf(i, len(took)), len(took), ms)
			}
		}
	}
	return err
}

// whole takes a recording without steps: seconds of a running job, or of a trace the time that its devices span.
func (s *Side) whole(ctx context.Context, db *dataset.DB) (window, error) {
	if live, err := live(ctx, db); live || err != nil {
		w, err := s.bySeconds(ctx, db)
		if err == nil && w.steps == 0 {
			err = errNothing
		}
		return w, err
	}
	var first, last sql.NullInt64
	var device bool
	err := db.Row(ctx, `SELECT coalesce(min(ts_ns) FILTER (layer = 'device'), min(ts_ns)),
		coalesce(max(ts_ns + duration_ns) FILTER (layer = 'device'), max(ts_ns + duration_ns)), coalesce(bool_or(layer = 'device'), false)
		FROM good_span WHERE layer <> 'device' OR category IN ('kernel', 'collective', 'copy', 'set')`, nil, &first, &last, &device)
	if err != nil {
		return window{}, err
	}
	if !first.Valid {
		return window{}, errNothing
	}
	s.What = "the recording"
	if device {
		s.What = "the device's work, first to last"
	}
	s.Periods = []float64{float64(last.Int64-first.Int64) / 1e6}
	return window{from: math.MinInt64, until: math.MaxInt64, steps: 1}, nil
}
