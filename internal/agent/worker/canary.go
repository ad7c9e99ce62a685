package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/agent/sinks"
	"github.com/ebpfprof/ebpfprof/internal/fleet/live"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Of a job with several processes one is recorded alone first: if a kernel, a library or a
// runtime that nobody has tried does not stand being probed, that is one process of a job
// instead of all. If it dies as a process dies that was harmed, the others are left alone,
// and so is the job for a day, or until the agent begins again.

// errCanary is what a worker ends with whose canary has died.
var errCanary = errors.New("the job is left alone")

// StateRefused is the state of a job that is left alone.
const StateRefused = "refused"

// harmful are the signals that a process gets for what it executes: a breakpoint that is
// nobody's, an instruction that is none, memory that is not there.
var harmful = map[int32]bool{int32(unix.SIGTRAP): true, int32(unix.SIGILL): true, int32(unix.SIGSEGV): true, int32(unix.SIGBUS): true}

// canaried is what is kept of the process that is recorded alone.
type canaried struct {
	*worker
	ending   ending
	failures *live.Failures
	guarded  *sinks.Locked // the session's sink
}

func (w *worker) canaried(pid int) *canaried {
	k := &canaried{worker: w, ending: ending{pid: int32(pid)}}
	evidence := live.NewEvidence(w.host)
	k.failures = live.NewFailures(evidence)
	k.guarded = &sinks.Locked{To: sinks.Tee{&k.ending, w.config.Sink(sinks.Tee{evidence, k.failures})}}
	return k
}

// end tells what failed in the process meanwhile. There is no dataset of its last moments:
// what was recorded is a few seconds of one process.
func (k *canaried) end(ctx context.Context, now time.Time) {
	k.tell(ctx, now, k.failures.Take(), "")
	k.dropped += k.failures.Left()
}

// ending keeps how a process ended.
type ending struct {
	pid    int32
	signal int32 // 0: none
}

// Write implements event.Sink.
func (e *ending) Write(b *event.Batch) error {
	for i := range b.Processes {
		if p := &b.Processes[i]; p.PID == e.pid && p.EndedNS != nil && p.ExitSignal != nil {
			e.signal = *p.ExitSignal
		}
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
	k := w.canaried(pid)
	w.say("canary", fmt.Sprintf("process %d alone for %s", pid, time.Duration(w.config.Canary)))
	session, err := tracer.Open(ctx, options, k.guarded)
	if err != nil {
		return ended(err) // what keeps one from being recorded keeps all
	}
	w.seen.begin(session.Stats)
	limited, cancel := context.WithTimeout(ctx, time.Duration(w.config.Canary))
	defer cancel()
	err = session.Run(limited)
	w.seen.end()
	session.Close()
	k.end(ctx, time.Now())
	if signal := k.ending.signal; harmful[signal] {
		text := fmt.Sprintf("process %d was ended by signal %d (%s) while it alone was recorded", pid, signal,
			unix.SignalName(unix.Signal(signal)))
		w.say(StateRefused, text)
		return fmt.Errorf("%w: %s", errCanary, text)
	}
	return ended(err)
}
