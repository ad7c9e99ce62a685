package explain

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
)

// What an idle server does, and an idle event loop: whether that serves others, or asks them, its stack does not show.
const (
	waitsForRequests = "The server waits for requests"
	loopWaits        = "The event loop waits for requests or answers"
)

// Idles reports whether the verdict is that a server, or an event loop, waits for others.
func (v *Verdict) Idles() bool {
	return v != nil && (strings.HasPrefix(v.Sentence, waitsForRequests) || strings.HasPrefix(v.Sentence, loopWaits))
}

// waitsForEvents reports whether a thread waits for a connection or for what comes on one.
func (s *standing) waitsForEvents() bool {
	return s.Stack.Has(signSelect) || strings.HasPrefix(s.Syscall, "epoll") || strings.HasPrefix(s.Syscall, "accept") ||
		slices.Contains([]string{"poll", "ppoll", "select", "pselect6"}, s.Syscall)
}

// serves reports whether a thread is a server's that waits for requests.
func (s *standing) serves() bool {
	return s != nil && s.Stack.Has(signHTTPServer|signEventLoop) && s.waitsForEvents()
}

// mostlyWaits is which share of the time a wait must hold for the thread to stand in it, though it looks up now and then.
const mostlyWaits = 0.9

// byTurns is the wait that the thread that sets the pace is in nearly all the time: a server's loop wakes up several
// times a second to see whether it has to end, and goes on waiting. nil if there is none.
func (r *Recording) byTurns() *standing {
	type wait struct {
		stack   *Stack
		syscall string
	}
	waits := map[int]float64{}
	for i := range r.Rows {
		if row := &r.Rows[i]; !row.OnCPU && row.Cause == "syscall" && len(row.Stack.Frames) > 0 {
			waits[i] = 1
		}
	}
	all := heaviest(r.Rows, waits, func(row *Row) wait { return wait{row.Stack, row.Syscall} },
		func(a, b wait) int { return strings.Compare(a.syscall, b.syscall) })
	if len(all) == 0 {
		return nil
	}
	at := &standing{Thread: r.Pace, Syscall: all[0].of.syscall, Stack: all[0].of.stack}
	alike := map[int]float64{}
	for i := range waits {
		if r.Rows[i].Syscall == at.Syscall && r.Rows[i].Stack.Innermost() == at.Stack.Innermost() {
			alike[i] = 1
		}
	}
	if r.share(alike) < mostlyWaits {
		return nil
	}
	return at
}

// leastQuiet is how long nothing must have moved, ns.
const leastQuiet = 5e9

// nothingMoves: no step, no reads and writes and hardly any time on the CPU in any thread of the job at the end of the
// recording. What the training waits for stands where the recorder found it.
func nothingMoves(r *Recording) ([]Explanation, error) {
	if e := bySignal(r); e != nil {
		return []Explanation{*e}, nil
	}
	quiet := max(leastQuiet, int64(5*r.steps.medianNS))
	since := r.Until - quiet
	if since < r.From {
		if r.Until-r.From < leastQuiet*9/10 {
			return nil, nil
		}
		since = r.From
	}
	if r.Loop != nil {
		for _, s := range r.Loop.Steps {
			if s.Begin > since || s.End > since {
				return nil, nil
			}
		}
	}
	var ran, io, calls sql.NullInt64
	err := r.db.Row(r.ctx, fmt.Sprintf(`SELECT (SELECT sum(weight_ns)::BIGINT FROM sample WHERE state = 'on_cpu' AND ts_ns > %[1]d),
		(SELECT sum(calls)::BIGINT FROM io WHERE ts_ns > %[1]d AND bytes > 0 AND kind IN ('file', 'socket', 'pipe')),
		(SELECT count(*) FROM span WHERE ts_ns > %[1]d AND layer IN ('op', 'autograd', 'runtime'))`, since), nil, &ran, &io, &calls)
	if err != nil {
		return nil, err
	}
	if float64(ran.Int64) > 0.01*float64(r.Until-since) || io.Int64 > 10 || calls.Int64 > 0 {
		return nil, nil
	}
	seconds := float64(r.Until-since) / 1e9
	at := r.standingAt(r.Pace)
	if at == nil {
		at = r.byTurns()
	}
	if at.serves() {
		what := waitsForRequests
		if !at.Stack.Has(signHTTPServer) {
			what = loopWaits
		}
		return []Explanation{{class: stopped, Explained: 1, title: "waits for requests",
			sentence: fmt.Sprintf("%s: for the last %.0f s nothing in the job ran.", what, seconds)}}, nil
	}
	if r.few && len(r.still) == 0 {
		return nil, nil // what waits for moments only, and seldom, is no hang
	}
	e := Explanation{class: stopped, Explained: 1, title: "nothing moves"}
	e.sentence = fmt.Sprintf("Nothing moves: for the last %.0f s the job used no CPU, made no step and read or wrote nothing.", seconds)
	if r.in.Hang != "" {
		e.Evidence = r.in.Hang
		return []Explanation{e}, nil
	}
	where := ""
	if at != nil {
		if f := at.Stack.Innermost(); f != nil {
			e.Place = f.place()
			where = fmt.Sprintf("The %s waits at %s%s", r.worker(), f.at(), waitsIn(at))
		}
	}
	holder := r.holdup(at)
	if holder != nil {
		f := holder.user()
		e.Place = f.place()
		who := fmt.Sprintf("thread %d", holder.TID)
		if holder.Stack.Has(signWorker) {
			who = "the loader's worker"
		} else if holder.PID != r.Pace.PID {
			who = fmt.Sprintf("process %d", holder.PID)
		}
		e.sentence = fmt.Sprintf("Nothing moves: %s stands at %s%s, and for the last %.0f s the job made no step.", who, f.at(),
			lockWords(holder), seconds)
		if where != "" && holder != at {
			e.Evidence = where + "."
		}
		if holder.Stack.Has(signWorker) && holder.lock() {
			e.Advice = "A worker that is forked while another thread holds a lock inherits it locked, and nobody unlocks it: " +
				"create the lock in the worker, or start workers with spawn or forkserver."
		} else if holder.lock() {
			e.Advice = "Find who holds this lock: `ebpfprof stacks --standing` shows where every thread stands."
			if locks := r.locks(holder.PID); locks != "" {
				e.Advice = strings.ToUpper(locks[:1]) + locks[1:] + "."
			}
		}
	} else if where != "" {
		e.sentence = fmt.Sprintf("Nothing moves: for the last %.0f s the job made no step and used no CPU. %s.", seconds, where)
	}
	return []Explanation{e}, nil
}

// bySignal is a process of the job that cannot run: a signal or a debugger has stopped it.
func bySignal(r *Recording) *Explanation {
	for i := range r.in.Standing {
		p := &r.in.Standing[i]
		if p.Stopped == "" {
			continue
		}
		e := &Explanation{class: stopped, Explained: 1, title: "a process is " + p.Stopped}
		e.sentence = fmt.Sprintf("Nothing moves: process %d is %s, so that nothing in it runs.", p.PID, p.Stopped)
		e.Advice = fmt.Sprintf("Continue it: kill -CONT %d.", p.PID)
		if p.Stopped == hang.ByDebugger {
			e.Advice = "Continue it in the debugger, or detach that."
		}
		if p.Place != "" {
			e.Place = p.Place
			e.Evidence = fmt.Sprintf("Its main thread stands at %s.", p.Place)
		}
		return e
	}
	return nil
}

// locks says who holds the lock that threads of a process wait for, "" if that is not known.
func (r *Recording) locks(pid int32) string {
	for i := range r.in.Standing {
		if p := &r.in.Standing[i]; p.PID == int64(pid) {
			return p.Locks()
		}
	}
	return ""
}

func (r *Recording) standingAt(t Thread) *standing {
	for i := range r.still {
		if r.still[i].Thread == t {
			return &r.still[i]
		}
	}
	return nil
}

// user is the user's frame that a thread stands at: of a loader's worker the data set's, not the loop's that forked it.
func (s *standing) user() *Frame {
	if s.Stack.Has(signWorker) {
		return s.Stack.userBelow(signWorker)
	}
	return s.Stack.Innermost()
}

func (s *standing) lock() bool { return s.Syscall == "futex" || s.Stack.Has(signLock) }

func lockWords(s *standing) string {
	if s.lock() {
		return ", waiting for a lock (futex)"
	}
	if s.Syscall != "" {
		return " in " + s.Syscall
	}
	return ""
}

func waitsIn(s *standing) string {
	switch {
	case s.Stack.Has(signLoaderNext):
		return " for its data loader"
	case s.Stack.Has(signCollective):
		return " for a collective"
	case s.Syscall != "":
		return " in " + s.Syscall
	}
	return ""
}

// holdup is the thread that the training thread's wait leads to: one that stands at a line of the user's code, in a
// worker before others, at a lock before other waits.
func (r *Recording) holdup(pace *standing) *standing {
	var candidates []*standing
	for i := range r.still {
		s := &r.still[i]
		if s.Thread == r.Pace || s.user() == nil || s.Syscall == "clock_nanosleep" {
			continue
		}
		if pace != nil && s.PID == r.Pace.PID && !s.lock() {
			continue
		}
		candidates = append(candidates, s)
	}
	if pace != nil && pace.user() != nil && pace.lock() && !pace.Stack.Has(signLoaderNext|signPool|signSubprocess|signCollective) &&
		len(candidates) == 0 {
		return pace
	}
	if len(candidates) == 0 {
		return nil
	}
	return slices.MinFunc(candidates, func(a, b *standing) int {
		score := func(s *standing) int { return -2*btoi(s.Stack.Has(signWorker)) - btoi(s.lock()) }
		if d := score(a) - score(b); d != 0 {
			return d
		}
		return int(a.SinceNS-b.SinceNS)/1e6 + int(a.TID-b.TID)
	})
}
