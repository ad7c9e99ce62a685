package kernel

import (
	"sync"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// shares are what each user's processes have of the kernel's tables (bpf/shares.h). The
// programs count what they put in and take out, shares what user space does.
type shares struct {
	call    *ebpf.Collection
	mu      sync.Mutex
	changes map[uint32]*bpf.CallUserChange
}

func newShares(call *ebpf.Collection) *shares {
	return &shares{call: call, changes: map[uint32]*bpf.CallUserChange{}}
}

// change counts places that user space has put entries of a user into, less than zero those
// that it has emptied.
func (s *shares) change(user uint32, of bpf.CallShare, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.changes[user]
	if c == nil {
		c = &bpf.CallUserChange{}
		s.changes[user] = c
	}
	c.By[of] += uint32(by)
	// It fails where there are more users than are told apart: then this one has no places.
	_ = s.call.Maps["user_changes"].Put(user, c)
}

// UserShare is what one user has of a table, and what it was refused.
type UserShare struct {
	User    uint32
	Taken   int
	Refused uint64
	Last    int // the process that was refused last
}

// Of lists what users have of a table.
func (s *shares) Of(share bpf.CallShare) (all []UserShare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var user uint32
	var v bpf.CallUserShare
	counted := map[uint32]bpf.CallUserShare{}
	for it := s.call.Maps["user_shares"].Iterate(); it.Next(&user, &v); {
		counted[user] = v
	}
	for user := range s.changes {
		if _, known := counted[user]; !known { // the programs have put nothing in for it yet
			counted[user] = bpf.CallUserShare{}
		}
	}
	for user, v := range counted {
		taken := v.Taken[share]
		if c := s.changes[user]; c != nil {
			taken += c.By[share]
		}
		all = append(all, UserShare{User: user, Taken: int(int32(taken)), Refused: v.Refused[share], Last: int(v.Last[share])})
	}
	return all
}

// userPart is how much of a table one user may have.
func userPart(size int) int { return max(1, size*3/4) }

// roomFor is the size of a table of which one user may have most places: the limit that somebody sets for a recording
// of one user's processes is what they get.
func roomFor(most int) int { return most + most/3 + 1 }
