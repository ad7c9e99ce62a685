package stacks

const (
	// MaxStacks have a row in one recording, and a process has at most one part in
	// MostOfStacks of those that are left.
	MaxStacks    = 1 << 21
	MostOfStacks = 4
	// maxResolved stacks keep the id that they were given by the kernel's name: those
	// that came last. The kernel sends the frames of the others again.
	maxResolved = 1 << 18
)

// stackQuota is how many different stacks a recording keeps rows of: each is a row
// once, and that it was is kept for as long as the recording lasts.
type stackQuota struct {
	Seen      map[int64]struct{}
	byProcess map[uint32]int // of those, whose it was first
	limit     int
}

func NewStackQuota(limit int) stackQuota {
	return stackQuota{limit: limit, Seen: map[int64]struct{}{}, byProcess: map[uint32]int{}}
}

// Admit reports whether a stack may have a row, and whether it is the first time
// that it is asked. A process has a quarter of what is left at the most, so that
// none takes the place of all that come after it.
func (q *stackQuota) Admit(pid uint32, id int64) (first, ok bool) {
	if _, ok := q.Seen[id]; ok {
		return false, true
	}
	if q.byProcess[pid] >= (q.limit-len(q.Seen))/MostOfStacks {
		return false, false
	}
	q.Seen[id] = struct{}{}
	q.byProcess[pid]++
	return true, true
}

// ended forgets a process. Its stacks' rows stay.
func (q *stackQuota) ended(pid uint32) { delete(q.byProcess, pid) }
