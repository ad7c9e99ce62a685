package reader

import (
	"errors"
	"fmt"
	"time"
)

// What a job may keep the tracer waiting is bounded: for each request, and for all requests of
// one process and of one user.
const (
	// patience is for one answer, from the last sign of life of a reader that waits; one that goes on has
	// patienceAtAll, and one that gets no CPU, since others have them, patienceStarved. Answers take some
	// 20 µs; a file of a network comes in some ms.
	patience        = 2 * time.Second
	patienceAtAll   = 20 * time.Second
	patienceStarved = 2 * time.Minute
	// processPatience is what all answers of one process may take, and userPatience those of one
	// user, beyond longAnswer each. They come back, a twentieth of the time.
	longAnswer      = 20 * time.Millisecond
	processPatience = 3 * time.Second
	userPatience    = 8 * time.Second
	// mostLeft of a user's readers, and mostLeftInAll, may be left behind at a time. Whoever has
	// that many is not read any more until one of them ends.
	mostLeft      = 4
	mostLeftInAll = 32
	// firstRest is how long a process is left alone that was late, twice as long each time.
	firstRest = 30 * time.Second
	longRest  = time.Hour
)

var errLate = errors.New("late")

// ErrLate: what is the job's did not come in time, or did not before.
var ErrLate = errors.New("the process keeps its readers waiting")

// LateError says of which process.
type LateError struct{ PID int }

func (e *LateError) Error() string {
	return fmt.Sprintf("pid %d keeps whoever reads its files or its memory waiting: it is left alone for a while", e.PID)
}

// Unwrap makes it an ErrLate.
func (e *LateError) Unwrap() error { return ErrLate }

// account is what was waited for a process, or a user.
type account struct {
	spent time.Duration
	at    time.Time
}

func (a *account) now(now time.Time) time.Duration {
	a.spent, a.at = max(0, a.spent-now.Sub(a.at)/20), now
	return a.spent
}

func (a *account) spend(now time.Time, took time.Duration) {
	if took > longAnswer {
		a.spent = a.now(now) + took
	}
}

// being is a process as the tracer knows it: a pid that has another start is another's.
type being struct {
	pid   int
	start uint64
}

// rest is how long a process that was late is left alone.
type rest struct {
	being
	until time.Time
	next  time.Duration
}

// ledger is what the tracer waited for, and for whom.
type ledger struct {
	processes map[int]*account
	users     map[uint32]*account
	resting   map[int]*rest
	left      map[uint32]int // readers that are left behind, by user
	leftInAll int
	told      []Late
}

func newLedger() *ledger {
	return &ledger{processes: map[int]*account{}, users: map[uint32]*account{}, resting: map[int]*rest{}, left: map[uint32]int{}}
}

// Late is a process that was left alone.
type Late struct {
	PID  int
	User uint32
}

// refuses reports whether a process is not to be asked now.
func (l *ledger) refuses(pid int, now time.Time) bool {
	if r := l.resting[pid]; r != nil {
		if now.Before(r.until) && startOf(pid) == r.start {
			return true
		}
		if startOf(pid) != r.start {
			delete(l.resting, pid)
			delete(l.processes, pid)
		}
	}
	if len(l.users) == 0 && l.leftInAll == 0 {
		return false
	}
	user := userOf(pid)
	switch a, all := l.processes[pid], l.users[user]; {
	case a != nil && a.now(now) > processPatience, all != nil && all.now(now) > userPatience,
		l.left[user] >= mostLeft, l.leftInAll >= mostLeftInAll:
		l.rest(pid, user, now)
		return true
	}
	return false
}

// rest has a process left alone for a while, and told of.
func (l *ledger) rest(pid int, user uint32, now time.Time) {
	r := l.resting[pid]
	if r == nil {
		l.sweep(now)
		r = &rest{being: being{pid, startOf(pid)}, next: firstRest}
		l.resting[pid] = r
		if len(l.told) < mostKept {
			l.told = append(l.told, Late{pid, user})
		}
	}
	r.until = now.Add(r.next)
	r.next = min(2*r.next, longRest)
}

// spend takes account of an answer.
func (l *ledger) spend(pid int, now time.Time, took time.Duration) {
	if took <= longAnswer {
		return
	}
	user := userOf(pid)
	if l.processes[pid] == nil {
		l.sweep(now)
		l.processes[pid] = &account{at: now}
	}
	if l.users[user] == nil {
		l.users[user] = &account{at: now}
	}
	l.processes[pid].spend(now, took)
	l.users[user].spend(now, took)
}

// mostKept accounts are kept before those that are spent are thrown away.
const mostKept = 1024

func (l *ledger) sweep(now time.Time) {
	if len(l.processes)+len(l.resting) < mostKept {
		return
	}
	for pid, a := range l.processes {
		if a.now(now) == 0 {
			delete(l.processes, pid)
		}
	}
	for pid, r := range l.resting {
		if now.After(r.until.Add(r.next)) || startOf(pid) != r.start {
			delete(l.resting, pid)
		}
	}
}

// late has a process left alone whose reader is left behind, and returns the user whose it is.
func (l *ledger) late(pid int, now time.Time) (user uint32) {
	user = userOf(pid)
	l.rest(pid, user, now)
	l.left[user]++
	l.leftInAll++
	return user
}

// ended notes that a reader that was left behind is gone.
func (l *ledger) ended(user uint32) {
	l.leftInAll--
	if l.left[user]--; l.left[user] == 0 {
		delete(l.left, user)
	}
}
