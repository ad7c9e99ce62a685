package page

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

const (
	mostQueries = 2 // that run at a time
	mostWaiting = 4 // behind them
	mostMemory  = 2 << 30
	mostSpill   = 8 << 30
)

// pool lends opened datasets: each holds one DuckDB connection, and several tabs ask at once.
type pool struct {
	free    chan opened
	waiting atomic.Int32 // requests that have a dataset, or wait for one
}

// opened is a dataset, or why it cannot be opened.
type opened struct {
	db  *dataset.DB
	err error
}

// newPool opens a dataset as often as queries run at a time, in the background. print is the fingerprint of
// the files to open: a dataset that changes meanwhile would be answered from two states. "" takes whatever files it has.
func newPool(path, print string, limits dataset.Limits) *pool {
	p := &pool{free: make(chan opened, mostQueries)}
	for range mostQueries {
		go func() {
			db, err := dataset.OpenWithin(path, limits)
			if err == nil && print != "" && fingerprint(db) != print {
				db, err = nil, errors.Join(errChanged, db.Close())
			}
			p.free <- opened{db, err}
		}()
	}
	return p
}

// limits share a quarter of the machine's memory, 2 GiB at most, among the queries that run at a time.
func limits() dataset.Limits {
	memory := int64(mostMemory)
	if all := machineMemory(); all > 0 {
		memory = min(memory, all/4)
	}
	return dataset.Limits{MemoryBytes: memory / mostQueries, SpillBytes: mostSpill, Threads: 2}
}

// machineMemory is 0 where the kernel does not say.
func machineMemory() int64 {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var kilobytes int64
		if n, _ := fmt.Sscanf(lines.Text(), "MemTotal: %d kB", &kilobytes); n == 1 {
			return kilobytes << 10
		}
	}
	return 0
}

var errBusy = problem{http.StatusServiceUnavailable, errors.New("other requests are being answered: try again in a moment")}

// errChanged is returned instead of numbers of which some are of other files than those that the page shows.
var errChanged = problem{http.StatusConflict, errors.New("the dataset has changed on disk since it was read: the page reads it again; " +
	"ask once more in a moment")}

// use calls f with an opened dataset that nobody else uses meanwhile. Cancelling the context interrupts its query.
func (p *pool) use(ctx context.Context, f func(*dataset.DB) error) error {
	if p.waiting.Add(1) > mostQueries+mostWaiting {
		p.waiting.Add(-1)
		return errBusy
	}
	defer p.waiting.Add(-1)
	select {
	case o := <-p.free:
		defer func() { p.free <- o }()
		if o.err != nil {
			return o.err
		}
		return f(o.db)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close waits for the queries that run; the caller has cancelled them.
func (p *pool) close() (err error) {
	for range mostQueries {
		if o := <-p.free; o.db != nil {
			err = errors.Join(err, o.db.Close())
		}
	}
	return err
}
