package page

import (
	"context"
	"net/http"
	"sync"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// foundSteps are the recording's steps, found once.
type foundSteps struct {
	mu    sync.Mutex
	known bool
	steps stepRuler
}

// stepRuler is /api/steps: the steps of the thread that the findings are about.
type stepRuler struct {
	PID   int       `json:"pid"`
	TID   int       `json:"tid"`
	Total int       `json:"total"`
	IDs   []int64   `json:"ids"`
	Begin []float64 `json:"begin_ns"` // from the base
	End   []float64 `json:"end_ns"`
	Kind  []string  `json:"kind"`
	More  bool      `json:"has_more"` // too many in this window to be drawn
}

// mostSteps are drawn in a window.
const mostSteps = 2000

func (s *edition) steps(r *http.Request) (any, error) {
	w, err := window(r)
	if err != nil {
		return nil, err
	}
	all, err := s.findSteps(r.Context())
	if err != nil {
		return nil, err
	}
	part := stepRuler{PID: all.PID, TID: all.TID, Total: all.Total, IDs: []int64{}, Begin: []float64{}, End: []float64{}, Kind: []string{}}
	for i := range all.Begin {
		if all.Begin[i] >= float64(w.Until) || all.End[i] < float64(w.From) {
			continue
		}
		if len(part.Begin) == mostSteps {
			return stepRuler{PID: all.PID, TID: all.TID, Total: all.Total, IDs: []int64{}, Begin: []float64{}, End: []float64{}, Kind: []string{},
				More: true}, nil
		}
		part.IDs = append(part.IDs, all.IDs[i])
		part.Begin, part.End, part.Kind = append(part.Begin, all.Begin[i]), append(part.End, all.End[i]), append(part.Kind, all.Kind[i])
	}
	return part, nil
}

func (s *edition) findSteps(ctx context.Context) (stepRuler, error) {
	p, err := s.pyramid(ctx)
	if err != nil {
		return stepRuler{}, err
	}
	f := &s.found
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known {
		return f.steps, nil
	}
	err = s.query(ctx, func(ctx context.Context, db *dataset.DB) error {
		threads, err := timeline.Steps(ctx, db)
		if err != nil || len(threads) == 0 {
			return err
		}
		of := findings.Looked(threads)
		f.steps = stepRuler{PID: of.PID, TID: of.TID, Total: len(of.Steps)}
		for _, step := range of.Steps {
			f.steps.IDs = append(f.steps.IDs, step.ID)
			f.steps.Begin = append(f.steps.Begin, float64(step.Begin-p.Base()))
			f.steps.End = append(f.steps.End, float64(step.Until()-p.Base()))
			f.steps.Kind = append(f.steps.Kind, string(step.Kind))
		}
		return nil
	})
	f.known = err == nil
	return f.steps, err
}
