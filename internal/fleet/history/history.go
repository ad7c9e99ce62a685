// Package history compares a job with itself: with its own best time, or with itself so
// long ago. What grew is listed by function and by worker, from the patterns and the steps
// in a store.
package history

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/verdict"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// Errors of a comparison that cannot be made.
var (
	ErrNoJob     = errors.New("no steps")
	ErrNoHistory = errors.New("nothing to compare with")
)

// Question is what is compared.
type Question struct {
	Job   string        // "" for the job that was seen last
	Since time.Duration // how much before its newest step is now
	// Ago is how long before now the other time lies; 0 for the job's own best of the
	// same length in the Look before now.
	Ago  time.Duration
	Look time.Duration
	// FailOnPercent is by how much longer steps are a regression.
	FailOnPercent float64
}

// Result is the answer. Times are of steps, in milliseconds.
type Result struct {
	Verdict       verdict.Verdict `json:"verdict"`
	Sentence      string          `json:"sentence"`
	Job           string          `json:"job"`
	Now           Stretch         `json:"now"`
	Then          Stretch         `json:"then"`
	Method        string          `json:"method"` // best, or ago
	ChangePercent float64         `json:"change_percent"`
	NoisePercent  *float64        `json:"noise_percent"` // null where a side is a single minute
	FailOnPercent float64         `json:"fail_on_percent"`
	Workers       []Worker        `json:"workers"`
	Functions     []Function      `json:"functions"`
	Kernels       []Kernel        `json:"kernels"`
	Minutes       []Minute        `json:"minutes"`
	Notes         []string        `json:"notes"`
	meaning       string          // the analysis_version of the patterns of both sides
}

// Stretch is a time that is compared.
type Stretch struct {
	BeginNS int64   `json:"begin_ns"`
	EndNS   int64   `json:"end_ns"`
	Steps   int64   `json:"steps"` // of all workers
	Workers int     `json:"workers"`
	MeanMS  float64 `json:"mean_ms"`
}

// Minute is the mean step of all workers in a minute that has steps.
type Minute struct {
	BeginNS int64   `json:"begin_ns"`
	Steps   int64   `json:"steps"`
	MeanMS  float64 `json:"mean_ms"`
}

// Worker is what a step took it itself, without its waits in collectives. A worker is its
// rank; without ranks its host and process.
type Worker struct {
	Rank        *int32   `json:"rank"`
	Host        string   `json:"host"`
	PID         int32    `json:"pid"`
	ThenMS      *float64 `json:"then_ms"` // null where it was not there
	NowMS       *float64 `json:"now_ms"`
	Significant bool     `json:"significant"`
}

// Function is how much of a step of a worker, on average over workers, was a function's.
type Function struct {
	Class       string  `json:"class"`
	Name        string  `json:"function"`
	File        string  `json:"file"`
	Line        int32   `json:"line"`
	ThenMS      float64 `json:"then_ms"`
	NowMS       float64 `json:"now_ms"`
	Significant bool    `json:"significant"`
}

const minute = int64(time.Minute)

// Compare answers from an opened store (its directory v1).
func Compare(ctx context.Context, db *dataset.DB, q Question) (*Result, error) {
	r := &Result{Job: q.Job, FailOnPercent: q.FailOnPercent, Workers: []Worker{}, Functions: []Function{}, Kernels: []Kernel{},
		Notes: []string{}}
	if err := r.choose(ctx, db, q); err != nil {
		return nil, err
	}
	if err := r.chooseMeaning(ctx, db); err != nil {
		return nil, err
	}
	now, err := r.side(ctx, db, &r.Now)
	if err != nil {
		return nil, err
	}
	then, err := r.side(ctx, db, &r.Then)
	if err != nil {
		return nil, err
	}
	r.judge(then, now)
	r.workers(then, now)
	r.functions(then, now)
	if err := r.kernelsOfBoth(ctx, db); err != nil {
		return nil, err
	}
	r.Sentence = r.sentence()
	return r, nil
}

// choose settles the job, what is now, and what it is compared with.
func (r *Result) choose(ctx context.Context, db *dataset.DB, q Question) error {
	if len(db.Files("worker_step")) == 0 {
		return fmt.Errorf("%w in this store", ErrNoJob)
	}
	var newest sql.NullInt64
	if q.Job == "" {
		var job sql.NullString
		if err := db.Row(ctx, "SELECT max_by(job, begin_ns), max(begin_ns) FROM worker_step", nil, &job, &newest); err != nil {
			return fmt.Errorf("reading the store: %w", err)
		}
		r.Job = job.String
	} else if err := db.Row(ctx, "SELECT max(begin_ns) FROM worker_step WHERE job = ?", []any{q.Job}, &newest); err != nil {
		return fmt.Errorf("reading the store: %w", err)
	}
	if !newest.Valid {
		return fmt.Errorf("%w of job %q in this store", ErrNoJob, q.Job)
	}
	r.Now.EndNS = newest.Int64 + 1
	r.Now.BeginNS = r.Now.EndNS - q.Since.Nanoseconds()
	first := r.Now.BeginNS - q.Look.Nanoseconds()
	if q.Ago > 0 {
		r.Method = "ago"
		r.Then = Stretch{BeginNS: r.Now.BeginNS - q.Ago.Nanoseconds(), EndNS: r.Now.EndNS - q.Ago.Nanoseconds()}
		first = r.Then.BeginNS
	}
	if err := r.readMinutes(ctx, db, first); err != nil {
		return err
	}
	if q.Ago > 0 {
		return nil
	}
	r.Method = "best"
	then, ok := best(r.Minutes, r.Now.BeginNS, q.Since)
	if !ok {
		return fmt.Errorf("%w: job %q has no %d steps in %v before the last %v; try --since with less, or --ago", ErrNoHistory, r.Job, fewSteps,
			q.Look, q.Since)
	}
	r.Then = then
	return nil
}

// fewSteps of a worker are too few for a best time: chance makes the best of them.
const fewSteps = 50

// best is the stretch of length d before a time whose mean step is the shortest, of those
// that have enough steps.
func best(minutes []Minute, before int64, d time.Duration) (found Stretch, ok bool) {
	shortest := math.Inf(1)
	for i, m := range minutes {
		end := m.BeginNS + d.Nanoseconds()
		if end > before {
			break
		}
		var sum float64
		var n int64
		for _, other := range minutes[i:] {
			if other.BeginNS >= end {
				break
			}
			sum, n = sum+other.MeanMS*float64(other.Steps), n+other.Steps
		}
		if n >= fewSteps && sum/float64(n) < shortest {
			shortest, found, ok = sum/float64(n), Stretch{BeginNS: m.BeginNS, EndNS: end}, true
		}
	}
	return found, ok
}

// readMinutes reads the means of minutes from first on until the end of now.
func (r *Result) readMinutes(ctx context.Context, db *dataset.DB, first int64) error {
	rows, err := db.Query(ctx, fmt.Sprintf(`SELECT begin_ns // %d * %d AS minute, count(*), avg(period_ns) / 1e6 FROM worker_step
		WHERE job = ? AND begin_ns >= ? AND begin_ns < ? GROUP BY minute ORDER BY minute`, minute, minute), r.Job, first, r.Now.EndNS)
	if err != nil {
		return fmt.Errorf("reading steps: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var m Minute
		if err := rows.Scan(&m.BeginNS, &m.Steps, &m.MeanMS); err != nil {
			return fmt.Errorf("reading steps: %w", err)
		}
		r.Minutes = append(r.Minutes, m)
	}
	return rows.Err()
}

// worker names one across restarts where it has a rank.
type worker struct {
	rank int32 // -1 without
	host string
	pid  int32
}

func (w worker) key() worker {
	if w.rank >= 0 {
		return worker{rank: w.rank}
	}
	return w
}

// function names one across workers.
type function struct {
	class, name string
	id          int64
}

// side is one of the two times: means of minutes, which are what noise is measured by.
type side struct {
	periods   []float64            // of each minute, all workers, in ms
	own       map[worker][]float64 // of each minute, in ms
	who       map[worker]worker    // as it was seen last
	functions map[function][]float64
	places    map[function]Function
	minutes   int // that have patterns
}

func (r *Result) side(ctx context.Context, db *dataset.DB, of *Stretch) (*side, error) {
	s := &side{own: map[worker][]float64{}, who: map[worker]worker{}, functions: map[function][]float64{}, places: map[function]Function{}}
	if err := s.readSteps(ctx, db, r.Job, of); err != nil {
		return nil, err
	}
	if of.Steps == 0 {
		at := time.Unix(0, of.BeginNS).UTC().Format("2006-01-02 15:04Z")
		return nil, fmt.Errorf("%w: job %q has no steps in the %v from %s on", ErrNoHistory, r.Job, time.Duration(of.EndNS-of.BeginNS), at)
	}
	return s, s.readFunctions(ctx, db, r.Job, r.meaning, of)
}

// chooseMeaning settles which version of the analysis the patterns of both sides are of: a
// pattern does not mean the same in two of them. It is the latest of what is now.
func (r *Result) chooseMeaning(ctx context.Context, db *dataset.DB) error {
	if len(db.Files("pattern")) == 0 {
		return nil
	}
	const query = `SELECT coalesce(analysis_version, '') AS v FROM pattern WHERE job = ? AND begin_ns < ? AND end_ns > ? GROUP BY v
		ORDER BY len(v) DESC, v DESC`
	versions := func(of Stretch) (all []string, err error) {
		rows, err := db.Query(ctx, query, r.Job, of.EndNS, of.BeginNS)
		if err != nil {
			return nil, fmt.Errorf("reading the versions of patterns: %w", err)
		}
		defer rows.Close()
		for rows.Next() {
			var version string
			if err := rows.Scan(&version); err != nil {
				return nil, fmt.Errorf("reading the versions of patterns: %w", err)
			}
			all = append(all, version)
		}
		return all, rows.Err()
	}
	now, err := versions(r.Now)
	if err != nil || len(now) == 0 {
		return err
	}
	then, err := versions(r.Then)
	if err != nil {
		return err
	}
	r.meaning = now[0]
	if len(now) > 1 || len(then) > 1 || len(then) == 1 && then[0] != r.meaning {
		r.Notes = append(r.Notes, fmt.Sprintf("there are patterns of several versions of the analysis, which do not mean the same: functions "+
			"are compared by those of version %s",
			cmp.Or(r.meaning, "unknown")))
	}
	return nil
}

func (s *side) readSteps(ctx context.Context, db *dataset.DB, job string, of *Stretch) error {
	rows, err := db.Query(ctx, fmt.Sprintf(`SELECT begin_ns // %d AS minute, coalesce(rank, -1), host, pid, count(*), sum(period_ns) / 1e6,
		sum(greatest(period_ns - wait_ns, 0)) / 1e6
		FROM worker_step WHERE job = ? AND begin_ns >= ? AND begin_ns < ? GROUP BY ALL ORDER BY ALL`, minute), job, of.BeginNS, of.EndNS)
	if err != nil {
		return fmt.Errorf("reading steps: %w", err)
	}
	defer rows.Close()
	sums, counts := map[int64]float64{}, map[int64]int64{}
	var order []int64
	for rows.Next() {
		var at, n int64
		var w worker
		var period, own float64
		if err := rows.Scan(&at, &w.rank, &w.host, &w.pid, &n, &period, &own); err != nil {
			return fmt.Errorf("reading steps: %w", err)
		}
		if counts[at] == 0 {
			order = append(order, at)
		}
		sums[at], counts[at] = sums[at]+period, counts[at]+n
		of.Steps, of.MeanMS = of.Steps+n, of.MeanMS+period
		s.own[w.key()], s.who[w.key()] = append(s.own[w.key()], own/float64(n)), w
	}
	for _, at := range order {
		s.periods = append(s.periods, sums[at]/float64(counts[at]))
	}
	of.Workers = len(s.own)
	of.MeanMS /= float64(max(of.Steps, 1))
	return rows.Err()
}

// minutesOf begins a query of a job's patterns (p) of one basis and version of the analysis
// that lie in a time, with the minute of each, and of how many recordings each minute's are
// (windows.n). Its parameters are the job, the version, the time's end and its beginning.
func minutesOf(basis pattern.Basis) string {
	return fmt.Sprintf(`WITH p AS (SELECT *, begin_ns // %d * %d AS minute FROM pattern WHERE job = ? AND basis = '%s'
			AND coalesce(analysis_version, '') = ? AND begin_ns < ? AND end_ns > ?),
		windows AS (SELECT minute, count(DISTINCT (host, pid, begin_ns)) AS n FROM p GROUP BY minute)`, minute, minute, basis)
}

// readFunctions reads how much of a step each function had in each minute, on average over
// the workers: its share, times the mean step of the side. Workers differ, and a minute is
// of all of them: what minutes differ by is the noise.
func (s *side) readFunctions(ctx context.Context, db *dataset.DB, job, meaning string, of *Stretch) error {
	if len(db.Files("pattern")) == 0 {
		return nil
	}
	rows, err := db.Query(ctx, minutesOf(pattern.Sampled)+`
		SELECT (SELECT count(*) FROM windows), class, name, function_id, max(coalesce(file, '')), mode(coalesce(line, 0)), sum(beta) / max(n)
		FROM p JOIN windows USING (minute) GROUP BY minute, class, name, function_id ORDER BY minute,
		function_id`, job, meaning, of.EndNS, of.BeginNS)
	if err != nil {
		return fmt.Errorf("reading patterns: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var f function
		var place Function
		var beta float64
		if err := rows.Scan(&s.minutes, &f.class, &f.name, &f.id, &place.File, &place.Line, &beta); err != nil {
			return fmt.Errorf("reading patterns: %w", err)
		}
		s.functions[f] = append(s.functions[f], beta*of.MeanMS)
		s.places[f] = place
	}
	return rows.Err()
}

// padded are a function's values in all minutes: it took nothing where it was not seen.
func (s *side) padded(f function) []float64 {
	return append(slices.Clone(s.functions[f]), make([]float64, max(s.minutes-len(s.functions[f]), 0))...)
}

// judge says whether steps are longer now.
func (r *Result) judge(then, now *side) {
	if r.Then.MeanMS > 0 {
		r.ChangePercent = 100 * (r.Now.MeanMS - r.Then.MeanMS) / r.Then.MeanMS
	}
	size := math.Abs(r.ChangePercent)
	if len(then.periods) < 2 || len(now.periods) < 2 {
		r.Notes = append(r.Notes, "a side is a single minute: the noise is not known")
		r.Verdict = verdict.Neutral
		if size >= r.FailOnPercent {
			r.Verdict = verdict.Inconclusive
		}
		return
	}
	noise := 100 * steps.Apart(then.periods, now.periods) / r.Then.MeanMS
	r.NoisePercent = &noise
	switch {
	case size > noise && r.ChangePercent >= r.FailOnPercent:
		r.Verdict = verdict.Regression
	case size > noise && r.ChangePercent <= -r.FailOnPercent:
		r.Verdict = verdict.Improvement
	case size >= r.FailOnPercent:
		r.Verdict = verdict.Inconclusive
	default:
		r.Verdict = verdict.Neutral
	}
}

// grown says that two samples differ by more than chance, and by a percent of a step.
func (r *Result) grown(then, now []float64) bool {
	d := math.Abs(steps.Mean(now) - steps.Mean(then))
	return len(then) > 1 && len(now) > 1 && d > steps.Apart(then, now) && d > 0.01*r.Then.MeanMS
}

func (r *Result) workers(then, now *side) {
	all := map[worker]worker{}
	for _, s := range []*side{then, now} {
		for key, who := range s.who {
			all[key] = who
		}
	}
	for key, who := range all {
		w := Worker{Host: who.host, PID: who.pid}
		if who.rank >= 0 {
			w.Rank = &who.rank
		}
		for _, of := range []struct {
			values []float64
			mean   **float64
		}{{then.own[key], &w.ThenMS}, {now.own[key], &w.NowMS}} {
			if len(of.values) > 0 {
				mean := steps.Mean(of.values)
				*of.mean = &mean
			}
		}
		w.Significant = w.ThenMS != nil && w.NowMS != nil && r.grown(then.own[key], now.own[key])
		r.Workers = append(r.Workers, w)
	}
	slices.SortFunc(r.Workers, func(a, b Worker) int {
		return cmp.Or(cmp.Compare(b.growth(), a.growth()), cmp.Compare(rank(a), rank(b)), strings.Compare(a.Host, b.Host),
			cmp.Compare(a.PID, b.PID))
	})
}

func rank(w Worker) int32 {
	if w.Rank == nil {
		return math.MaxInt32
	}
	return *w.Rank
}

// growth of what a step takes it, in ms.
func (w Worker) growth() float64 {
	if w.ThenMS == nil || w.NowMS == nil {
		return math.Inf(-1)
	}
	return *w.NowMS - *w.ThenMS
}

func (r *Result) functions(then, now *side) {
	seen := map[function]Function{}
	for _, s := range []*side{then, now} {
		for f, place := range s.places {
			seen[f] = place
		}
	}
	for f, row := range seen {
		before, after := then.padded(f), now.padded(f)
		row.Class, row.Name, row.ThenMS, row.NowMS = f.class, f.name, steps.Mean(before), steps.Mean(after)
		row.Significant = r.grown(before, after)
		r.Functions = append(r.Functions, row)
	}
	switch {
	case then.minutes == 0 && now.minutes == 0:
		r.Notes = append(r.Notes, "there are steps and no patterns: which function changed is not told")
	case then.minutes == 0 || now.minutes == 0:
		r.Notes = append(r.Notes, "one side has no patterns: which function changed is not told")
	}
	slices.SortFunc(r.Functions, func(a, b Function) int {
		return cmp.Or(cmp.Compare(math.Abs(b.NowMS-b.ThenMS), math.Abs(a.NowMS-a.ThenMS)), strings.Compare(a.Name, b.Name),
			strings.Compare(a.File, b.File))
	})
}
