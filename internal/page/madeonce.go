package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	allocations "github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// madeOnce are documents of the command line that take longer than a request of the timeline: each is made once, one at
// a time.
type madeOnce struct {
	turn  chan struct{} // of one: a request that is cancelled does not wait for it
	known map[string][]byte
}

// mostMade are remembered.
const mostMade = 32

func newMadeOnce() madeOnce {
	return madeOnce{turn: make(chan struct{}, 1), known: map[string][]byte{}}
}

// once answers with a document that is made once, as the command line's --json writes it.
func (s *edition) once(w http.ResponseWriter, r *http.Request, key string, make func(context.Context) ([]byte, error)) {
	text, err := s.made(r.Context(), key, make)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = compressed(w, r, text)
}

func (s *edition) made(ctx context.Context, key string, make func(context.Context) ([]byte, error)) ([]byte, error) {
	c := &s.madeOnce
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.turn }()
	if text, known := c.known[key]; known {
		return text, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*s.options.Timeout)
	defer cancel()
	if s.stale() {
		return nil, errChanged
	}
	text, err := make(ctx)
	if err != nil {
		return nil, err
	}
	if len(c.known) >= mostMade {
		clear(c.known)
	}
	c.known[key] = text
	return text, nil
}

// indented is what the command line's --json writes of a value.
func indented(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(printable.JSON(&text))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return text.Bytes(), err
}

// memory is /api/memory: `ebpfprof memory DATASET --json`, byte for byte.
func (s *edition) memory(w http.ResponseWriter, r *http.Request) {
	s.once(w, r, "memory", func(ctx context.Context) (text []byte, err error) {
		err = s.pool.use(ctx, func(db *dataset.DB) error {
			m, err := analysis.Whole(ctx, db)
			if errors.Is(err, allocations.ErrNoEvents) {
				return notFound("%w", err)
			}
			if err == nil {
				text, err = indented(m)
			}
			return err
		})
		return text, err
	})
}

// criticalPath is /api/critical-path: `ebpfprof critical-path DATASET --json`, of the step that the query names or of the
// median one, byte for byte.
func (s *edition) criticalPath(w http.ResponseWriter, r *http.Request) {
	step := -1
	if text := r.URL.Query().Get("step"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			s.fail(w, r, badRequest("step=%q is no number from 0 on", printable.Short(text)))
			return
		}
		step = n
	}
	s.once(w, r, "path "+strconv.Itoa(step), func(ctx context.Context) (text []byte, err error) {
		err = s.pool.use(ctx, func(db *dataset.DB) error {
			path, err := pathOf(ctx, db, step)
			if err == nil {
				text, err = indented(path)
			}
			return err
		})
		return text, err
	})
}

func pathOf(ctx context.Context, db *dataset.DB, step int) (*timeline.CriticalPath, error) {
	threads, err := timeline.Steps(ctx, db)
	if err != nil {
		return nil, err
	}
	var of timeline.Thread
	var stretch timeline.Step
	if step < 0 && len(threads) == 0 {
		of, stretch, err = timeline.Recording(ctx, db, nil)
	} else if of, stretch, err = timeline.Choose(threads, step); err != nil {
		err = problem{http.StatusNotFound, err}
	}
	if err != nil {
		return nil, err
	}
	if stretch.Name == "" {
		if path, err := timeline.PathOverRanks(ctx, db, threads, of, stretch); path != nil || err != nil {
			return path, err
		}
	}
	return timeline.Path(ctx, db, of, stretch)
}
