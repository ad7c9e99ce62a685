package unwinding

import (
	"errors"

	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// What of the kernel's tables a process, and the user that it belongs to, may take
// with files that it was the first to map. Others that map them too pay nothing.
const (
	partOfProcess = 4 // a quarter of each table
	partOfUser    = 2 // half
)

// ErrQuota: the process, or its user, has its share of the kernel's unwind tables.
var ErrQuota = errors.New("its process or user has its share of the unwind tables")

// amount is how much of each table something takes.
type amount struct{ files, leaves, rules int }

func (a amount) plus(b amount) amount {
	return amount{a.files + b.files, a.leaves + b.leaves, a.rules + b.rules}
}

func (a amount) minus(b amount) amount {
	return amount{a.files - b.files, a.leaves - b.leaves, a.rules - b.rules}
}

// beyond reports whether a is more than one part in so many of the tables.
func (a amount) beyond(whole amount, part int) bool {
	return a.files > whole.files/part || a.leaves > whole.leaves/part || a.rules > whole.rules/part
}

// share is what a process has of the tables; that of its user is the sum of theirs
// and of what those have left that ended. Nil is nobody's: the kernel's own vDSO.
type share struct {
	taken   amount
	user    *share
	refused int // files without a table, of a user
}

func (s *share) take(a amount) {
	for ; s != nil; s = s.user {
		s.taken = s.taken.plus(a)
	}
}

func (s *share) giveBack(a amount) {
	for ; s != nil; s = s.user {
		s.taken = s.taken.minus(a)
	}
}

// allows reports whether so much more is within the share of the process and that of
// its user.
func (s *share) allows(a, whole amount) bool {
	return s == nil || !s.taken.plus(a).beyond(whole, partOfProcess) && (s.user == nil || !s.user.taken.plus(a).beyond(whole, partOfUser))
}

// quotas are the shares of processes and of their users.
type quotas struct {
	shares map[int]*share // by pid
	users  map[uint32]*share
}

// of is the share of a process, which is made when it is first asked for.
func (q *quotas) of(pid int) *share {
	if s := q.shares[pid]; s != nil {
		return s
	}
	uid := process.User(pid)
	if q.users[uid] == nil {
		q.users[uid] = &share{}
	}
	s := &share{user: q.users[uid]}
	q.shares[pid] = s
	return s
}

// Refused counts the files that have no table because there was no room for one, or
// not within the share of their process or user; OfUser of them were of one User, the most.
type Refused struct {
	Full, Quota int
	User        uint32
	OfUser      int
}

func (r *Refused) count(err error, by *share) {
	switch {
	case errors.Is(err, ErrQuota):
		r.Quota++
		if by != nil && by.user != nil {
			by.user.refused++
		}
	case errors.Is(err, ErrNoRoom):
		r.Full++
	}
}

// Refused says how many files have no table for want of room.
func (u *Unwinder) Refused() Refused {
	u.mu.Lock()
	defer u.mu.Unlock()
	refused := u.room.refused
	for uid, of := range u.quotas.users {
		if of.refused > refused.OfUser {
			refused.User, refused.OfUser = uid, of.refused
		}
	}
	return refused
}

// Used is how much of the kernel's tables is in use, and how much there is: numbers of
// files, bytes, rules.
type Used struct{ Files, MaxFiles, Bytes, MaxBytes, Rules, MaxRules int }

// Used says how full the kernel's tables are. What no process maps any more counts until
// its room is needed.
func (u *Unwinder) Used() Used {
	_, bytes := u.Memory()
	u.mu.Lock()
	defer u.mu.Unlock()
	whole := u.room.whole()
	return Used{
		Files: int(u.room.nextNumber) - firstFile - len(u.room.numbers), MaxFiles: whole.files,
		Bytes: bytes, MaxBytes: u.room.leaves.limit * shardLeaves * unwind.LeafBytes,
		Rules: len(u.room.rules.numbers), MaxRules: maxRules,
	}
}
