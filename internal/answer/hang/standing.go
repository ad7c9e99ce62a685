package hang

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// A job may stand still without any collective: a lock that its holder never releases, a loader's
// worker that never answers, a signal that stopped it.

// standing are the processes of which a thread stands still or cannot run.
func (r *Recording) standing(to *Report) {
	ranks := map[int64]*int64{}
	for _, known := range slices.Concat(r.Processes, r.Others) {
		ranks[known.PID] = known.Rank
	}
	pids := make([]int64, 0, len(r.Threads))
	for pid := range r.Threads {
		if _, alive := ranks[pid]; alive {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	for _, pid := range pids {
		threads := r.Threads[pid]
		p := Process{Host: r.Host, PID: pid, Rank: ranks[pid], Stopped: haltOf(threads), Threads: threads}
		if first := &threads[0]; first.Main {
			p.Place = first.place()
			if first.Still != nil {
				p.Seconds = *first.Still
			}
		}
		to.Standing = append(to.Standing, p)
	}
}

// WriteStanding writes where the threads of each process stood.
func (r *Report) WriteStanding(w io.Writer) error {
	var b strings.Builder
	if len(r.Standing) == 0 {
		b.WriteString("no thread stood still: in the recording the main thread of every process ran at least once in 2 s\n")
	}
	on := r.hosts()
	for i := range r.Standing {
		r.Standing[i].writeStanding(&b, on)
	}
	_, err := io.WriteString(w, printable.Lines(b.String()))
	return err
}

func (p *Process) writeStanding(b *strings.Builder, on func(host string) string) {
	name := fmt.Sprintf("pid %d", p.PID)
	if p.Rank != nil {
		name += fmt.Sprintf(" (rank %d)", *p.Rank)
	}
	fmt.Fprintf(b, "%s%s", on(p.Host), name)
	if p.Stopped != "" {
		fmt.Fprintf(b, " is %s: %s", p.Stopped, p.advice())
	}
	b.WriteString("\n")
	if text := p.Locks(); text != "" {
		fmt.Fprintf(b, "  %s\n", text)
	}
	shown := 0
	for i := range p.Threads {
		t := &p.Threads[i]
		if !t.Main && !t.RunsPython() && shown > 0 || len(t.Frames) == 0 && t.Syscall == "" {
			continue
		}
		shown++
		fmt.Fprintf(b, "  %s\n", t.state())
		for k, f := range t.Frames {
			if k == textFrames {
				fmt.Fprintf(b, "    … %d more\n", len(t.Frames)-k)
				break
			}
			fmt.Fprintf(b, "    %s\n", f.text())
		}
	}
}

// advice says how to make a stopped process go on.
func (p *Process) advice() string {
	if p.Threads[0].State == event.ThreadTraced {
		return "continue it in the debugger, or detach that"
	}
	return fmt.Sprintf("continue it with kill -CONT %d", p.PID)
}

// takesLock reports whether a line of the job's own code asks for a lock and does not get it: the
// innermost Python frame is the job's, and the thread waits in the lock's own function. A thread that
// waits in a queue or for a condition has the library's frames in between.
func (t *Thread) takesLock() bool {
	if t.Syscall != "" && t.Syscall != "futex" {
		return false
	}
	for _, f := range t.Frames {
		switch {
		case f.Kind == "python":
			return false
		case lockFunction(f.Function):
			return t.owns()
		}
	}
	return false
}

// owns reports whether the innermost Python frame is of the job's own code.
func (t *Thread) owns() bool {
	for i, f := range t.Frames {
		if f.Kind == "python" {
			return Place(t.Frames[i:i+1]) != "" && ofUser(f)
		}
	}
	return false
}

func lockFunction(name string) bool {
	return slices.ContainsFunc(lockFunctions, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// lockFunctions are what names of functions begin with that take a lock: CPython's and the C library's.
var lockFunctions = []string{
	"PyThread_acquire_lock", "lock_PyThread_acquire_lock", "lock_acquire", "acquire_timed", "rlock_acquire", "_PyMutex_Lock", "PyMutex_Lock",
	"_PySemaphore_Wait", "pthread_mutex_lock", "___pthread_mutex_lock", "__lll_lock_wait",
}

// Locks says who holds the lock that threads of the process wait for, as far as their stacks show
// it; "" without such threads.
func (p *Process) Locks() string {
	var waiting, others []*Thread
	for i := range p.Threads {
		t := &p.Threads[i]
		switch {
		case t.takesLock() && (t.Still != nil || t.State == event.ThreadSleeping):
			waiting = append(waiting, t)
		case t.RunsPython():
			others = append(others, t)
		}
	}
	inUser := slices.DeleteFunc(slices.Clone(others), func(t *Thread) bool { return t.place() == "" || !t.ownsAny() })
	count := 0
	for _, t := range waiting {
		count += len(t.TIDs)
	}
	switch {
	case count == 0:
		return ""
	case count == 1 && len(inUser) == 0:
		return fmt.Sprintf("%s waits for a lock at %s; no other thread of the process is in its code, "+
			"so that it holds the lock itself (taken twice) or nobody does (held across a fork)", waiting[0].label(), waiting[0].place())
	case count == 1:
		return fmt.Sprintf("%s waits for a lock at %s; it may be held by %s at %s",
			waiting[0].label(), waiting[0].place(), inUser[0].label(), inUser[0].place())
	case len(inUser) == 0:
		places := make([]string, 0, len(waiting))
		for _, t := range waiting {
			places = append(places, t.label()+" at "+t.place())
		}
		return "deadlock: these threads wait for locks and no other thread of the process is in its code, so that they hold each other's: " +
			strings.Join(places, "; ")
	}
	return fmt.Sprintf("%d threads wait for locks; %s at %s waits for something else and may hold one of them",
		count, inUser[0].label(), inUser[0].place())
}

func (t *Thread) label() string {
	if t.Main {
		return "the main thread"
	}
	if t.Name != "" {
		return fmt.Sprintf("thread %d (%s)", t.TIDs[0], t.Name)
	}
	return fmt.Sprintf("thread %d", t.TIDs[0])
}

// ownsAny reports whether the stack has a line of the job's own code.
func (t *Thread) ownsAny() bool { return slices.ContainsFunc(t.Frames, ofUser) }
