// Package report answers who is slow, in what function and why, from the patterns in
// a store. What SQL can say is SQL over views that DuckDB and Spark have alike; what
// it can't (medians of peers, the replay) is Go over the rows that SQL has made small.
package report

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/whatif"
	"github.com/ebpfprof/ebpfprof/internal/fleet/localise"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// ErrNoJob is returned where the store has no patterns of the job.
var ErrNoJob = errors.New("no patterns")

// Question is what a report is about.
type Question struct {
	Job   string        // "" for the job that was seen last
	Since time.Duration // before the newest row; 0 for the last minute
}

// Report is the answer. Shares are from 0 to 1.
type Report struct {
	Verdict  string           `json:"verdict"`
	Job      string           `json:"job"`
	BeginNS  int64            `json:"begin_ns"`
	EndNS    int64            `json:"end_ns"`
	Windows  int              `json:"windows"`
	Workers  []WorkerSummary  `json:"workers"`
	Method   string           `json:"method"`
	Findings []Finding        `json:"findings"`
	WhatIf   *whatif.Analysis `json:"what_if"` // null where steps of all workers do not line up
	Transfer *Transfer        `json:"transfer"`
	// Own is the job's normal time, the second thing that workers are compared with; null
	// where the store has none.
	Own *OwnTime `json:"own"`
	// Failures are what went wrong in processes, the latest first.
	Failures []Failure `json:"failures"`
	// Hangs are the times at which ranks were blocked, the latest first.
	Hangs []Hang `json:"hangs"`
	// Clocks are how far the hosts' are apart; empty of one host, or where no collective
	// says it.
	Clocks []Clock           `json:"clocks"`
	Notes  []string          `json:"notes"`
	steps  [][]pattern.Step  // by worker
	table  []pattern.Pattern // for pictures
}

// WorkerSummary is a worker's steps.
type WorkerSummary struct {
	localise.Worker
	Steps    int      `json:"steps"`
	MeanMS   float64  `json:"mean_ms"`  // of a step's period
	WaitMS   float64  `json:"wait_ms"`  // in collectives, a step
	LoadMS   *float64 `json:"load_ms"`  // in the data loader, a step; null where the loader is not seen
	Coverage float64  `json:"coverage"` // share of the time that functions account for
	Observed float64  `json:"observed_s"`
}

// Finding is a row of the answer.
type Finding struct {
	Kind        string            `json:"kind"`
	Workers     []localise.Worker `json:"workers"`
	Class       string            `json:"class"`
	Function    string            `json:"function"`
	File        string            `json:"file"`
	Line        int32             `json:"line"`
	Stack       string            `json:"stack"`
	Caller      string            `json:"caller"` // of an operator or a copy; "" of others
	Beta        float64           `json:"beta"`
	BetaLo      float64           `json:"beta_lo"`
	BetaHi      float64           `json:"beta_hi"`
	PeersBeta   float64           `json:"peers_beta"`
	Mu          float64           `json:"mu"`
	Sigma       float64           `json:"sigma"`
	Wait        string            `json:"wait"`
	D           float64           `json:"d"`
	Delta       float64           `json:"delta"`
	Score       float64           `json:"score"`
	Cause       localise.Cause    `json:"cause"`
	Sentence    string            `json:"sentence"`
	EvidenceSQL string            `json:"evidence_sql"`
	OwnBeta     *float64          `json:"own_beta"` // in the worker's own normal time; null where that is not known, or it was no less
	Feedback    []Feedback        `json:"feedback"` // the users' feedback on such findings, the newest first
}

// Transfer is what travelled instead of the events.
type Transfer struct {
	EventBytes   int64   `json:"event_bytes"`
	PatternBytes int64   `json:"pattern_bytes"`
	Factor       float64 `json:"factor"`
}

// Source is where a report asks: a dataset.DB, or Spark. Both are asked the same.
type Source interface {
	Query(ctx context.Context, sql string, args ...any) (*sql.Rows, error)
	Row(ctx context.Context, sql string, args []any, targets ...any) error
	Files(table string) []string // without any the table is not there
}

// Build answers from an opened store (its directory v1).
func Build(ctx context.Context, db Source, q Question) (*Report, error) {
	r := &Report{Job: q.Job, Notes: []string{}}
	if err := r.choose(ctx, db, q); err != nil {
		return nil, err
	}
	of, err := r.readPatterns(ctx, db)
	if err != nil {
		return nil, err
	}
	if err := r.readSteps(ctx, db); err != nil {
		return nil, err
	}
	if err := r.transfer(ctx, db); err != nil {
		return nil, err
	}
	if err := r.readHangs(ctx, db); err != nil {
		return nil, err
	}
	if err := r.readFailures(ctx, db); err != nil {
		return nil, err
	}
	found := localise.Compare(r.table)
	r.Method, r.Notes = found.Method, append(r.Notes, found.Notes...)
	for i := range found.Findings {
		r.Findings = append(r.Findings, r.finding(&found.Findings[i]))
	}
	if err := r.compareOwn(ctx, db, of); err != nil {
		return nil, err
	}
	if err := r.readFeedback(ctx, db); err != nil {
		return nil, err
	}
	r.summarize(found.Workers)
	r.setClocks()
	r.replay()
	r.Verdict = r.failed() + r.hanging() + r.verdict()
	return r, nil
}

// lastCapture is how much of the newest is compared where the start is unknown: an
// agent that is always on has no pause at which a capture would begin.
const lastCapture = 60 * time.Second

// choose settles the job and the time.
func (r *Report) choose(ctx context.Context, db Source, q Question) error {
	var newest sql.NullInt64
	if q.Job == "" {
		jobs, err := jobsOf(ctx, db)
		if err != nil {
			return err
		}
		if len(jobs) > 0 {
			r.Job, newest = jobs[0].name, sql.NullInt64{Int64: jobs[0].newest, Valid: true}
		}
		r.noteOthers(jobs)
	} else if err := db.Row(ctx, "SELECT max(end_ns) FROM pattern WHERE job = ?", []any{q.Job}, &newest); err != nil {
		return fmt.Errorf("reading the store: %w", err)
	}
	if !newest.Valid {
		return fmt.Errorf("%w of job %q in this store", ErrNoJob, q.Job)
	}
	r.EndNS = newest.Int64
	if q.Since > 0 {
		r.BeginNS = r.EndNS - q.Since.Nanoseconds()
		return nil
	}
	r.BeginNS = r.EndNS - lastCapture.Nanoseconds()
	return nil
}

// namedJobs is how many jobs, or hosts, a note names.
const namedJobs = 5

// noteOthers says of a report that was asked for no job which it did not choose.
func (r *Report) noteOthers(jobs []lastSeen) {
	var others []string
	for _, j := range jobs {
		if j.name != r.Job {
			others = append(others, j.name)
		}
	}
	if len(others) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("this is the job that was seen last; --job has the others: %s", some(others)))
	}
}

// lastSeen is a job, and when it was.
type lastSeen struct {
	name   string
	newest int64
}

// Jobs are the jobs that an opened store has patterns of, the latest first.
func Jobs(ctx context.Context, db Source) (names []string, err error) {
	jobs, err := jobsOf(ctx, db)
	for _, j := range jobs {
		names = append(names, j.name)
	}
	return names, err
}

func jobsOf(ctx context.Context, db Source) (jobs []lastSeen, err error) {
	rows, err := db.Query(ctx, "SELECT job, max(end_ns) FROM pattern GROUP BY job ORDER BY max(end_ns) DESC, job")
	if err != nil {
		return nil, fmt.Errorf("reading the store: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var j lastSeen
		if err := rows.Scan(&j.name, &j.newest); err != nil {
			return nil, fmt.Errorf("reading the store: %w", err)
		}
		jobs = append(jobs, j)
	}
	return jobs, rows.Err()
}

// readPatterns reads those of the time, of all versions of the analysis: each query opens all files of a
// store, which takes as long as what it asks for.
func (r *Report) readPatterns(ctx context.Context, db Source) (meaning, error) {
	table, versions, err := queryPatterns(ctx, db, "job = ? AND end_ns >= ? AND begin_ns <= ?", r.Job, r.BeginNS, r.EndNS)
	if err != nil {
		return meaning{}, err
	}
	of, err := r.chooseMeaning(table, versions)
	r.table = table[:0]
	for i := range table {
		if versions[i] == of.version {
			r.table = append(r.table, table[i])
		}
	}
	return of, err
}

// queryPatterns reads the patterns for which a condition holds, and the version of the analysis of each.
func queryPatterns(ctx context.Context, db Source, condition string, values ...any) (table []pattern.Pattern, versions []string,
	err error) {
	rows, err := db.Query(ctx, `SELECT host, pid, coalesce(rank, -1), begin_ns, end_ns, observed_ns, coverage, function_id, class, name,
		coalesce(stack, ''), coalesce(file, ''), coalesce(line, 0), basis, beta, beta_lo, beta_hi, mu, sigma, resource, count,
		coalesce(mean_ns, 0), coalesce(p99_ns, 0), coalesce(longest_ns, 0), preempted, stopped, coalesce(wait, ''), job,
		coalesce(analysis_version, '')
		FROM pattern WHERE `+condition+` ORDER BY 3, host, pid, begin_ns, basis, function_id`, values...)
	if err != nil {
		return nil, nil, fmt.Errorf("reading patterns: %w", err)
	}
	defer rows.Close()
	once := texts{}
	for rows.Next() {
		var p pattern.Pattern
		var function int64
		var host, class, name, stack, file, basis, resource, wait, job, version sql.RawBytes
		if err := rows.Scan(&host, &p.PID, &p.Rank, &p.BeginNS, &p.EndNS, &p.ObservedNS, &p.Coverage, &function, &class, &name,
			&stack, &file, &p.Line, &basis, &p.Beta, &p.BetaLo, &p.BetaHi, &p.Mu, &p.Sigma, &resource, &p.Count,
			&p.MeanNS, &p.P99NS, &p.LongestNS, &p.Preempted, &p.Stopped, &wait, &job, &version); err != nil {
			return nil, nil, fmt.Errorf("reading patterns: %w", err)
		}
		p.Job, p.Host, p.Name, p.Stack, p.File = once.of(job), once.of(host), once.of(name), once.of(stack), once.of(file)
		p.Function, p.Class, p.Basis, p.Resource, p.Wait = uint64(function), pattern.Class(once.of(class)), pattern.Basis(once.of(basis)),
			once.of(resource), once.of(wait)
		table, versions = append(table, p), append(versions, once.of(version))
	}
	return table, versions, rows.Err()
}

// texts has each text once: thousands of workers have the same functions.
type texts map[string]string

func (t texts) of(raw []byte) string {
	text, known := t[string(raw)]
	if !known {
		text = string(raw)
		t[text] = clip(text)
		text = t[text]
	}
	return text
}

// mostText bounds a text of a store, in bytes: real stacks are shorter, and anybody may
// have written it.
const mostText = 16 << 10

func clip(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + "…"
}

func (r *Report) readSteps(ctx context.Context, db Source) error {
	if len(db.Files("worker_step")) == 0 {
		r.Notes = append(r.Notes, "the store has no steps of this job: how long they take is not told")
		return nil
	}
	exits, err := exitColumns(ctx, db)
	if err != nil {
		return err
	}
	rows, err := db.Query(ctx, `SELECT host, pid, coalesce(rank, -1), number, begin_ns, period_ns, wait_ns, coalesce(load_ns, -1),
		`+exits+` FROM worker_step
		WHERE job = ? AND begin_ns >= ? AND begin_ns <= ? ORDER BY 3, 1, 2, begin_ns`, r.Job, r.BeginNS, r.EndNS)
	if err != nil {
		return fmt.Errorf("reading steps: %w", err)
	}
	defer rows.Close()
	last := localise.Worker{PID: -1}
	for rows.Next() {
		var s pattern.Step
		var group, number, exit sql.NullInt64
		if err := rows.Scan(&s.Host, &s.PID, &s.Rank, &s.Number, &s.BeginNS, &s.PeriodNS, &s.WaitNS, &s.LoadNS, &group, &number,
			&exit); err != nil {
			return fmt.Errorf("reading steps: %w", err)
		}
		s.Host = clip(s.Host)
		if group.Valid && number.Valid && exit.Valid {
			s.Exit = &pattern.Exit{Communicator: group.Int64, Number: number.Int64, NS: exit.Int64}
		}
		if w := (localise.Worker{Host: s.Host, PID: s.PID, Rank: s.Rank}); w != last {
			r.steps, last = append(r.steps, nil), w
		}
		r.steps[len(r.steps)-1] = append(r.steps[len(r.steps)-1], s)
	}
	return rows.Err()
}

func (r *Report) transfer(ctx context.Context, db Source) error {
	if len(db.Files("upload")) == 0 {
		return nil
	}
	var t Transfer
	var lost int64
	err := db.Row(ctx, `SELECT CAST(coalesce(sum(event_bytes), 0) AS BIGINT), CAST(coalesce(sum(pattern_bytes), 0) AS BIGINT),
		CAST(coalesce(sum(lost_workers + lost_functions), 0) AS BIGINT) FROM upload WHERE job = ? AND begin_ns >= ? AND begin_ns <= ?`,
		[]any{r.Job, r.BeginNS, r.EndNS}, &t.EventBytes, &t.PatternBytes, &lost)
	if err != nil {
		return fmt.Errorf("reading uploads: %w", err)
	}
	if t.PatternBytes > 0 {
		t.Factor = float64(t.EventBytes) / float64(t.PatternBytes)
		r.Transfer = &t
	}
	if lost > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d events were of workers or functions beyond the limits and count as other functions", lost))
	}
	return nil
}

func (r *Report) finding(f *localise.Finding) Finding {
	p := &f.Pattern
	return Finding{
		Kind: string(f.Kind), Workers: f.Workers, Class: string(p.Class), Function: p.Name, File: p.File, Line: p.Line, Stack: p.Stack,
		Caller: p.Caller(),
		Beta:   p.Beta, BetaLo: p.BetaLo, BetaHi: p.BetaHi, PeersBeta: f.PeersBeta, Mu: p.Mu, Sigma: p.Sigma, Wait: p.Wait,
		Feedback: []Feedback{}, D: f.D, Delta: f.Delta, Score: f.Score, Cause: f.Cause, Sentence: f.Sentence,
		EvidenceSQL: fmt.Sprintf("SELECT rank, host, pid, begin_ns, beta, beta_lo, beta_hi, mu, sigma, count, wait FROM pattern "+
			"WHERE function_id = %d AND basis = '%s' AND end_ns >= %d AND begin_ns <= %d ORDER BY beta DESC", int64(p.Function), p.Basis, r.BeginNS,
			r.EndNS),
	}
}

func (r *Report) summarize(workers []localise.Worker) {
	windows := map[int64]bool{}
	type seen struct {
		begin    int64
		observed int64
		coverage float64
	}
	observed := map[localise.Worker]map[int64]seen{}
	for _, p := range r.table {
		windows[p.BeginNS/int64(10e9)] = true
		w := localise.Worker{Host: p.Host, PID: p.PID, Rank: p.Rank}
		if observed[w] == nil {
			observed[w] = map[int64]seen{}
		}
		observed[w][p.BeginNS] = seen{p.BeginNS, p.ObservedNS, p.Coverage}
	}
	type process struct {
		host string
		pid  int32
	}
	stepsOf := map[process][][]pattern.Step{}
	for _, steps := range r.steps {
		p := process{steps[0].Host, steps[0].PID}
		stepsOf[p] = append(stepsOf[p], steps)
	}
	for _, w := range workers {
		s := WorkerSummary{Worker: w}
		var total, covered float64
		for _, o := range observed[w] {
			total += float64(o.observed)
			covered += float64(o.observed) * o.coverage
		}
		s.Observed, s.Coverage = total/1e9, covered/math.Max(total, 1)
		r.Windows = max(r.Windows, len(observed[w]))
		for _, steps := range stepsOf[process{w.Host, w.PID}] {
			s.Steps = len(steps)
			loaded, seen := 0.0, false
			for _, st := range steps {
				s.MeanMS += float64(st.PeriodNS) / 1e6 / float64(len(steps))
				s.WaitMS += float64(st.WaitNS) / 1e6 / float64(len(steps))
				if st.LoadNS >= 0 {
					loaded, seen = loaded+float64(st.LoadNS)/1e6/float64(len(steps)), true
				}
			}
			if seen {
				s.LoadMS = &loaded
			}
		}
		r.Workers = append(r.Workers, s)
	}
}

// verdict is the first finding that is no symptom, and what fixing it would bring.
func (r *Report) verdict() string {
	gain := ""
	if r.WhatIf != nil && r.WhatIf.S >= 1.03 {
		gain = fmt.Sprintf(" Were all workers alike, a step would take %.0f %% less (S = %.2f).", 100*(1-1/r.WhatIf.S), r.WhatIf.S)
	}
	for _, kind := range []localise.Kind{localise.Special, localise.Own} {
		first := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Kind == string(kind) && !f.Cause.Symptom })
		if first >= 0 {
			return upper(r.Findings[first].Sentence) + "." + gain
		}
	}
	if r.WhatIf != nil && r.WhatIf.S >= 1.03 {
		w := r.WhatIf.Workers[0]
		return fmt.Sprintf("No function tells a worker from its peers, and rank %d is slower than they are.%s", w.Rank, gain)
	}
	for _, f := range r.Findings {
		if !f.Cause.Symptom {
			return upper(f.Sentence) + "." + gain
		}
	}
	return "No worker and no function stands out." + gain
}

func upper(s string) string {
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		return string(s[0]-'a'+'A') + s[1:]
	}
	return s
}
