package explain

import (
	"database/sql"
	"fmt"
)

// quota: the control group's CPU quota stops the job's threads.
func quota(r *Recording) ([]Explanation, error) {
	var throttles, ns sql.NullFloat64
	err := r.db.Row(r.ctx, fmt.Sprintf(`SELECT max(n), max(ns) FROM (
		SELECT scope, sum(value) FILTER (name = 'cgroup_cpu_throttles') AS n, sum(value) FILTER (name = 'cgroup_cpu_throttled') AS ns
		FROM %s WHERE source = 'cgroup' AND ts_ns > %d AND ts_ns <= %d
		GROUP BY scope)`, r.onHost("counter"), r.From, r.Until+1e9), nil, &throttles, &ns)
	if err != nil || throttles.Float64 == 0 {
		return nil, err
	}
	claims := r.rows(func(row *Row) bool { return !row.OnCPU && row.Cause == causePreempted })
	// The throttled time is a sum over the group's CPUs; the thread cannot have waited longer than it was ready.
	share := min(r.share(claims), ns.Float64/r.Wall())
	if share < leastShare/2 {
		return nil, nil
	}
	e := Explanation{claims: claims, Explained: share, title: "a CPU quota"}
	e.sentence = fmt.Sprintf("A CPU quota holds the job back for %s of the time: its control group was throttled %.0f times in %.0f s.",
		percent(share), throttles.Float64, r.Wall()/1e9)
	e.Advice = "Raise the limit (cpu.max or cpu.cfs_quota_us of the control group, resources.limits.cpu in Kubernetes, --cpus of a " +
		"container), or run fewer busy threads than it allows."
	return []Explanation{e}, nil
}

// busyThreads counts the threads of the job that were busy: on the CPU, or ready to be, for a fifth of the recording.
func (r *Recording) busyThreads() (n int, openMP int) {
	type sums struct{ busy, openMP float64 }
	by := map[Thread]*sums{}
	add := func(rows []Row) {
		for i := range rows {
			row := &rows[i]
			if by[row.Thread] == nil {
				by[row.Thread] = &sums{}
			}
			if row.OnCPU || row.Cause == causePreempted {
				by[row.Thread].busy += row.NS
			} else {
				by[row.Thread].busy += row.ReadyNS
			}
			if row.Stack.Has(signOpenMP) {
				by[row.Thread].openMP += row.NS
			}
		}
	}
	add(r.Rows)
	add(r.Others)
	for _, s := range by {
		if s.busy > 0.05*r.Wall() {
			n++
			if s.openMP > 0 {
				openMP++
			}
		}
	}
	return n, openMP
}

// cpus is how many CPUs the machine has, as far as samples and counters show.
func (r *Recording) cpus() (n int, others float64, known bool, err error) {
	var counted sql.NullInt64
	var busy, job sql.NullFloat64
	err = r.db.Row(r.ctx, fmt.Sprintf(`SELECT greatest((SELECT count(DISTINCT device) FROM %[1]s WHERE source = 'cpu' AND device LIKE 'cpu%%'),
		(SELECT max(cpu) + 1 FROM %[2]s)),
		(SELECT sum(value) FROM %[1]s WHERE name IN ('cpu_user', 'cpu_nice', 'cpu_system', 'cpu_irq', 'cpu_softirq', 'cpu_steal')
		AND ts_ns > %[3]d AND ts_ns <= %[4]d),
		(SELECT sum(weight_ns)::DOUBLE FROM %[2]s WHERE state = 'on_cpu')`, r.onHost("counter"), r.onHost("sample"), r.From, r.Until), nil,
		&counted, &busy, &job)
	if busy.Valid {
		others, known = max(0, (busy.Float64-job.Float64)/r.Wall()), true
	}
	return int(counted.Int64), others, known, err
}

// contention: the thread is ready to run and has no CPU, because the job has more threads than CPUs or because other
// processes have them.
func contention(r *Recording) ([]Explanation, error) {
	preempted := r.rows(func(row *Row) bool { return !row.OnCPU && row.Cause == causePreempted })
	barrier := r.rows(func(row *Row) bool { return row.Stack.Has(signOpenMPWait) })
	n, others, known, err := r.cpus()
	if err != nil {
		return nil, err
	}
	busy, openMP := r.busyThreads()
	all := map[int]float64{}
	for _, claims := range []map[int]float64{preempted, barrier} {
		for i := range claims {
			all[i] = 1
		}
	}
	var found []Explanation
	if openMP > n && n > 0 && r.share(all) >= leastShare/2 {
		where := r.top(all, innermost)
		e := Explanation{claims: all, title: "too many threads"}
		e.sentence = fmt.Sprintf("Oversubscription: %d threads compete for %d CPUs, which costs %s of the time in waiting for a CPU or for "+
			"each other.", busy, n, percent(r.share(all)))
		e.Evidence = fmt.Sprintf("%d of them are in one OpenMP team%s.", openMP, atPlace(where))
		e.Advice = fmt.Sprintf("Set torch.set_num_threads or OMP_NUM_THREADS to %d or fewer; small operators are faster with one.", n)
		return []Explanation{e}, nil
	}
	if r.share(preempted) < leastShare/2 {
		return nil, nil
	}
	e := Explanation{claims: preempted}
	jobBusy := float64(0)
	for _, rows := range [][]Row{r.Rows, r.Others} {
		for i := range rows {
			if rows[i].OnCPU {
				jobBusy += rows[i].NS / r.Wall()
			}
		}
	}
	if mine := r.cpusSeen(); mine > 0 && mine < n && busy > mine && jobBusy > 0.8*float64(mine) {
		e.title = "too few CPUs in its set"
		e.sentence = fmt.Sprintf("%s of the time the thread is ready to run and has no CPU: the job's %d busy threads run on %d of the "+
			"machine's %d CPUs.", percent(r.share(preempted)), busy, mine, n)
		e.Advice = "A cpuset or an affinity holds it there: give it more CPUs (cpuset.cpus, taskset, a static CPU policy of Kubernetes), or fewer threads."
		return append(found, e), nil
	}
	if busy > n && n > 0 && (!known || jobBusy >= others) {
		e.title = "too many threads"
		e.sentence = fmt.Sprintf("%s of the time the thread is ready to run and has no CPU: the job's own %d busy threads share %d CPUs.",
			percent(r.share(preempted)), busy, n)
		e.Advice = "Use fewer workers or threads (num_workers, OMP_NUM_THREADS, torch.set_num_threads), or give the job more CPUs."
		return append(found, e), nil
	}
	if known && others < jobBusy && others < 0.5 {
		return found, nil // who has the CPU is not known
	}
	e.title, e.alone = "no CPU: other processes have it", true
	e.sentence = fmt.Sprintf("%s of the time the thread is ready to run and has no CPU", percent(r.share(preempted)))
	if known {
		e.sentence += fmt.Sprintf(": other processes keep %.1f of %d CPUs busy, the job %.1f", others, n, jobBusy)
	}
	e.sentence += "."
	e.Advice = "Find them with top, or give the job CPUs of its own (a cpuset, taskset)."
	return append(found, e), nil
}

// cpusSeen is on how many CPUs samples found the job's threads.
func (r *Recording) cpusSeen() int {
	var n int
	if err := r.db.Row(r.ctx, "SELECT count(DISTINCT cpu) FROM "+r.onHost("sample")+" WHERE state = 'on_cpu'", nil, &n); err != nil {
		return 0
	}
	return n
}

func atPlace(f *Frame) string {
	if f == nil {
		return ""
	}
	return ", most often under " + f.at()
}
