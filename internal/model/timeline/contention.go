package timeline

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// Contention is how long a thread was ready to run and had no CPU, and who had them.
type Contention struct {
	ReadyNS  int64 // of WindowNS; waits shorter than the recording's threshold are not in it
	WindowNS int64
	// JobCPUs and OtherCPUs are how many CPUs the recorded processes kept busy on average,
	// by samples, and all other processes: nil where the machine's counters were not recorded.
	JobCPUs   float64
	OtherCPUs *float64
	// ThrottledNS is for how long a CPU quota stopped the thread's control group, summed over its CPUs.
	ThrottledNS float64
}

// Percent of the window that the thread was ready and did not run.
func (c Contention) Percent() float64 { return 100 * float64(c.ReadyNS) / float64(max(c.WindowNS, 1)) }

// Quota says whether a CPU quota explains half of the time or more.
func (c Contention) Quota() bool { return c.ThrottledNS > 0 && 2*c.ThrottledNS >= float64(c.ReadyNS) }

// Others says whether other processes kept more of the CPUs busy than the job did, and no quota explains the time.
func (c Contention) Others() bool {
	return !c.Quota() && c.OtherCPUs != nil && *c.OtherCPUs > c.JobCPUs
}

// Who had the CPUs, in words.
func (c Contention) Who() string {
	if c.Quota() {
		return fmt.Sprintf("a CPU quota stopped its control group for %.1f s, summed over its CPUs", c.ThrottledNS/1e9)
	}
	if c.OtherCPUs == nil {
		return fmt.Sprintf("the job's own threads kept %.1f CPUs busy, what others did was not recorded", c.JobCPUs)
	}
	return fmt.Sprintf("other processes kept %.1f CPUs busy, the job %.1f", *c.OtherCPUs, c.JobCPUs)
}

// ContentionOf looks at a thread from one point in time until another (ns), on its own host: others' CPUs are not its.
func ContentionOf(ctx context.Context, db *dataset.DB, pid, tid int, from, until int64) (c Contention, err error) {
	c.WindowNS = until - from
	var job, busy, throttled sql.NullFloat64
	err = db.Row(ctx, fmt.Sprintf(`
		WITH host AS (SELECT DISTINCT session_id FROM sample WHERE pid = %[3]d),
		inside AS (SELECT pid, tid, state, cause, weight_ns, least(ts_ns + weight_ns, %[2]d) - greatest(ts_ns, %[1]d) AS ns
			FROM sample WHERE session_id IN (FROM host) AND ts_ns < %[2]d AND ts_ns + weight_ns > %[1]d)
		SELECT (SELECT coalesce(sum(ns), 0)::BIGINT FROM inside WHERE pid = ? AND tid = ? AND state = 'off_cpu' AND cause = 'preempted'),
			(SELECT sum(weight_ns)::DOUBLE FROM inside WHERE state = 'on_cpu'),
			(SELECT sum(value) FROM counter WHERE name IN ('cpu_user', 'cpu_nice', 'cpu_system', 'cpu_irq', 'cpu_softirq', 'cpu_steal')
				AND session_id IN (FROM host) AND ts_ns > %[1]d AND ts_ns <= %[2]d),
			(SELECT max(ns) FROM (SELECT sum(value) AS ns FROM counter WHERE name = 'cgroup_cpu_throttled'
				AND session_id IN (FROM host) AND ts_ns > %[1]d AND ts_ns <= %[2]d GROUP BY scope))`, from, until, pid),
		[]any{pid, tid}, &c.ReadyNS, &job, &busy, &throttled)
	if err != nil {
		return c, fmt.Errorf("looking for what had the CPUs: %w", err)
	}
	c.ThrottledNS = throttled.Float64
	window := float64(max(c.WindowNS, 1))
	c.JobCPUs = job.Float64 / window
	if busy.Valid {
		// Samples and counters are not exact to each other: others are never less than none.
		others := max(0, busy.Float64/window-c.JobCPUs)
		c.OtherCPUs = &others
	}
	return c, nil
}
