package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/localise"
)

// A job is compared with its own normal time beside its peers: that shows what has become
// slow on all workers, and the only thing that one or two workers can be compared with.
// Normal are the minutes of the day before in which steps took no more than a twentieth
// longer than in the best of them, and only a job that is slower now than that has a
// finding by it.

const (
	ownDay    = 24 * time.Hour
	ownMinute = time.Minute
	ownSlower = 1.05
	// ownSteps is how many steps a minute must have to say something.
	ownSteps = 10
)

// OwnTime is the job's own normal time.
type OwnTime struct {
	Minutes  int     `json:"minutes"`
	BeginNS  int64   `json:"begin_ns"` // of the first of them
	EndNS    int64   `json:"end_ns"`
	NormalMS float64 `json:"normal_ms"` // a step's mean in them
	NowMS    float64 `json:"now_ms"`
	Slower   bool    `json:"slower"` // now, by more than a twentieth
}

// compareOwn adds what has grown since the job's normal time.
func (r *Report) compareOwn(ctx context.Context, db Source, of meaning) error {
	minutes, err := r.normal(ctx, db)
	if err != nil || r.Own == nil || !r.Own.Slower {
		return err
	}
	var places []string
	for _, m := range minutes {
		places = append(places, fmt.Sprint(m))
	}
	condition := fmt.Sprintf("job = ? AND coalesce(analysis_version, '') = ? AND CAST(floor((begin_ns + (end_ns - begin_ns) / 2) / %d) AS "+
		"BIGINT) IN (%s) AND end_ns < ?",
		ownMinute.Nanoseconds(), strings.Join(places, ", "))
	before, _, err := queryPatterns(ctx, db, condition, of.job, of.version, r.BeginNS)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("of its own normal time there are no patterns of version %s of the analysis: what has grown "+
			"since then is not told", orUnknown(of.version)))
	}
	for _, f := range localise.CompareOwn(r.table, before) {
		r.addOwn(r.finding(&f))
	}
	return nil
}

// addOwn adds a finding, or what it says to the one that peers have shown already. It is
// news, and stands before what all workers have; symptoms are last.
func (r *Report) addOwn(f Finding) {
	was := f.PeersBeta
	f.OwnBeta = &was
	for i := range r.Findings {
		known := &r.Findings[i]
		if known.Kind == string(localise.Special) && known.Function == f.Function && known.Stack == f.Stack && slices.Contains(f.Workers,
			known.Workers[0]) {
			known.OwnBeta = &was
			if len(f.Workers) == 1 {
				return
			}
		}
	}
	at := slices.IndexFunc(r.Findings, func(known Finding) bool {
		return known.Cause.Symptom || known.Kind == string(localise.Common) && !f.Cause.Symptom
	})
	if at < 0 || f.Cause.Symptom {
		at = len(r.Findings)
	}
	r.Findings = slices.Insert(r.Findings, at, f)
}

// normal finds the minutes of the job's normal time.
func (r *Report) normal(ctx context.Context, db Source) (minutes []int64, err error) {
	if len(db.Files("worker_step")) == 0 {
		return nil, nil
	}
	now, count := 0.0, 0
	for _, of := range r.steps {
		for i := range of {
			now += float64(of[i].PeriodNS)
		}
		count += len(of)
	}
	rows, err := db.Query(ctx, fmt.Sprintf(`SELECT CAST(floor(begin_ns / %d) AS BIGINT) AS minute, avg(period_ns), count(*) FROM worker_step
		WHERE job = ? AND begin_ns >= ? AND begin_ns + period_ns < ? GROUP BY 1 HAVING count(*) >= %d
		ORDER BY 1`, ownMinute.Nanoseconds(), ownSteps),
		r.Job, r.BeginNS-ownDay.Nanoseconds(), r.BeginNS)
	if err != nil {
		return nil, fmt.Errorf("reading the steps of the day before: %w", err)
	}
	defer rows.Close()
	type minute struct {
		number, steps int64
		mean          float64
	}
	var all []minute
	best := 0.0
	for rows.Next() {
		var m minute
		if err := rows.Scan(&m.number, &m.mean, &m.steps); err != nil {
			return nil, fmt.Errorf("reading the steps of the day before: %w", err)
		}
		if all = append(all, m); best == 0 || m.mean < best {
			best = m.mean
		}
	}
	if err := rows.Err(); err != nil || len(all) == 0 || count == 0 {
		return nil, err
	}
	own := OwnTime{NowMS: now / float64(count) / 1e6}
	sum, steps := 0.0, 0.0
	for _, m := range all {
		if m.mean <= ownSlower*best {
			minutes = append(minutes, m.number)
			sum, steps = sum+m.mean*float64(m.steps), steps+float64(m.steps)
		}
	}
	own.Minutes, own.NormalMS = len(minutes), sum/steps/1e6
	own.BeginNS, own.EndNS = minutes[0]*ownMinute.Nanoseconds(), (minutes[len(minutes)-1]+1)*ownMinute.Nanoseconds()
	own.Slower = own.NowMS > ownSlower*own.NormalMS
	r.Own = &own
	return minutes, nil
}
