package budget

import (
	"fmt"
	"os"
	"time"
)

// The budget is a share of the job's own time. While a thread is ready to run and
// somebody else has the core, nothing of the job gets done and none of its hits
// comes; were that time counted, a job that has half a core would pay twice what
// it was promised. So the waits of its processes' main threads for a core are left
// out. What they wait for themselves, a device, a disk, another rank, is theirs.

const (
	// jobTimeStep is the least time between two looks: a look is a read a process,
	// and a time slice of the scheduler (some milliseconds) is long against less.
	jobTimeStep = 20 * time.Millisecond
	// jobTimeRecent is over how long share is averaged.
	jobTimeRecent = time.Second
	// leastShare keeps a job that hardly runs from stopping the clock.
	leastShare = 0.05
	// repayEvery is how often a pause looks at what of it was the job's.
	repayEvery = 250 * time.Millisecond
)

// jobClock tells how much of the time is the job's.
type jobClock struct {
	at     time.Time             // of the last look
	waited map[int]time.Duration // by process, until then
	own    time.Duration         // of the job, since reset
	share  float64               // of the time, of late
	// waits is how long a thread has waited for a core, since it began.
	waits func(tid int32) (time.Duration, bool)
}

func newJobClock() *jobClock {
	return &jobClock{waited: map[int]time.Duration{}, share: 1, waits: threadCoreWait}
}

// threadCoreWait reads how long a thread has waited for a core: the second field
// of schedstat, nanoseconds (Documentation/scheduler/sched-stats.rst).
func threadCoreWait(tid int32) (time.Duration, bool) {
	_, waited, ok := schedstat(tid)
	return waited, ok
}

// schedstat reads how long a thread ran and how long it waited for a core.
func schedstat(tid int32) (ran, waited time.Duration, ok bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", tid))
	if err != nil {
		return 0, 0, false
	}
	_, err = fmt.Sscan(string(raw), (*int64)(&ran), (*int64)(&waited))
	return ran, waited, err == nil
}

// until is how long it takes until what was spent is no more than the budget of the job's
// time, at the share of the time that it has of late.
func (c *jobClock) until(spent time.Duration, budget float64) time.Duration {
	return time.Duration((float64(spent)/budget - float64(c.own)) / c.share)
}

// reset begins the account anew.
func (c *jobClock) reset() { c.own = 0 }

// tick counts the time since the last look. Of several processes the mean counts,
// as the price of their hits is divided among them.
func (c *jobClock) tick(now time.Time, pids []int) {
	over := now.Sub(c.at)
	if first := c.at.IsZero(); !first && over < jobTimeStep {
		return
	} else if first {
		over = 0
	}
	lost, known := time.Duration(0), 0
	waited := make(map[int]time.Duration, len(pids))
	for _, pid := range pids {
		w, ok := c.waits(int32(pid))
		if !ok {
			continue
		}
		waited[pid] = w
		if before, ok := c.waited[pid]; ok {
			lost += min(max(0, w-before), over)
			known++
		}
	}
	c.at, c.waited = now, waited
	if over == 0 {
		return
	}
	share := 1.0
	if known > 0 {
		share = max(leastShare, 1-float64(lost)/float64(over)/float64(known))
	}
	c.own += time.Duration(share * float64(over))
	c.share += (share - c.share) * min(1, float64(over)/float64(jobTimeRecent))
}
