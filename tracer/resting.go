package tracer

import (
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// The pages of the files that were read are given back again and again: often while all code
// is new, and the more seldom the longer the recording has lasted; and whenever many have come.
const (
	restsFirst = 2 * time.Second
	restsLast  = 30 * time.Second
	restsShare = 10 // of the time since the first
	restsRoom  = 24 << 20
	roomLook   = time.Second
)

// resting is when they were.
type resting struct {
	from, at time.Time // the first time, the last
	looked   time.Time // whether many have come
}

func (r *resting) rest(now time.Time) {
	if r.from.IsZero() {
		r.from, r.at = now, now
	}
	switch {
	case now.Sub(r.at) > min(restsLast, restsFirst+now.Sub(r.from)/restsShare):
		r.at = now
		elf.Rest()
	case now.Sub(r.looked) > roomLook:
		r.looked = now
		elf.RestAfter(restsRoom)
	}
}
