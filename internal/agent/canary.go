package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Of a job with several processes one is recorded alone first: if a kernel, a library or a
// runtime that nobody has tried does not stand being probed, that is one process of a job
// instead of all. If it dies as a process dies that was harmed, the others are left alone,
// and so is the job for a day, or until the agent begins again.

// errCanary is what a worker ends with whose canary has died.
var errCanary = errors.New("the job is left alone")

// stateRefused is the state of a job that is left alone.
const stateRefused = "refused"

// harmful are the signals that a process gets for what it executes: a breakpoint that is
// nobody's, an instruction that is none, memory that is not there.
var harmful = map[int32]bool{int32(unix.SIGTRAP): true, int32(unix.SIGILL): true, int32(unix.SIGSEGV): true, int32(unix.SIGBUS): true}

// A job that is left alone is for so long, and so many are remembered: jobs choose their names.
const (
	refusedFor  = 24 * time.Hour
	mostRefused = 1000
)

// refusedJob is why a job is left alone, and since when.
type refusedJob struct {
	why  string
	from time.Time
}

// refuse remembers that a job is left alone.
func (s *supervisor) refuse(j *supervised, why string) {
	j.refused = why
	if len(s.refused) >= mostRefused {
		maps.DeleteFunc(s.refused, func(_ string, r refusedJob) bool { return time.Since(r.from) >= refusedFor })
	}
	if len(s.refused) < mostRefused {
		s.refused[j.job.Name] = refusedJob{why, time.Now()}
	}
}

// whyRefused is why a job is left alone; "" is not so.
func (s *supervisor) whyRefused(name string) string {
	r, ok := s.refused[name]
	if !ok || time.Since(r.from) >= refusedFor {
		delete(s.refused, name)
		return ""
	}
	return r.why
}

// ending keeps how a process ended.
type ending struct {
	event.Discard
	pid    int32
	signal int32 // 0: none
}

// Process implements event.Sink.
func (e *ending) Process(p event.Process) error {
	if p.PID == e.pid && p.EndedNS != nil && p.ExitSignal != nil {
		e.signal = *p.ExitSignal
	}
	return nil
}

// canary records one process of the job alone, for a while. The error says why the others
// are to be left alone.
func (w *worker) canary(ctx context.Context) error {
	if len(w.job.PIDs) < 2 || w.config.Canary == 0 {
		return nil
	}
	pid := w.job.PIDs[len(w.job.PIDs)-1] // the first is rank 0 as often as not, which writes the checkpoints
	options := w.anchored()
	options.PIDs = []int{pid}
	end := &ending{pid: int32(pid)}
	w.say("canary", fmt.Sprintf("process %d alone for %s", pid, time.Duration(w.config.Canary)))
	session, err := tracer.Open(options, end)
	if err != nil {
		return ended(err) // what keeps one from being recorded is said of all
	}
	w.seen.begin(session.Stats)
	limited, cancel := context.WithTimeout(ctx, time.Duration(w.config.Canary))
	defer cancel()
	err = session.Run(limited)
	w.seen.end()
	session.Close()
	if harmful[end.signal] {
		text := fmt.Sprintf("process %d was ended by signal %d (%s) while it alone was recorded", pid, end.signal, unix.SignalName(unix.Signal(end.signal)))
		w.say(stateRefused, text)
		return fmt.Errorf("%w: %s", errCanary, text)
	}
	return ended(err)
}
