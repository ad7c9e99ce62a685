package report

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// Failure is what an agent saw go wrong in a process of the job.
type Failure struct {
	AtNS       int64  `json:"ts_ns"`
	Kind       string `json:"kind"` // out_of_memory, runtime_error, died
	Host       string `json:"host"`
	PID        int32  `json:"pid"`
	Rank       *int32 `json:"rank"`
	Sentence   string `json:"sentence"`
	Place      string `json:"place"`        // in the job's own code; "" is not known
	Dump       string `json:"last_moments"` // a dataset on the host; "" without
	StepsAfter bool   `json:"steps_after"`  // the job has gone on
}

// mostFailures bounds what is read of them: in a store others may write.
const mostFailures = 1000

// readFailures reads what agents saw, the latest first; as hangs, from before what is compared on.
func (r *Report) readFailures(ctx context.Context, db Source) error {
	r.Failures = []Failure{}
	if len(db.Files(store.FailureTable)) == 0 {
		return nil
	}
	var last sql.NullInt64
	if len(db.Files("worker_step")) > 0 {
		if err := db.Row(ctx, "SELECT max(begin_ns) FROM worker_step WHERE job = ?", []any{r.Job}, &last); err != nil {
			return fmt.Errorf("reading steps: %w", err)
		}
	}
	rows, err := db.Query(ctx, fmt.Sprintf(`SELECT ts_ns, kind, host, pid, rank, sentence, place, dump FROM failure
		WHERE job = ? AND ts_ns >= ? AND ts_ns <= ? ORDER BY ts_ns DESC, pid LIMIT %d`, mostFailures),
		r.Job, r.BeginNS-hangsBefore.Nanoseconds(), r.EndNS+hangsBefore.Nanoseconds())
	if err != nil {
		return fmt.Errorf("reading failures: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var f Failure
		var rank sql.NullInt32
		if err := rows.Scan(&f.AtNS, &f.Kind, &f.Host, &f.PID, &rank, &f.Sentence, &f.Place, &f.Dump); err != nil {
			return fmt.Errorf("reading failures: %w", err)
		}
		if rank.Valid {
			f.Rank = &rank.Int32
		}
		f.StepsAfter = last.Valid && last.Int64 > f.AtNS
		r.Failures = append(r.Failures, f)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading failures: %w", err)
	}
	for i := range r.Failures {
		if i == namedJobs {
			r.Notes = append(r.Notes, fmt.Sprintf("%d failures more: table failure", len(r.Failures)-i))
			break
		}
		r.Notes = append(r.Notes, "at "+clock(r.Failures[i].AtNS)+" "+r.Failures[i].text())
	}
	return nil
}

func (f *Failure) text() string {
	text := f.Sentence
	if f.Place != "" {
		text += ", at " + f.Place
	}
	if f.Dump != "" {
		text += fmt.Sprintf("; its last moments are on %s in %s", f.Host, f.Dump)
	}
	return text
}

// failed begins the verdict on a job that has made no step since something failed in it: of
// those the first, which the others may be of.
func (r *Report) failed() string {
	first := -1
	for i, f := range r.Failures {
		if f.StepsAfter {
			break
		}
		first = i
	}
	if first < 0 {
		return ""
	}
	f := &r.Failures[first]
	return fmt.Sprintf("At %s %s. No step of the job was seen since. ", clock(f.AtNS), f.text())
}
