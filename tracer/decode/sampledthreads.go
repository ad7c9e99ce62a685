package decode

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
)

// sampledThreads are the threads that samples were taken of, and which of them had
// a number when: a tid is used again, and the end of a thread without calls is not reported.
type sampledThreads struct {
	out      *rows.Out
	known    map[threadID]sampledThread
	before   map[threadID]process.TimedThread // when sampling began
	lookedNS int64                            // when threads that have ended were last looked for
}

type threadID struct{ pid, tid int32 }

type sampledThread struct {
	row       event.Thread // as it was written
	startedNS int64
	sampledNS int64               // the last time
	times     process.ThreadTimes // when sampling began, or else when it was first sampled
	timed     bool                // times could be read
}

const (
	// sampledAgain is how long after a thread's last sample its number may be another's.
	sampledAgain = 10 * time.Second
	// maxSampledThreads bounds what is kept: beyond it, those that were not sampled for
	// sampledAgain go, and if there are none, all.
	maxSampledThreads = 1 << 15
	// maxLooks bounds how many threads are looked for at a time.
	maxLooks = 256
)

func newSampledThreads(out *rows.Out) *sampledThreads {
	return &sampledThreads{out: out, known: map[threadID]sampledThread{}}
}

// ThreadRow is the row of a thread. Its start belongs to what it is known by: a
// tid is used again.
func ThreadRow(pid, tid int32, name string, startedNS int64) event.Thread {
	t := event.Thread{PID: pid, TID: tid, Name: name}
	if startedNS > 0 {
		t.StartedNS = &startedNS
	}
	if role := process.Role(name, pid == tid); role != "" {
		t.Role = &role
	}
	return t
}

// saw gives a thread that is sampled its row, if no probe has: its name is read while it
// is there.
func (s *sampledThreads) saw(pid, tid int32, sampledNS int64) {
	id := threadID{pid, tid}
	known, ok := s.known[id]
	again := !ok || sampledNS-known.sampledNS > int64(sampledAgain)
	known.sampledNS = max(known.sampledNS, sampledNS)
	if again {
		startedNS, alive := process.ThreadStartedNS(pid, tid)
		if alive && startedNS != known.startedNS {
			s.end(&known) // of one that had the number before
			known.startedNS, known.row = startedNS, ThreadRow(pid, tid, process.ThreadName(pid, tid), startedNS)
			known.times, known.timed = s.timesBefore(id, startedNS)
			s.out.Add(&event.Batch{Threads: []event.Thread{known.row}})
		}
	}
	if !ok && len(s.known) >= maxSampledThreads {
		s.sweep(sampledNS)
	}
	s.known[id] = known
	if sampledNS-s.lookedNS > int64(sampledAgain) {
		s.lookedNS = sampledNS
		s.endThoseGone(sampledNS)
	}
}

// from notes the times of a process's threads when sampling began.
func (s *sampledThreads) from(pid int32, timed []process.TimedThread) {
	if s.before == nil {
		s.before = map[threadID]process.TimedThread{}
	}
	for _, t := range timed {
		s.before[threadID{pid, t.TID}] = t
	}
}

// timesBefore are a thread's times when sampling began; those of one that has begun since then are read now.
func (s *sampledThreads) timesBefore(id threadID, startedNS int64) (process.ThreadTimes, bool) {
	if t, ok := s.before[id]; ok && t.StartedNS == startedNS {
		return t.Times, true
	}
	return process.ReadThreadTimes(id.pid, id.tid)
}

// endThoseGone gives threads that were not sampled for a while an end, where they
// have one: of those without calls nothing else tells it.
func (s *sampledThreads) endThoseGone(nowNS int64) {
	looks := 0
	for id, known := range s.known {
		if nowNS-known.sampledNS <= int64(sampledAgain) {
			continue
		}
		if looks++; looks > maxLooks {
			return
		}
		if startedNS, alive := process.ThreadStartedNS(id.pid, id.tid); !alive || startedNS != known.startedNS {
			s.end(&known)
			delete(s.known, id)
		}
	}
}

// measure writes what the threads that still run have spent on and waiting for a CPU since
// their first sample. It reads a bounded number of small files and waits for none.
func (s *sampledThreads) measure() {
	for id, known := range s.known {
		if !known.timed {
			continue
		}
		now, ok := process.ReadThreadTimes(id.pid, id.tid)
		startedNS, alive := process.ThreadStartedNS(id.pid, id.tid)
		if !ok || !alive || startedNS != known.startedNS {
			continue
		}
		row := known.row
		cpu, delay := now.CPUNS-known.times.CPUNS, now.RunDelayNS-known.times.RunDelayNS
		row.CPUNS, row.RunDelayNS = &cpu, &delay
		s.out.Add(&event.Batch{Threads: []event.Thread{row}})
	}
}

// end writes a thread's end: when it was last seen, if nothing told it.
func (s *sampledThreads) end(known *sampledThread) {
	if known.row.TID == 0 {
		return // it had ended before its name could be read
	}
	row := known.row
	row.EndedNS = &known.sampledNS
	s.out.Add(&event.Batch{Threads: []event.Thread{row}})
}

func (s *sampledThreads) sweep(nowNS int64) {
	for id, known := range s.known {
		if nowNS-known.sampledNS > int64(sampledAgain) {
			delete(s.known, id)
		}
	}
	if len(s.known) >= maxSampledThreads {
		clear(s.known)
	}
}

// Forget gives the threads of a process that has ended their end. It implements Owner.
func (s *sampledThreads) Forget(pid uint32) {
	for id, known := range s.known {
		if id.pid == int32(pid) {
			s.end(&known)
			delete(s.known, id)
		}
	}
	for id := range s.before {
		if id.pid == int32(pid) {
			delete(s.before, id)
		}
	}
}

// ended forgets a thread whose end has been reported.
func (s *sampledThreads) ended(pid, tid int32) {
	delete(s.known, threadID{pid, tid})
	delete(s.before, threadID{pid, tid})
}
