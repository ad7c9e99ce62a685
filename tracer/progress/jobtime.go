package progress

import (
	"time"
)

// The budget is a share of the job's own time. While a thread is ready to run and
// another process has the core, nothing of the job gets done and none of its hits
// comes; were that time counted, a job that has half a core would pay twice what
// its budget says. So the waits of its processes' main threads for a core are left
// out. What they wait for themselves, a device, a disk, another rank, is theirs.

const (
	// jobTimeStep is the least time between two looks: a look is a read a process,
	// and a time slice of the scheduler (some milliseconds) is long against less.
	jobTimeStep = 20 * time.Millisecond
	// jobTimeRecent is over how long share is averaged.
	jobTimeRecent = time.Second
	// leastShare keeps a job that hardly runs from stopping the clock.
	leastShare = 0.05
)

// JobClock tells how much of the time is the job's.
type JobClock struct {
	At     time.Time             // of the last look
	waited map[int]time.Duration // by process, until then
	Own    time.Duration         // of the job, since Reset
	Share  float64               // of the time, lately
	// Waits is how long a thread has waited for a core, since it began.
	Waits func(tid int32) (time.Duration, bool)
}

// NewJobClock makes a JobClock whose first look is yet to come.
func NewJobClock() *JobClock {
	return &JobClock{waited: map[int]time.Duration{}, Share: 1, Waits: new(schedstats).waited}
}

// Until is how long it takes until what was spent is no more than the budget of the job's
// time, at the share of the time that it has of late.
func (c *JobClock) Until(spent time.Duration, budget float64) time.Duration {
	return time.Duration((float64(spent)/budget - float64(c.Own)) / c.Share)
}

// Reset begins the account anew.
func (c *JobClock) Reset() { c.Own = 0 }

// Tick counts the time since the last look. Of several processes the mean counts,
// as the price of their hits is divided among them.
func (c *JobClock) Tick(now time.Time, pids []int) {
	over := now.Sub(c.At)
	if first := c.At.IsZero(); !first && over < jobTimeStep {
		return
	} else if first {
		over = 0
	}
	lost, known := time.Duration(0), 0
	waited := make(map[int]time.Duration, len(pids))
	for _, pid := range pids {
		w, ok := c.Waits(int32(pid))
		if !ok {
			continue
		}
		waited[pid] = w
		if before, ok := c.waited[pid]; ok {
			lost += min(max(0, w-before), over)
			known++
		}
	}
	c.At, c.waited = now, waited
	if over == 0 {
		return
	}
	share := 1.0
	if known > 0 {
		share = max(leastShare, 1-float64(lost)/float64(over)/float64(known))
	}
	c.Own += time.Duration(share * float64(over))
	c.Share += (share - c.Share) * min(1, float64(over)/float64(jobTimeRecent))
}
