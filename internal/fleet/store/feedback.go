package store

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// FeedbackTable has what people say of findings; it stays when patterns go.
const FeedbackTable = "feedback"

// FeedbackRow is what a user says of a finding: that it was right, or wrong.
type FeedbackRow struct {
	Job      string  `parquet:"job,dict,zstd"`
	At       int64   `parquet:"ts_ns"`
	Author   string  `parquet:"author,dict,zstd"`
	Wrong    bool    `parquet:"wrong"`
	Text     *string `parquet:"text,optional,zstd"`
	Begin    int64   `parquet:"begin_ns"` // of the time that the finding is about
	End      int64   `parquet:"end_ns"`
	Kind     string  `parquet:"kind,dict,zstd"`
	Class    string  `parquet:"class,dict,zstd"`
	Function string  `parquet:"function,dict,zstd"`
	File     *string `parquet:"file,optional,dict,zstd"`
	Sentence string  `parquet:"sentence,zstd"` // the finding's own
}

// longestFeedback bounds what one row says.
const longestFeedback = 1000

// ErrFeedback is returned for feedback that is too long or no text.
var ErrFeedback = errors.New("not taken")

// PutFeedback keeps a row beside the job's patterns.
func PutFeedback(ctx context.Context, s Store, host string, row FeedbackRow) error {
	if row.Text != nil && (len(*row.Text) > longestFeedback || !utf8.ValidString(*row.Text)) {
		return fmt.Errorf("%w: a text of at most %d bytes of UTF-8", ErrFeedback, longestFeedback)
	}
	_, err := put(ctx, s, Partition{Table: FeedbackTable, Job: row.Job, Host: host, At: time.Unix(0, row.At)}, []FeedbackRow{row})
	return err
}
