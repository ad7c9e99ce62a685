package tracer

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/job"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// introductions are the threads that samples were taken of, and which of them had
// a number when: a tid is used again, and of a thread without calls no end is told.
type introductions map[threadID]introduction

type threadID struct{ pid, tid int32 }

type introduction struct {
	row       Thread // as it was written
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
			d.leaveThread(&known) // of one that had the number before
			known.startedNS, known.row = startedNS, job.ThreadRow(pid, tid, process.ThreadName(pid, tid), startedNS)
			d.keep(d.sink.Thread(known.row))
		}
	}
	if !ok && len(d.introduced) >= maxIntroduced {
		d.introduced.sweep(sampledNS)
	}
	d.introduced[id] = known
	if sampledNS-d.threadsAt > int64(introducedAgain) {
		d.threadsAt = sampledNS
		d.leaveThreads(sampledNS)
	}
}

// maxLooks bounds how many threads are looked for at a time.
const maxLooks = 256

// leaveThreads gives threads that were not sampled for a while an end, where they
// have one: of those without calls nothing else tells it.
func (d *decoder) leaveThreads(nowNS int64) {
	looks := 0
	for id, known := range d.introduced {
		if nowNS-known.sampledNS <= int64(introducedAgain) {
			continue
		}
		if looks++; looks > maxLooks {
			return
		}
		if startedNS, alive := process.ThreadStartedNS(id.pid, id.tid); !alive || startedNS != known.startedNS {
			d.leaveThread(&known)
			delete(d.introduced, id)
		}
	}
}

// leaveThread writes a thread's end: when it was last seen, if nothing told it.
func (d *decoder) leaveThread(known *introduction) {
	if known.row.TID == 0 {
		return // it had ended before its name could be read
	}
	row := known.row
	row.EndedNS = &known.sampledNS
	d.keep(d.sink.Thread(row))
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

// leaveThreadsOf gives the threads of a process that has ended their end.
func (d *decoder) leaveThreadsOf(pid int32) {
	for id, known := range d.introduced {
		if id.pid == pid {
			d.leaveThread(&known)
			delete(d.introduced, id)
		}
	}
}

// threadEnded forgets a thread: its number may be another's.
func (d *decoder) threadEnded(pid, tid int32) {
	delete(d.introduced, threadID{pid, tid})
}
