package page

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"sync"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// edition is the dataset as its files were at one moment. A recording that is being made has another one every few
// seconds; a request is answered from one alone.
type edition struct {
	options   Options
	root      string
	number    int64
	recording bool        // the recording has not ended, as far as the dataset has it
	print     string      // fingerprint of the dataset's files, as they were when it was opened
	listed    string      // likewise, of their directories
	base      *dataset.DB // read past DuckDB, so that it needs no turn
	pool      *pool
	reports   *reports
	lanes     *lanes
	found     foundSteps
	flames    flames
	madeOnce  madeOnce
	maps      mapped

	recorded recordedTimes
	counts   foundCounters

	api  http.Handler
	life context.Context // ends with the edition; background work runs in it
	end  context.CancelFunc
	work sync.WaitGroup

	uses    int  // requests that are being answered; guarded by Server.mu
	retired bool // another edition took its place
}

// openEdition opens the dataset as it is now; before is the edition before it, nil of the first.
func openEdition(path string, o Options, before *edition) (*edition, error) {
	base, err := dataset.OpenWithin(path, limits())
	if err != nil {
		return nil, err
	}
	e := &edition{options: o, root: base.Root(), number: 1, base: base, print: fingerprint(base), listed: listed(base)}
	if e.recording, err = unended(base); err != nil {
		return nil, errors.Join(err, base.Close())
	}
	var earlier *lanes
	if before != nil {
		e.number, earlier = before.number+1, before.lanes
	}
	e.life, e.end = context.WithCancel(context.Background())
	print := e.print
	if e.recording {
		print = "" // a recording that goes on adds files, and removes none
	}
	e.pool = newPool(path, print, limits())
	e.reports = newReports(e)
	e.lanes, e.madeOnce = &lanes{ready: make(chan struct{}), built: make(chan struct{}), before: earlier}, newMadeOnce()
	e.api = e.handler()
	e.work.Go(e.buildLanes)
	return e, nil
}

// unended reports whether a recording has no end: it is being made, or its recorder was killed.
func unended(db *dataset.DB) (bool, error) {
	var open sql.NullBool
	err := db.Row(context.Background(), "SELECT bool_or(ended_ns IS NULL AND source = 'recorded') FROM session", nil, &open)
	return open.Bool, err
}

// close interrupts what runs and releases the dataset.
func (s *edition) close() error {
	s.end()
	s.work.Wait()
	return errors.Join(s.pool.close(), s.base.Close())
}

// changed reports whether the dataset's files are others than those of the edition.
func (s *edition) changed() bool { return listed(s.base) != s.listed || fingerprint(s.base) != s.print }

// stale reports whether an answer would come from files that were removed.
func (s *edition) stale() bool { return !s.recording && fingerprint(s.base) != s.print }

func (s *edition) handler() http.Handler {
	api := http.NewServeMux()
	api.Handle("GET /api/dataset", s.answer(s.describe))
	api.Handle("GET /api/report", http.HandlerFunc(s.report))
	api.Handle("GET /api/lanes", s.answer(s.layLanes))
	api.Handle("GET /api/timeline", http.HandlerFunc(s.timeline))
	api.Handle("GET /api/selection", s.answer(s.selection))
	api.Handle("GET /api/call", s.answer(s.call))
	api.Handle("GET /api/strips", s.answer(s.strips))
	api.Handle("GET /api/flame", s.answer(s.flame))
	api.Handle("GET /api/files", s.answer(s.sources))
	api.Handle("GET /api/source", s.answer(s.source))
	api.Handle("GET /api/steps", s.answer(s.steps))
	api.Handle("GET /api/marked", s.answer(s.marked))
	api.Handle("GET /api/flows", s.answer(s.flows))
	api.Handle("GET /api/counters", s.answer(s.counters))
	api.Handle("GET /api/readings", s.answer(s.readings))
	api.Handle("GET /api/examples", s.answer(s.examples))
	api.Handle("GET /api/live", s.answer(s.live))
	api.Handle("GET /api/map", s.answer(s.jobMap))
	api.Handle("GET /api/map/cells", http.HandlerFunc(s.mapCells))
	api.Handle("GET /api/map/step", s.answer(s.mapStep))
	api.Handle("GET /api/hang", http.HandlerFunc(s.hang))
	api.Handle("GET /api/diff", http.HandlerFunc(s.diff))
	api.Handle("GET /api/memory", http.HandlerFunc(s.memory))
	api.Handle("GET /api/critical-path", http.HandlerFunc(s.criticalPath))
	api.Handle("GET /api/schema", http.HandlerFunc(s.schema))
	api.Handle("POST /api/query", http.HandlerFunc(s.ask))
	return api
}
