package explain

import (
	"database/sql/driver"
	"fmt"
	"strings"
)

// blocked: the thread waits in a call for something that is neither its data, its device nor its peers: it sleeps, waits
// for a lock, a child, a pool, a server. A wait is explained by what ended it.
func blocked(r *Recording) (found []Explanation, err error) {
	elsewhere := signLoaderNext | signLoaderStart | signSave | signCollective | signDeviceSync | signCompile | signOpenMP
	waits := r.rows(func(row *Row) bool {
		if row.OnCPU || row.Cause != "syscall" || row.Stack.Has(elsewhere) || row.isGIL() || row.waitsForBackward() ||
			row.Syscall == "futex" && row.Stack.below(signTokenizer|signCompress) { // their threads do that work
			return false
		}
		idle := row.Stack.Has(signSelect) || strings.HasPrefix(row.Syscall, "epoll")
		return !(idle && row.Stack.Has(signEventLoop|signHTTPServer)) && (!isFileCall(row.Syscall) ||
			row.Stack.Has(signPool|signHTTP|signPipe|signSubprocess))
	})
	for _, place := range heaviest(r.Rows, waits, innermost, byPlace) {
		if place.ns < leastShare/2*r.Wall() || len(found) == 3 {
			break
		}
		claims := map[int]float64{}
		for i := range waits {
			if r.Rows[i].Stack.Innermost() == place.of {
				claims[i] = 1
			}
		}
		e, err := r.blockedAt(place.of, claims)
		if err != nil {
			return nil, err
		}
		found = append(found, e)
	}
	return found, nil
}

// waitsForBackward: the thread that calls backward() waits for the autograd engine's thread of a device, which works.
func (row *Row) waitsForBackward() bool {
	return !row.OnCPU && row.Syscall == "futex" && row.Stack.Has(signBackward)
}

func (row *Row) isGIL() bool { return row.Stack.Has(signGIL) && !row.OnCPU }

func isFileCall(call string) bool {
	for _, c := range ioCalls {
		if c == call {
			return true
		}
	}
	return false
}

func (r *Recording) blockedAt(at *Frame, claims map[int]float64) (Explanation, error) {
	e := Explanation{claims: claims, Place: at.place(), title: "a blocked call"}
	share := percent(r.share(claims))
	has := func(s Sign) bool { return r.sum(r.withSign(claims, s)) > r.sum(claims)/2 }
	call := ""
	if calls := heaviest(r.Rows, claims, func(row *Row) string { return row.Syscall }, strings.Compare); len(calls) > 0 {
		call = calls[0].of
	}
	loop := ""
	if has(signEventLoop) {
		loop = " The call blocks the event loop, so that no other request or task goes on meanwhile."
	}
	switch {
	case has(signSleep) || call == "clock_nanosleep" || call == "nanosleep":
		e.title = "sleeping"
		e.sentence = fmt.Sprintf("%s of the time the thread sleeps at %s.%s", share, at.at(), loop)
		e.Advice = "Wait for the event itself instead of sleeping, or sleep less."
		if loop != "" {
			e.Advice = "Await asyncio.sleep, or run the call in a thread (run_in_executor, asyncio.to_thread)."
		}
		return e, nil
	case has(signMessage):
		return r.sender(e, at, claims), nil
	case has(signDatabase):
		e.title = "waiting for a database"
		e.sentence = fmt.Sprintf("%s of the time the thread waits for a database at %s.%s", share, at.at(), loop)
		e.Advice = "Ask for many rows at once, add an index on what is asked for, ask ahead of time, or read the table before the loop."
		return e, nil
	case has(signHTTP) || call == "recvfrom" || call == "connect" || call == "recvmsg":
		e.title = "waiting for a server"
		e.sentence = fmt.Sprintf("%s of the time the thread waits for a network answer at %s.%s", share, at.at(), loop)
		e.Advice = "Ask ahead of time or for several at once, reuse one session, or ask from another thread."
		return e, nil
	case has(signPool):
		return r.pool(e, at, claims), nil
	case has(signSubprocess) || call == "wait4" || call == "waitid":
		e.title = "waiting for a child process"
		e.sentence = fmt.Sprintf("%s of the time the thread waits for a child process at %s.", share, at.at())
		e.Advice = "Start it ahead of time, keep one running, or do its work in the process."
		if starts, err := r.starts(); err != nil {
			return e, err
		} else if starts != "" {
			e.sentence = fmt.Sprintf("%s of the time the thread waits for child processes at %s: %s.", share, at.at(), starts)
			e.Advice = "Start one that lives on and give it the work, or do the work in the process."
		}
		if f := r.busiestElsewhere(true); f != nil {
			e.Evidence = fmt.Sprintf("Meanwhile the busiest other process is at %s.", f.at())
		}
		return e, nil
	case has(signPipe):
		return r.sender(e, at, claims), nil
	case call == "flock" || call == "fcntl":
		e.title = "a lock on a file"
		e.sentence = fmt.Sprintf("%s of the time the thread waits at %s for a lock on a file (%s) that another process or thread holds.%s",
			share, at.at(), call, loop)
		e.Advice = "Hold it for less, give each process a file of its own, or take the lock less often; lslocks shows who holds it."
		return e, nil
	case call == "futex" || has(signLock):
		return r.lockAt(e, at, claims)
	}
	e.sentence = fmt.Sprintf("%s of the time the thread waits in the system call %s at %s.%s", share, call, at.at(), loop)
	e.Advice = "Take the wait out of the step: do it ahead of time, or in another thread."
	return e, nil
}

func (r *Recording) withSign(claims map[int]float64, s Sign) map[int]float64 {
	with := map[int]float64{}
	for i, part := range claims {
		if r.Rows[i].Stack.Has(s) {
			with[i] = part
		}
	}
	return with
}

// oftenStarts is how many processes a second are many.
const oftenStarts = 1.0

// starts says how many processes the one that sets the pace starts, if they are many.
func (r *Recording) starts() (string, error) {
	var count, commands, wall int64
	err := r.db.Row(r.ctx, `WITH s AS (SELECT command, count, wall_ns FROM short_process WHERE parent_pid = $1
			UNION ALL SELECT command, 1, least(coalesce(ended_ns, $3), $3) - started_ns FROM process WHERE parent_pid = $1 AND started_ns BETWEEN $2
			AND $3)
		SELECT coalesce(sum(count), 0)::BIGINT, count(DISTINCT command), coalesce(sum(wall_ns), 0)::BIGINT
		FROM s`, []any{r.Pace.PID, r.From, r.Until}, &count, &commands, &wall)
	rate := float64(count) / r.Wall() * 1e9
	if err != nil || rate < oftenStarts {
		return "", err
	}
	return fmt.Sprintf("it starts %.0f processes a second, which live for %.0f ms on average", rate, float64(wall)/float64(count)/1e6), nil
}

// holding is what the thread that ended waits did while they lasted.
type holding struct {
	frame   *Frame // the user's
	syscall string
	part    float64
}

// doing names the system call, "" if it says nothing.
func (h holding) doing() string {
	if h.syscall == "" || h.syscall == "futex" {
		return ""
	}
	return " in " + h.syscall
}

// mostWaits bounds how many waits are matched with what the other thread did meanwhile.
const mostWaits = 400

// meanwhile is what a thread did during the longest waits of the claims: the user's line and system call with the most time.
func (r *Recording) meanwhile(claims map[int]float64, waker int32) (h holding, err error) {
	ids := map[int64]bool{}
	for id, s := range r.stacks {
		for i := range claims {
			if r.Rows[i].Stack == s {
				ids[id] = true
				break
			}
		}
	}
	var list []string
	for id := range ids {
		list = append(list, fmt.Sprint(id))
	}
	if len(list) == 0 {
		return h, nil
	}
	sums := map[holding]float64{}
	total := 0.0
	err = r.db.Each(r.ctx, fmt.Sprintf(`WITH w AS (SELECT ts_ns AS b, ts_ns + weight_ns AS e FROM sample WHERE pid = %[1]d AND tid = %[2]d
		AND state = 'off_cpu'
			AND waker_tid = %[3]d AND stack_id IN (%[4]s) ORDER BY weight_ns DESC LIMIT %[5]d)
		SELECT s.stack_id, coalesce(s.syscall, ''), sum(least(s.ts_ns + s.weight_ns, w.e) - greatest(s.ts_ns, w.b))::BIGINT
		FROM w JOIN sample s ON s.tid = %[3]d AND s.ts_ns < w.e AND s.ts_ns + s.weight_ns > w.b WHERE s.stack_id IS NOT NULL GROUP BY ALL`,
		r.Pace.PID, r.Pace.TID, waker, strings.Join(list, ","), mostWaits), func(v []driver.Value) error {
		ns := float64(integer(v[2]))
		total += ns
		if s := r.stacks[integer(v[0])]; s != nil && s.Innermost() != nil {
			sums[holding{frame: s.Innermost(), syscall: text(v[1])}] += ns
		}
		return nil
	})
	for k, ns := range sums {
		if ns/total > h.part || ns/total == h.part && h.frame != nil && byPlace(k.frame, h.frame) < 0 {
			h = holding{k.frame, k.syscall, ns / total}
		}
	}
	return h, err
}

// calledName is the Python function that a place waits in: Queue.get, Future.result; "" if it calls none.
func (r *Recording) calledName(claims map[int]float64) string {
	if f := r.top(claims, func(row *Row) *Frame { return row.Stack.Called() }); f != nil {
		return f.name()
	}
	return ""
}

// sender explains a wait for another process's message by what the job's other processes do.
func (r *Recording) sender(e Explanation, at *Frame, claims map[int]float64) Explanation {
	e.title = "waiting for another process"
	in := ""
	if name := r.calledName(claims); name != "" {
		in = " in " + name
	}
	e.sentence = fmt.Sprintf("%s of the time the thread waits%s at %s for what another process sends.", percent(r.share(claims)), in, at.at())
	e.Advice = "What it waits for is made too slowly: make that work cheaper, or share it among more processes if CPUs are left."
	busy, moving := 0.0, 0.0
	work := map[int]float64{}
	for i := range r.Others {
		row := &r.Others[i]
		if row.PID == r.Pace.PID || !row.OnCPU && row.Cause != causePreempted {
			continue
		}
		busy += row.NS
		work[i] = 1
		if row.Stack.Has(signPickle | signPipe) {
			moving += row.NS
		}
	}
	if places := heaviest(r.Others, work, func(row *Row) *Frame { return row.Stack.Innermost() }, byPlace); len(places) > 0 &&
		places[0].ns > busy/3 {
		e.Evidence = fmt.Sprintf("The job's other processes spend %s of their CPU time at %s.",
			percent(places[0].ns/busy), places[0].of.at())
	}
	if busy > 0 && moving > busy/2 {
		e.Evidence = fmt.Sprintf("%s of what the job's other processes do is to serialise it and move it through pipes.", percent(moving/busy))
		e.Advice = "Send less in each message, or give large arrays through shared memory (multiprocessing.shared_memory, torch.multiprocessing)."
	}
	return e
}

// handOverAt explains a wait for what another thread makes by what that does meanwhile. Without a thread that ended it, the
// wait may have ended by its timeout, as that of an event that a loop sleeps on does.
func (r *Recording) handOverAt(e Explanation, at *Frame, claims map[int]float64, h holding, woken bool) Explanation {
	name := r.calledName(claims)
	if name == "" {
		name = "a queue"
	}
	e.title = "waiting for another thread's work"
	e.sentence = fmt.Sprintf("%s of the time the thread waits in %s at %s for another thread's work.", percent(r.share(claims)), name, at.at())
	switch {
	case h.frame != nil:
		e.sentence = fmt.Sprintf("%s of the time the thread waits in %s at %s, while the thread that it waits for is at %s%s.",
			percent(r.share(claims)), name, at.at(), h.frame.at(), h.doing())
	case !woken:
		e.sentence = fmt.Sprintf("%s of the time the thread waits in %s at %s, for another thread's work or for its own timeout: "+
			"no thread was seen to end these waits.", percent(r.share(claims)), name, at.at())
	}
	e.Advice = "Make that work cheaper, begin it earlier, or share it among more threads, or processes where it holds Python's global lock (GIL)."
	return e
}

// lockAt explains a wait for a lock by its holder and what that does meanwhile.
func (r *Recording) lockAt(e Explanation, at *Frame, claims map[int]float64) (Explanation, error) {
	e.title = "a lock that another thread holds"
	e.sentence = fmt.Sprintf("%s of the time the thread waits for a lock (futex) at %s.", percent(r.share(claims)), at.at())
	e.Advice = "Hold the lock for less: take what is needed under it, and do the work without it."
	handOver := r.sum(r.withSign(claims, signHandOver)) > r.sum(claims)/2
	wakers := heaviest(r.Rows, claims, func(row *Row) int32 { return row.Waker }, func(a, b int32) int { return int(a - b) })
	h := holding{}
	if len(wakers) > 0 {
		var err error
		if h, err = r.meanwhile(claims, wakers[0].of); err != nil {
			return e, err
		}
	}
	if handOver {
		return r.handOverAt(e, at, claims, h, len(wakers) > 0), nil
	}
	if h.frame == nil {
		if in := heaviest(r.Rows, claims, nativePackage, strings.Compare); len(in) > 0 && in[0].ns > r.sum(claims)/2 {
			e.title = "waiting for a library's threads"
			e.sentence = fmt.Sprintf("%s of the time the thread waits in %s at %s, for that library's own threads.", percent(r.share(claims)),
				in[0].of, at.at())
			e.Advice = "Call it less often, or on less data; more of its threads help only if CPUs are left."
		}
		return e, nil
	}
	e.sentence = fmt.Sprintf("%s of the time the thread waits for a lock (futex) at %s, while the thread that releases it is at %s%s.",
		percent(r.share(claims)), at.at(), h.frame.at(), h.doing())
	if isFileCall(h.syscall) {
		e.Advice = "The holder reads, writes or syncs files with the lock held: take the data under the lock, and write without it."
	}
	return e, nil
}

// busiestElsewhere is the user's line with the most time on the CPU in other threads, or in other processes only.
func (r *Recording) busiestElsewhere(processes bool) *Frame {
	claims := map[int]float64{}
	for i := range r.Others {
		if r.Others[i].OnCPU && (!processes || r.Others[i].PID != r.Pace.PID) {
			claims[i] = 1
		}
	}
	if all := heaviest(r.Others, claims, func(row *Row) *Frame { return row.Stack.Innermost() }, byPlace); len(all) > 0 {
		return all[0].of
	}
	return nil
}

// pool explains a wait for a pool's workers by what the workers, and the threads that feed them, spend their time on.
func (r *Recording) pool(e Explanation, at *Frame, claims map[int]float64) Explanation {
	share := percent(r.share(claims))
	busy, moving := 0.0, 0.0
	work := map[int]float64{}
	for i := range r.Others {
		row := &r.Others[i]
		active := row.OnCPU || row.Cause == causePreempted
		// A thread that waits in a pipe waits for the other end, which is busy, or for work.
		if !active {
			continue
		}
		busy += row.NS
		if row.Stack.Has(signPickle | signPipe) {
			moving += row.NS
		} else {
			work[i] = 1
		}
	}
	name := "the pool"
	if f := r.top(claims, func(row *Row) *Frame { return row.Stack.Called() }); f != nil {
		name = f.name()
	}
	e.title = "waiting for a pool"
	if busy > 0 && moving > busy/3 {
		e.title = "pickling to a pool"
		e.Explained = r.share(claims) * moving / busy
		e.sentence = fmt.Sprintf("%s of the time goes to pickling: %s at %s waits while %s of what its workers and feeding threads do is to "+
			"serialise arguments and results and move them through pipes.",
			percent(e.Explained), name, at.at(), percent(moving/busy))
		e.Advice = "Send less for each task: give large arrays to the workers once (an initializer, shared memory), and send what differs."
		return e
	}
	e.sentence = fmt.Sprintf("%s of the time the thread waits for %s at %s.", share, name, at.at())
	e.Advice = "Give the pool more workers if CPUs are left, or make its tasks cheaper."
	if places := heaviest(r.Others, work, func(row *Row) *Frame { return row.Stack.Innermost() }, byPlace); len(places) > 0 && busy > 0 {
		e.sentence = fmt.Sprintf("%s of the time the thread waits for %s at %s, whose workers spend %s of theirs at %s.", share, name, at.at(),
			percent(places[0].ns/busy), places[0].of.at())
	}
	return e
}
