package rules

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
)

// Contention: the training thread is ready to run and others have its CPU. Nothing in
// the job's code makes that shorter, so that it has no headroom; it says what the times
// of everything else are worth.
var Contention = evidence.Rule{
	Name: "cpu_contention", Title: "the training thread has no CPU", Look: lookContention,
	Thresholds: []thresholds.Threshold{contentionPercent},
}

var contentionPercent = thresholds.Threshold{
	Name: "contention_percent", Default: 5,
	Why: "The training thread is ready to run and others have its CPU.",
}

func lookContention(r *evidence.Recording) ([]evidence.Candidate, error) {
	all, c := evidence.Loop(r.Thread), r.Contention
	if c.Percent() < r.Thresholds.Of(contentionPercent) {
		return nil, nil
	}
	advice := "The job has more busy threads than CPUs: give it fewer threads " +
		"(OMP_NUM_THREADS, torch.set_num_threads, the loader's workers) or more CPUs."
	switch {
	case c.Quota():
		advice = "Raise the limit (cpu.max or cpu.cfs_quota_us of the control group, resources.limits.cpu in Kubernetes, " +
			"--cpus of a container), or run fewer busy threads than it allows."
	case c.Others():
		advice = "Other processes have its CPUs: find them with top, or give the job CPUs of its own (a cpuset, taskset)."
	}
	return []evidence.Candidate{{
		Name: "preempted",
		Evidence: evidence.Query(fmt.Sprintf("SELECT tid, state, cause, sum(weight_ns) / 1e6 AS total_ms, count(*) AS samples FROM sample\n"+
			"WHERE pid = %d AND ts_ns BETWEEN %d AND %d GROUP BY ALL ORDER BY total_ms DESC LIMIT 20",
			r.Thread.PID, all[0].Begin, all[len(all)-1].Until())).
			Rows("sample", fmt.Sprintf("s.pid = %d AND s.tid = %d AND s.ready_ns > 0 AND s.ts_ns BETWEEN %d AND %d",
				r.Thread.PID, r.Thread.TID, all[0].Begin, all[len(all)-1].Until())),
		Title: fmt.Sprintf("the %s has no CPU", r.Thread.Worker()),
		Advice: fmt.Sprintf("For %.0f %% of the steps' time the %s was ready to run and had no CPU: %s. %s",
			c.Percent(), r.Thread.Worker(), c.Who(), advice),
	}}, nil
}
