package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// mostFeedback bounds what is read: who may write into a store must not fill memory.
const mostFeedback = 1000

// Feedback is what a user said of a finding of the same function, of this kind and job.
type Feedback struct {
	AtNS   int64  `json:"ts_ns"`
	Author string `json:"author"`
	Wrong  bool   `json:"wrong"`
	Text   string `json:"text"`
}

// readFeedback gives each finding the users' feedback on it, the newest first. Nothing is left
// out for that: a finding that was wrong once may be right now.
func (r *Report) readFeedback(ctx context.Context, db Source) error {
	if len(db.Files(store.FeedbackTable)) == 0 {
		return nil
	}
	rows, err := db.Query(ctx, `SELECT ts_ns, author, wrong, coalesce(text, ''), kind, class, function, coalesce(file, '')
		FROM feedback WHERE job = ? ORDER BY ts_ns DESC LIMIT `+fmt.Sprint(mostFeedback), r.Job)
	if err != nil {
		return fmt.Errorf("reading feedback: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var said Feedback
		var kind, class, function, file string
		if err := rows.Scan(&said.AtNS, &said.Author, &said.Wrong, &said.Text, &kind, &class, &function, &file); err != nil {
			return fmt.Errorf("reading feedback: %w", err)
		}
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Kind == kind && f.Class == class && f.Function == function && f.File == file {
				f.Feedback = append(f.Feedback, said)
			}
		}
	}
	return rows.Err()
}

// Said is a finding's feedback in a few words, "" without any.
func (f Finding) Said() string {
	if len(f.Feedback) == 0 {
		return ""
	}
	wrong := 0
	for _, s := range f.Feedback {
		if s.Wrong {
			wrong++
		}
	}
	text := fmt.Sprintf("said to be wrong %d of %d times", wrong, len(f.Feedback))
	if wrong == 0 {
		text = fmt.Sprintf("said to be right %d times", len(f.Feedback))
	}
	if i := slices.IndexFunc(f.Feedback, func(s Feedback) bool { return s.Text != "" }); i >= 0 {
		s := f.Feedback[i]
		text += fmt.Sprintf(": %q (%s, %s)", s.Text, s.Author, time.Unix(0, s.AtNS).UTC().Format(time.DateOnly))
	}
	return text
}

// Feedback is what to keep of what a user says of a finding of this report.
func (r *Report) Feedback(f *Finding, author string, wrong bool, text string, now time.Time) store.FeedbackRow {
	row := store.FeedbackRow{Job: r.Job, At: now.UnixNano(), Author: author, Wrong: wrong, Begin: r.BeginNS, End: r.EndNS,
		Kind: f.Kind, Class: f.Class, Function: f.Function, Sentence: f.Sentence}
	if text != "" {
		row.Text = &text
	}
	if f.File != "" {
		row.File = &f.File
	}
	return row
}
