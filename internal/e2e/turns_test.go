package e2e

import (
	"flag"
	"slices"
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
	most    int // at a time
	running [waiting + 1]int
	traced  map[string]bool
	queue   []*turn
}

// turn is a test that runs, or waits for that.
type turn struct {
	load      load
	libraries []string
	come      chan struct{} // closed when it has
}

var tests = &turns{traced: map[string]bool{}}

// letAllBegin is called before the tests run: as many as -parallel says (the
// number of CPUs) run at a time. Go is told to let all begin, so that a test that
// waits for a library is in no other's way.
func letAllBegin() {
	parallel := flag.Lookup("test.parallel")
	tests.most, _ = strconv.Atoi(parallel.Value.String())
	parallel.Value.Set("1000")
}

// beside lets a test run beside others, none of which traces the same library.
func beside(t *testing.T, l load, libraries ...string) {
	t.Helper()
	t.Parallel()
	mine, came := &turn{l, libraries, make(chan struct{})}, time.Now()
	tests.mu.Lock()
	tests.queue = append(tests.queue, mine)
	tests.begin()
	tests.mu.Unlock()
	<-mine.come
	t.Cleanup(func() {
		tests.mu.Lock()
		defer tests.mu.Unlock()
		tests.mark(mine, -1)
		tests.begin()
	})
	t.Logf("waited %.1f s for its turn", time.Since(came).Seconds()) // internal/testrun takes it off the time
}

// begin lets those run that can, first those whose library most wait for: else
// they would be left at the end, one after the other.
func (s *turns) begin() {
	for {
		first, most := -1, -1
		for i, waiting := range s.queue {
			if n := s.wanted(waiting); n > most && s.free(waiting) {
				first, most = i, n
			}
		}
		if first < 0 {
			return
		}
		next := s.queue[first]
		s.queue = slices.Delete(s.queue, first, first+1)
		s.mark(next, 1)
		close(next.come)
	}
}

// wanted is how many wait for the library of a test that most wait for.
func (s *turns) wanted(of *turn) (most int) {
	for _, library := range of.libraries {
		n := 0
		for _, waiting := range s.queue {
			if slices.Contains(waiting.libraries, library) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func (s *turns) free(of *turn) bool {
	if slices.ContainsFunc(of.libraries, func(library string) bool { return s.traced[library] }) {
		return false
	}
	switch of.load {
	case counting:
		return s.running[counting] < s.most && s.running[sliced] == 0
	case sliced:
		return s.running[sliced] < s.most && s.running[counting] == 0
	}
	return true
}

// mark notes that a test begins (1) or has ended (-1).
func (s *turns) mark(of *turn, n int) {
	s.running[of.load] += n
	for _, library := range of.libraries {
		s.traced[library] = n > 0
	}
}
