package page

import (
	"context"
	"net/http"

	"github.com/ebpfprof/ebpfprof/internal/answer/diff"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// failOn is how many percent longer a step is a regression: what `diff` has without --fail-on.
const failOn = 3

// diff is /api/diff: `ebpfprof diff BEFORE DATASET --json`, byte for byte.
func (s *edition) diff(w http.ResponseWriter, r *http.Request) {
	if s.options.Before == "" {
		s.fail(w, r, notFound("one dataset is served: ebpfprof serve BEFORE AFTER compares two"))
		return
	}
	s.once(w, r, "diff", s.compare)
}

func (s *edition) compare(ctx context.Context) ([]byte, error) {
	db, err := dataset.OpenWithin(s.options.Before, limits())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	before, after, err := s.sides(ctx, db, diff.Load)
	if err == nil && before.What != after.What {
		// One has no steps: what both have is the work as a whole.
		before, after, err = s.sides(ctx, db, diff.LoadWhole)
	}
	if err != nil {
		return nil, err
	}
	return indented(diff.Compare(before, after, failOn))
}

// reader makes a side of a dataset.
type reader func(context.Context, *dataset.DB) (*diff.Side, error)

func (s *edition) sides(ctx context.Context, earlier *dataset.DB, load reader) (before, after *diff.Side, err error) {
	if before, err = load(ctx, earlier); err != nil {
		return nil, nil, err
	}
	err = s.pool.use(ctx, func(db *dataset.DB) (err error) {
		after, err = load(ctx, db)
		return err
	})
	return diff.Join(before), diff.Join(after), err
}
