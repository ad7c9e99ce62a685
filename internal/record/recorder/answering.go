package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Answer writes what a dataset says of its job: the verdict and the hottest lines. It is what a build that also reads
// datasets adds to one that only records.
type Answer func(ctx context.Context, dataset string, w io.Writer) error

// Reading is what a build that reads datasets adds to recordings.
type Reading struct {
	Answer Answer // nil: none
	Merge  Merge  // nil: none
	// MergeActivities: nil for none.
	MergeActivities MergeActivities
	Serves          bool // the command serve
}

// mostAnswering bounds the time that the end of a recording takes for the answer: a recording of hours has more to read
// than somebody waits for.
const mostAnswering = 20 * time.Second

// printAnswer prints what the dataset says of the job and reports whether it did; the summary's table of operators stands in
// for it otherwise. A signal ends the waiting and not the recording, which is complete.
func (r *recorder) printAnswer(w io.Writer, dataset string) bool {
	if r.reading.Answer == nil || r.noVerdict {
		return false
	}
	beNice()
	ctx, stop := untilSignal(context.Background(), nil)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, mostAnswering)
	defer cancel()
	err := r.reading.Answer(ctx, dataset, w)
	switch {
	case err == nil:
		return true
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		fmt.Fprintf(os.Stderr, "reading the recording takes longer than %v: run ebpfprof report for the verdict\n", mostAnswering)
	case ctx.Err() == nil:
		fmt.Fprintf(os.Stderr, "no verdict: %v\n", err)
	}
	return false
}
