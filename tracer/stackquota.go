package tracer

// stackQuota is how many different stacks a recording keeps rows of: each is a row
// once, and that it was is kept for as long as the recording lasts.
type stackQuota struct {
	seen      map[int64]struct{}
	byProcess map[uint32]int // of those, whose it was first
	limit     int
}

func newStackQuota(limit int) stackQuota {
	return stackQuota{limit: limit, seen: map[int64]struct{}{}, byProcess: map[uint32]int{}}
}

// admit reports whether a stack may have a row, and whether it is the first time
// that it is asked. A process has a quarter of what is left at the most, so that
// none takes the place of all that come after it.
func (q *stackQuota) admit(pid uint32, id int64) (first, ok bool) {
	if _, ok := q.seen[id]; ok {
		return false, true
	}
	if q.byProcess[pid] >= (q.limit-len(q.seen))/MostOfStacks {
		return false, false
	}
	q.seen[id] = struct{}{}
	q.byProcess[pid]++
	return true, true
}

// ended forgets a process. Its stacks' rows stay.
func (q *stackQuota) ended(pid uint32) { delete(q.byProcess, pid) }
