package stacks

const (
	// MaxStacks have a row in one recording, and a process has at most one part in
	// MostOfStacks of those that are left; a user, its processes that have ended
	// included, one part in MostOfUser of those that are not others'.
	MaxStacks    = 1 << 21
	MostOfStacks = 4
	MostOfUser   = 2
	// maxResolved stacks keep the id that they were given by the kernel's name: those
	// that came last. The kernel sends the frames of the others again.
	maxResolved = 1 << 18
)

// Owner is who has a stack for the first time, and pays for it.
type Owner struct{ PID, User uint32 }

// stackQuota is how many different stacks a recording keeps rows of: each is a row
// once, and that it was is kept for as long as the recording lasts.
type stackQuota struct {
	Seen      map[int64]struct{}
	byProcess map[uint32]int // of those, whose it was first
	byUser    map[uint32]int // likewise, of processes that have ended too
	refused   map[uint32]int // of users: new stacks that had no row
	limit     int
}

func NewStackQuota(limit int) stackQuota {
	return stackQuota{limit: limit, Seen: map[int64]struct{}{}, byProcess: map[uint32]int{}, byUser: map[uint32]int{},
		refused: map[uint32]int{}}
}

// Admit reports whether a stack may have a row, and whether it is the first time
// that it is asked. A process has a quarter of what is left at the most, so that
// none takes the place of all that come after it; and a user half of what is not
// others', so that no user's children do, one after the other.
func (q *stackQuota) Admit(o Owner, id int64) (first, ok bool) {
	if _, ok := q.Seen[id]; ok {
		return false, true
	}
	others := len(q.Seen) - q.byUser[o.User]
	if q.byProcess[o.PID] >= (q.limit-len(q.Seen))/MostOfStacks || q.byUser[o.User] >= (q.limit-others)/MostOfUser {
		q.refused[o.User]++
		return false, false
	}
	q.Seen[id] = struct{}{}
	q.byProcess[o.PID]++
	q.byUser[o.User]++
	return true, true
}

// mostRefused is the user of whom the most new stacks had no row, and how many those were.
func (q *stackQuota) mostRefused() (user uint32, most int) {
	for of, n := range q.refused {
		if n > most {
			user, most = of, n
		}
	}
	return user, most
}

// ended forgets a process. Its stacks' rows stay, and are its user's.
func (q *stackQuota) ended(pid uint32) { delete(q.byProcess, pid) }
