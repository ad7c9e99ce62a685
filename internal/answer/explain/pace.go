package explain

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// choosePace finds the thread that sets the pace: the one whose steps take the most time, else the main thread of the
// process that does the job's own work.
func (r *Recording) choosePace() bool {
	if loops := slices.DeleteFunc(slices.Clone(r.in.Loops),
		func(t timeline.Thread) bool { return r.poolWorker(int32(t.PID)) }); len(loops) > 0 {
		t := findings.Looked(loops)
		if len(t.Steps) > 1 {
			r.Loop, r.Pace = &t, Thread{int32(t.PID), int32(t.TID)}
			return true
		}
	}
	operators := map[Thread]int64{}
	onCPU, lastNS := map[Thread]int64{}, map[Thread]int64{}
	_ = r.db.Each(r.ctx, `SELECT pid, tid, count(*) FROM span WHERE layer IN ('op', 'autograd', 'runtime')
		GROUP BY ALL`, func(v []driver.Value) error {
		operators[Thread{int32(integer(v[0])), int32(integer(v[1]))}] = integer(v[2])
		return nil
	})
	_ = r.db.Each(r.ctx, `SELECT pid, tid, coalesce(sum(weight_ns) FILTER (state = 'on_cpu'), 0)::BIGINT, max(ts_ns + weight_ns) FROM sample
		GROUP BY ALL`, func(v []driver.Value) error {
		t := Thread{int32(integer(v[0])), int32(integer(v[1]))}
		onCPU[t], lastNS[t] = integer(v[2]), integer(v[3])
		return nil
	})
	// The process: one with a framework before one without, a rank before its launcher, a parent before its children.
	best := slices.SortedFunc(values(r.Processes), func(a, b *Process) int {
		return cmp.Or(cmp.Compare(btoi(b.Framework != ""), btoi(a.Framework != "")), cmp.Compare(btoi(b.Rank != nil), btoi(a.Rank != nil)),
			cmp.Compare(btoi(b.Python != ""), btoi(a.Python != "")), cmp.Compare(btoi(a.recordedChild && b.Rank == nil), btoi(b.recordedChild &&
				a.Rank == nil)),
			cmp.Compare(a.StartedNS, b.StartedNS), cmp.Compare(a.PID, b.PID))
	})
	if len(best) == 0 {
		return false
	}
	p := best[0]
	r.Pace = Thread{p.PID, p.PID}
	// Another thread of it, if that runs and the main thread does not.
	main := onCPU[r.Pace]
	for t, n := range operators {
		if t.PID == p.PID && t.TID != p.PID && n > 10*operators[r.Pace] && onCPU[t] > 5*main && onCPU[t] > onCPU[Thread{p.PID, r.Pace.TID}] {
			r.Pace = t
		}
	}
	if lastNS[r.Pace] < r.From+(r.Until-r.From)/2 && r.standingAt(r.Pace) == nil {
		r.paceWithoutMain(onCPU)
	}
	return true
}

// paceWithoutMain takes the busiest thread of the process whose main thread was not seen in the second half, neither at
// work nor standing: it has ended (pthread_exit), and others go on.
func (r *Recording) paceWithoutMain(onCPU map[Thread]int64) {
	most := 5 * onCPU[r.Pace]
	for t, ns := range onCPU {
		if t.PID == r.Pace.PID && t.TID != r.Pace.TID && ns > most {
			r.Pace, most = t, ns
		}
	}
}

// poolWorker reports whether a process is a worker of a pool (multiprocessing.Pool, ProcessPoolExecutor, loky): it works
// when its parent hands it a task, so its loop of tasks does not set the job's pace.
func (r *Recording) poolWorker(pid int32) bool {
	p := r.Processes[pid]
	if p == nil || !p.recordedChild || p.Rank != nil {
		return false
	}
	var inPool bool
	err := r.db.Row(r.ctx, `WITH pool AS (SELECT DISTINCT stack_id FROM (SELECT stack_id, unnest(frames) AS f FROM stack)
			WHERE f.kind = 'python' AND f.function IN ('worker', '_process_worker')
				AND regexp_matches(f.file, '(^|/)(multiprocessing/pool|concurrent/futures/process|loky/process_executor)\.py$'))
		SELECT coalesce(sum(weight_ns) FILTER (stack_id IN (FROM pool)) > sum(weight_ns) / 2, false) FROM sample WHERE pid = ? AND tid = ?`,
		[]any{pid, pid}, &inPool)
	return err == nil && inPool
}

// worker is what the pace-setting thread is called: a training thread only where something trains.
func (r *Recording) worker() string {
	if r.Loop != nil {
		return r.Loop.Worker()
	}
	return cmp.Or(r.workerWithoutLoop, "training thread")
}

// stepKinds are the steps of the loop by how long they take.
type stepKinds struct {
	medianNS   float64 // of the ordinary ones
	meanNS     float64 // of all
	all, heavy []steps.Step
	heavyNS    float64
}

// heavySteps cuts the steps into kinds, ordinary and heavy ones, and leaves the heavy ones in a table for queries.
func (r *Recording) heavySteps() error {
	if r.Loop != nil {
		var all []steps.Step
		for _, s := range r.Loop.Steps {
			if s.Period > 0 && s.Begin >= r.From && s.Begin < r.Until && s.Kind != steps.Other {
				all = append(all, s.Step)
			}
		}
		r.steps = kindsOf(all)
	}
	if err := r.db.Exec(r.ctx, "CREATE OR REPLACE TEMP TABLE explain_heavy (begin_ns BIGINT, until_ns BIGINT)"); err != nil {
		return err
	}
	for i, s := range r.steps.heavy {
		if i == mostHeavy {
			break
		}
		if err := r.db.Exec(r.ctx, fmt.Sprintf("INSERT INTO explain_heavy VALUES (%d, %d)", s.Begin, s.Begin+s.Period)); err != nil {
			return err
		}
	}
	return nil
}

// mostHeavy bounds how many heavy steps are looked into; fewer than one step in three is heavy.
const mostHeavy = 500

// kindsOf sorts the logarithms of the periods and cuts them at gaps above max(ln 1.5, 5 × the median gap). Ordinary is
// the kind with the most steps; all slower kinds together are heavy.
func kindsOf(all []steps.Step) stepKinds {
	k := stepKinds{all: all}
	if len(all) == 0 {
		return k
	}
	periods := make([]float64, len(all))
	for i, s := range all {
		periods[i] = float64(s.Period)
		k.meanNS += float64(s.Period) / float64(len(all))
	}
	slices.Sort(periods)
	k.medianNS = steps.Median(periods)
	if len(all) < 4 {
		return k
	}
	gaps := make([]float64, len(periods)-1)
	for i := range gaps {
		gaps[i] = math.Log(periods[i+1] / periods[i])
	}
	limit := max(math.Log(1.5), 5*steps.Median(slices.Clone(gaps)))
	begin, ordinary := 0, [2]int{0, 0}
	for i := range periods {
		if i < len(gaps) && gaps[i] <= limit {
			continue
		}
		if i+1-begin > ordinary[1]-ordinary[0] {
			ordinary = [2]int{begin, i + 1}
		}
		begin = i + 1
	}
	k.medianNS = steps.Median(slices.Clone(periods[ordinary[0]:ordinary[1]]))
	if ordinary[1] < len(periods) {
		from := periods[ordinary[1]]
		for _, s := range all {
			if float64(s.Period) >= from {
				k.heavy = append(k.heavy, s)
				k.heavyNS += float64(s.Period)
			}
		}
	}
	return k
}

func values[K comparable, V any](m map[K]V) func(func(V) bool) {
	return func(yield func(V) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
