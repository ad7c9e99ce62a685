package waits

// What is kept at the most, of all processes: a job has a few groups, and as many works
// as it has collectives under way. One process has half of that at the most, so that it
// can't take the room of another job.
const (
	mostWorks  = 1 << 14
	mostGroups = 1 << 12
	ofOne      = 2 // one process has one part of so many
)

// held is how much one process has of the room.
type held struct {
	works, groups int
	watched       bool // a copy of a work of its has ended: its watchdog tells of them
}

// shares are what the processes that live have of it.
type shares map[int32]*held

func (s shares) process(pid int32) *held {
	h := s[pid]
	if h == nil {
		h = &held{}
		s[pid] = h
	}
	return h
}

// works are those that are followed.
type works map[workKey]*work

// room reports whether a process may have one more work; those that have ended make room.
func (w works) room(of shares, pid int32) bool {
	full := func() bool { return len(w) >= mostWorks || of.process(pid).works >= mostWorks/ofOne }
	return !full() || w.sweep(of) && !full()
}

// sweep forgets works that have ended, and reports whether there were any.
func (w works) sweep(of shares) bool {
	before := len(w)
	for key, one := range w {
		if one.finished {
			w.forget(of, key)
		}
	}
	return len(w) < before
}

func (w works) forget(of shares, key workKey) {
	if w[key] != nil {
		delete(w, key)
		of.process(key.pid).works--
	}
}

// groups are those that are known, of processes that have ended too.
type groups map[groupKey]*group

// room reports whether a process may have one more group. What is kept of processes that
// have ended makes room, the one that was heard of the longest ago first.
func (g groups) room(of shares, pid int32) bool {
	if of.process(pid).groups >= mostGroups/ofOne {
		return false
	}
	if len(g) < mostGroups {
		return true
	}
	var oldest *groupKey
	var heardNS int64
	for key, one := range g {
		if heard := max(timeOf(one.IssuedNS), timeOf(one.CompletedNS)); key.ended && (oldest == nil || heard < heardNS) {
			oldest, heardNS = &key, heard
		}
	}
	if oldest == nil {
		return false
	}
	delete(g, *oldest)
	return true
}

// timeOf is a time that may not be known; 0 then.
func timeOf(ns *int64) int64 {
	if ns == nil {
		return 0
	}
	return *ns
}
