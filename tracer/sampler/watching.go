package sampler

import (
	"fmt"
	"io"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/expense"
)

// What the programs cost is measured in moments, by the kernel's own statistics: for each
// program how often it ran and how long. Those take time themselves, and are off between the
// moments.

// counted is what the kernel has counted of one program.
type counted struct {
	ran  time.Duration
	runs uint64
}

// Watched is what was counted until a moment.
type Watched struct {
	at       time.Time
	programs map[string]counted
	ours     []uint64 // enum watched in bpf/sample.bpf.c: of the job's threads
}

// foreignEvent is what an event takes that concerns no target, with what the kernel's
// statistics take themselves (docs/overhead-appendix.md).
const foreignEvent = 45 * time.Nanosecond

// OpenMoment has the kernel count what programs cost until it is closed. It needs
// CAP_SYS_ADMIN.
func OpenMoment() (io.Closer, error) {
	c, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		return nil, fmt.Errorf("measuring the programs' cost: %w", err)
	}
	return c, nil
}

// Look reads what was counted, of these programs and of others.
func (s *Sampler) Look(others map[string]*ebpf.Program) (*Watched, error) {
	w := &Watched{at: time.Now(), programs: map[string]counted{}, ours: make([]uint64, 3)}
	for _, programs := range []map[string]*ebpf.Program{s.collection.Programs, others} {
		for name, p := range programs {
			stats, err := p.Stats()
			if err != nil {
				return nil, fmt.Errorf("reading what %s costs: %w", name, err)
			}
			w.programs[name] = counted{stats.Runtime, stats.RunCount}
		}
	}
	var per []uint64
	for kind := range w.ours {
		if err := s.Map("watched").Lookup(uint32(kind), &per); err != nil {
			return nil, fmt.Errorf("reading what the programs have looked at: %w", err)
		}
		for _, n := range per {
			w.ours[kind] += n
		}
	}
	return w, nil
}

// Rates are those of the time from one look to another. What the programs cost is measured
// between before, the beginning of a moment, and after; how often they had something to do with
// the job's threads is counted since.
func (s *Sampler) Rates(since, before, after *Watched) expense.Rates {
	r := s.ratesOfMoment(before, after)
	s.waits.scale(&r.Waits, since, before, after, 0)
	s.calls.scale(&r.IO, since, before, after, 2)
	return r
}

// RatesSince are those of a time without a moment in it: of what is watched still, at the prices
// of the last one, whose rates are given.
func (s *Sampler) RatesSince(since, now *Watched, last expense.Rates) expense.Rates {
	form := s.Form()
	if !form.Waits {
		last.Waits = expense.Pair{}
	}
	if !form.IO {
		last.IO = expense.Pair{}
	}
	s.waits.scale(&last.Waits, since, now, now, 0)
	s.calls.scale(&last.IO, since, now, now, 2)
	return last
}

// eventPrice is what one event of the job cost in the last moment that had any.
type eventPrice float64

// scale makes the rate of a moment that of the whole time, by how often there was an event of
// the job. What others' events cost is not counted; their rate stays that of the moment.
func (price *eventPrice) scale(p *expense.Pair, since, before, after *Watched, kind int) {
	rate := func(from *Watched) float64 {
		return float64(after.ours[kind]-from.ours[kind]) / float64(max(1, after.at.Sub(from.at)))
	}
	if p.Machine == 0 {
		return // it is not watched
	}
	if in := rate(before); in > 0 {
		*price = eventPrice(p.Job / in)
	}
	job := float64(*price) * rate(since)
	p.Machine, p.Job = p.Machine-p.Job+job, job
}

func (s *Sampler) ratesOfMoment(before, after *Watched) (r expense.Rates) {
	over := float64(after.at.Sub(before.at))
	grown := func(name string) counted {
		a, b := after.programs[name], before.programs[name]
		return counted{a.ran - b.ran, a.runs - b.runs}
	}
	pair := func(name string, ours uint64) expense.Pair {
		c := grown(name)
		foreign := min(float64(c.ran), float64(c.runs-min(ours, c.runs))*float64(foreignEvent))
		return expense.Pair{Machine: float64(c.ran) / over, Job: (float64(c.ran) - foreign) / over}
	}
	add := func(to *expense.Pair, p expense.Pair, part float64) {
		to.Machine, to.Job = to.Machine+part*p.Machine, to.Job+part*p.Job
	}
	ours := func(kind int) uint64 { return after.ours[kind] - before.ours[kind] }
	add(&r.Waits, pair(switchProgram, ours(0)), 1)
	add(&r.Waits, pair(wakingProgram, ours(1)), 1)
	// Each system call of the machine takes a longer way while one of these programs is in. What
	// the programs themselves take at one that concerns no target is in that.
	calls := grown(syscallEnd).runs
	path := expense.Pair{Machine: float64(calls) * float64(s.callPath) / over, Job: float64(ours(2)) * float64(s.callPath) / over}
	beyond := func(name string) expense.Pair {
		c := grown(name)
		more := max(0, float64(c.ran)-float64(c.runs)*float64(foreignEvent)) / over
		return expense.Pair{Machine: more, Job: more}
	}
	ends := beyond(syscallEnd)
	switch {
	case s.links[syscallBegin] == nil:
		add(&r.Waits, path, 1)
		add(&r.Waits, ends, 1)
	case s.links[switchProgram] == nil:
		add(&r.IO, path, 1)
		add(&r.IO, ends, 1)
	default:
		add(&r.IO, path, 0.5)
		add(&r.IO, ends, 0.5)
		add(&r.Waits, path, 0.5)
		add(&r.Waits, ends, 0.5)
	}
	add(&r.IO, beyond(syscallBegin), 1)
	add(&r.IO, pair(majorFault, grown(majorFault).runs), 1)
	r.Samples = float64(grown(clockProgram).ran) / over
	for _, name := range []string{"process_fork", "process_exec", "process_exit", "process_free"} {
		r.Starts += float64(grown(name).ran) / over
	}
	return r
}

// Form is what is watched.
func (s *Sampler) Form() expense.Form {
	return expense.Form{Waits: s.links[switchProgram] != nil, IO: s.links[syscallBegin] != nil}
}

// SetWaitThreshold has rows of waits that are at least so long, of those that end from now on.
func (s *Sampler) SetWaitThreshold(least time.Duration) error {
	if err := s.collection.Variables["wait_threshold_ns"].Set(uint64(least)); err != nil {
		return fmt.Errorf("setting the shortest wait: %w", err)
	}
	return nil
}

// EndWaits takes the programs out that watch threads wait.
func (s *Sampler) EndWaits() {
	s.end(switchProgram, wakingProgram)
	s.endCalls()
}

// EndIO takes those out that measure reads and writes.
func (s *Sampler) EndIO() {
	s.end(syscallBegin)
	if s.endCalls(); s.links[syscallEnd] != nil {
		s.callPath = max(0, callTime()-s.bareCall)
	}
}

// endCalls takes the last program of system calls out, once nobody needs it.
func (s *Sampler) endCalls() {
	if form := s.Form(); !form.Waits && !form.IO {
		s.end(syscallEnd)
	}
}

func (s *Sampler) end(programs ...string) {
	for _, name := range programs {
		if l := s.links[name]; l != nil {
			l.Close()
			delete(s.links, name)
		}
	}
}

// callTime is what one of some system calls takes that do nothing: the least of a few rounds.
func callTime() time.Duration {
	const rounds, calls = 5, 1000
	best := time.Hour
	for range rounds {
		began := time.Now()
		for range calls {
			unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
		}
		best = min(best, time.Since(began)/calls)
	}
	return best
}
