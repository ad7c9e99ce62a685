package tracer

import (
	"maps"
	"sync"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// Stats is what a recording has done so far, for a live line and a summary.
type Stats struct {
	Totals
	Lost map[string]uint64 // by reason, rows only
	// Unnamed counts the Python frames without a name, by reason; nil before the end.
	Unnamed map[string]uint64
	// Cost is what the probes have cost the job, as far as it can be told from their
	// hits; nil before the end.
	Cost *budget.Cost
}

type statistics struct {
	mu    sync.Mutex // between the decoder, which counts, and whoever asks for Stats, the manager too
	stats Stats
}

func (s *statistics) update(t *Totals) {
	s.mu.Lock()
	defer s.mu.Unlock()
	operators := s.stats.Operators
	s.stats.Totals = *t
	s.stats.Stacks.Incomplete = maps.Clone(t.Stacks.Incomplete)
	s.stats.Operators = operators
}

// stackRows is how many different stacks have a row so far.
func (s *statistics) stackRows() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.stats.Stacks.Rows)
}

// end keeps the totals by name, once nothing changes them any more.
func (s *statistics) end(t *Totals, unnamed map[string]uint64, cost budget.Cost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Cost, s.stats.Unnamed = &cost, unnamed
	s.stats.Operators = t.Operators
}

func (s *statistics) lose(losses []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Lost = map[string]uint64{}
	for i, n := range losses {
		if kernel.Losses[i].Row && n > 0 {
			s.stats.Lost[kernel.Losses[i].Name] = n
		}
	}
}

// loseMore adds a loss that the kernel does not count.
func (s *statistics) loseMore(name string, n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Lost[name] = n
}

// Stats returns the counters so far; the operators only after Run.
func (s *Session) Stats() Stats {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	stats := s.stats.stats
	stats.Lost = maps.Clone(stats.Lost)
	return stats
}

// rowsByLine counts rows by whose line they have.
func (s *Session) rowsByLine() [int(bpf.CallLineSourceLINE_SOURCES)]uint64 {
	return s.Stats().Lines.BySource
}
