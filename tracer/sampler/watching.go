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

// Rates are those between two looks.
func (s *Sampler) Rates(before, after *Watched) (r expense.Rates) {
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
	// Each system call of the machine takes a longer way while one of these programs is in.
	calls := grown(syscallEnd).runs
	path := expense.Pair{Machine: float64(calls) * float64(s.callPath) / over, Job: float64(ours(2)) * float64(s.callPath) / over}
	ends := pair(syscallEnd, ours(2))
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
	add(&r.IO, pair(syscallBegin, ours(2)), 1)
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

// EndWaits takes the programs out that watch threads wait.
func (s *Sampler) EndWaits() {
	s.end(switchProgram, wakingProgram)
	s.endCalls()
}

// EndIO takes those out that measure reads and writes.
func (s *Sampler) EndIO() {
	s.end(syscallBegin)
	s.endCalls()
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
