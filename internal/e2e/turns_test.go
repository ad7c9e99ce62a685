package e2e

import (
	"flag"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Tests that count, or wait, run beside each other: most of their time goes into
// the one thread that imports a framework. Those that compare times or shares of
// time have the machine alone: they do not call beside, and Go runs them first.
//
// Of the tests that trace one library one runs at a time. Where other processes
// map a file as well, its probes are put in process by process; tests mean the
// usual way, unless they say so.

// load is what a test has beside it, and is beside others.
type load int

const (
	// counting: right at any speed, and busy all the time.
	counting load = iota
	// sliced: how many slices there are and how long depends on what else the
	// machine does. Beside them are only others of their kind, whose jobs are
	// recorded for a small part of the time.
	sliced
	// waiting: so little work that it is beside anything.
	waiting
)

// turns tells whose turn it is.
type turns struct {
	mu      sync.Mutex
	changed sync.Cond
	most    int // at a time
	running [waiting + 1]int
	traced  map[string]bool
}

var turn = func() *turns {
	s := &turns{traced: map[string]bool{}}
	s.changed.L = &s.mu
	return s
}()

// letAllBegin is called before the tests run: as many as -parallel says (the
// number of CPUs) run at a time. Go is told to let all begin, so that a test that
// waits for a library is in no other's way.
func letAllBegin() {
	parallel := flag.Lookup("test.parallel")
	turn.most, _ = strconv.Atoi(parallel.Value.String())
	parallel.Value.Set("1000")
}

// beside lets a test run beside others, none of which traces the same library.
func beside(t *testing.T, l load, libraries ...string) {
	t.Helper()
	t.Parallel()
	came := time.Now()
	turn.mu.Lock()
	defer turn.mu.Unlock()
	for !turn.free(l, libraries) {
		turn.changed.Wait()
	}
	turn.take(l, 1, libraries)
	t.Cleanup(func() {
		turn.mu.Lock()
		defer turn.mu.Unlock()
		turn.take(l, -1, libraries)
		turn.changed.Broadcast()
	})
	t.Logf("waited %.1f s for its turn", time.Since(came).Seconds()) // internal/testrun takes it off the time
}

func (s *turns) free(l load, libraries []string) bool {
	for _, library := range libraries {
		if s.traced[library] {
			return false
		}
	}
	switch l {
	case counting:
		return s.running[counting] < s.most && s.running[sliced] == 0
	case sliced:
		return s.running[sliced] < s.most && s.running[counting] == 0
	}
	return true
}

func (s *turns) take(l load, n int, libraries []string) {
	s.running[l] += n
	for _, library := range libraries {
		s.traced[library] = n > 0
	}
}
