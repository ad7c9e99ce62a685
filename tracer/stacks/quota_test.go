package stacks

import "testing"

// takeStacks asks for so many new stacks, and says how many have a row.
func takeStacks(q *stackQuota, o Owner, n int) (admitted int) {
	for i := range n {
		if first, ok := q.Admit(o, int64(o.PID)<<40|int64(i)); first && ok {
			admitted++
		}
	}
	return admitted
}

// A process that makes ever new stacks has a share of the recording's; the others
// have theirs.
func TestAProcessHasAShareOfTheStacks(t *testing.T) {
	const limit = 1 << 14
	q := NewStackQuota(limit)
	first := Owner{1, 1000}
	if n := takeStacks(&q, first, limit); n > limit/MostOfStacks || n < limit/MostOfStacks/2 {
		t.Errorf("one process has %d of %d stacks", n, limit)
	}
	for pid := uint32(2); pid < 5; pid++ {
		if n := takeStacks(&q, Owner{pid, 1000}, 1000); n != 1000 {
			t.Errorf("process %d has %d of its 1000 stacks", pid, n)
		}
	}
	if news, ok := q.Admit(first, int64(first.PID)<<40); news || !ok {
		t.Errorf("a stack that has a row: %v, %v", news, ok)
	}
	if _, ok := q.Admit(first, 1); ok {
		t.Error("the first goes on")
	}
}

// Nor do the children of a user, each of which ends before the next, take it all: what
// they had stays their user's.
func TestAUserHasAShareOfTheStacks(t *testing.T) {
	const limit = 1 << 14
	q := NewStackQuota(limit)
	children := func(user uint32) (admitted int) {
		for pid := user * 1000; pid < user*1000+300; pid++ {
			admitted += takeStacks(&q, Owner{pid, user}, limit/16)
			q.ended(pid)
		}
		return admitted
	}
	if n := children(1); n != limit/MostOfUser {
		t.Errorf("a user's children have %d of %d stacks", n, limit)
	}
	if n := children(2); n != limit/MostOfUser/MostOfUser {
		t.Errorf("those of the next have %d of the %d that were left", n, limit/MostOfUser)
	}
	if n := takeStacks(&q, Owner{7, 3}, 500); n != 500 {
		t.Errorf("a neighbour has %d of its 500 stacks", n)
	}
	if len(q.Seen) > limit || len(q.byProcess) != 1 {
		t.Errorf("%d stacks are kept, of %d; of %d processes", len(q.Seen), limit, len(q.byProcess))
	}
}
