package tracer

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// introductions are the threads that samples were taken of, and which of them had
// a number when: a tid is used again, and of a thread without calls no end is told.
type introductions map[threadID]introduction

type threadID struct{ pid, tid int32 }

type introduction struct {
	startedNS int64
	sampledNS int64 // the last time
}

const (
	// introducedAgain is how long after a thread's last sample its number may be
	// another's.
	introducedAgain = 10 * time.Second
	// maxIntroduced bounds what is kept: beyond it, those that were not sampled for
	// introducedAgain go, and if there are none, all.
	maxIntroduced = 1 << 15
)

// introduce gives a thread that is sampled its row, if no probe has: its name is
// read while it is there.
func (d *decoder) introduce(pid, tid int32, sampledNS int64) {
	id := threadID{pid, tid}
	known, ok := d.introduced[id]
	again := !ok || sampledNS-known.sampledNS > int64(introducedAgain)
	known.sampledNS = max(known.sampledNS, sampledNS)
	if again {
		startedNS, alive := process.ThreadStartedNS(pid, tid)
		if alive && startedNS != known.startedNS {
			known.startedNS = startedNS
			d.keep(d.sink.Thread(threadRow(pid, tid, process.ThreadName(pid, tid), startedNS)))
		}
	}
	if !ok && len(d.introduced) >= maxIntroduced {
		d.introduced.sweep(sampledNS)
	}
	d.introduced[id] = known
}

func (i introductions) sweep(nowNS int64) {
	for id, known := range i {
		if nowNS-known.sampledNS > int64(introducedAgain) {
			delete(i, id)
		}
	}
	if len(i) >= maxIntroduced {
		clear(i)
	}
}

// ended forgets the threads of a process.
func (i introductions) ended(pid int32) {
	for id := range i {
		if id.pid == pid {
			delete(i, id)
		}
	}
}

// threadEnded forgets a thread: its number may be another's.
func (d *decoder) threadEnded(pid, tid int32) {
	delete(d.introduced, threadID{pid, tid})
}
