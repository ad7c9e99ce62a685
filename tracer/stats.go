package tracer

import (
	"maps"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/expense"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// Stats is what a recording has done so far, for a live line and a summary.
type Stats struct {
	Totals
	Lost map[string]uint64 // by reason, rows only
	// Pending is the most that waited in the rings at a look of the last pendingFor, up to
	// twice as long: it is nothing most of the time, and what counts is how near it comes to full.
	Pending decode.Pending
	Probes  ProbeUse
	// Unnamed counts the Python frames without a name, by reason; nil before the end.
	Unnamed map[string]uint64
	// Cost is what the probes have cost the job, as far as it is known from their
	// hits; nil before the end.
	Cost *budget.Cost
}

// ProbeUse is how many probes have been put into files that are still there, and how often
// the job has passed any: entries, returns, and those that recorded nothing, since it paid
// for each. It is seconds old.
type ProbeUse struct {
	Attached int
	Hits     uint64
}

type statistics struct {
	mu    sync.Mutex // between the decoder, which counts, and whoever asks for Stats, the manager too
	stats Stats
	// before is the most that waited in the pendingFor before the one that began at since.
	before decode.Pending
	since  time.Time
	beside expense.Parts // what is not the probes'
	whole  bool          // that was measured
}

// pendingFor is how long the most that waited counts: as long as most servers of metrics
// leave between two looks.
const pendingFor = time.Minute

// wait takes what waited in the rings at a look.
func (s *statistics) wait(now decode.Pending, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Sub(s.since) >= pendingFor {
		if s.before = s.stats.Pending; at.Sub(s.since) >= 2*pendingFor {
			s.before = decode.Pending{}
		}
		s.since, s.stats.Pending = at, decode.Pending{}
	}
	s.stats.Pending = s.stats.Pending.Most(now)
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
	probes, inOut := cost.Parts.Probes, cost.Parts.InOut
	cost.Parts = s.beside
	cost.Parts.Probes, cost.Parts.InOut = probes, inOut
	cost.Share, cost.Whole = cost.Parts.Sum(), s.whole
	s.stats.Cost, s.stats.Unnamed = &cost, unnamed
	s.stats.Operators = t.Operators
}

// expenses keeps what the recording costs beside its probes.
func (s *statistics) expenses(a *expense.Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beside, s.whole = a.Shares(), a.Known()
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

// use keeps what the probes do.
func (s *statistics) use(now ProbeUse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Probes = now
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
	stats.Pending = stats.Pending.Most(s.stats.before)
	stats.Lost = maps.Clone(stats.Lost)
	return stats
}

// rowsByLine counts rows by whose line they have.
func (s *statistics) rowsByLine() [int(bpf.CallLineSourceLINE_SOURCES)]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats.Lines.BySource
}
