package worker

import "github.com/ebpfprof/ebpfprof/tracer"

// recorded counts what a worker's sessions have seen, one after the other.
type recorded struct {
	before  Counts
	session func() tracer.Stats // of the one that runs; nil without one
}

// Counts are rows by table, what was lost by reason, and how often the job passed probes;
// and, of the session that runs alone, its probes and what waits in its rings.
type Counts struct {
	Rows    map[string]int64 `json:"rows"`
	Lost    map[string]int64 `json:"lost"`
	Hits    int64            `json:"hits"`
	Probes  int64            `json:"probes"`
	Pending map[string]int64 `json:"pending"`
}

// begin follows a session; end keeps what it has seen.
func (r *recorded) begin(stats func() tracer.Stats) { r.session = stats }

func (r *recorded) end() { r.before, r.session = r.sum(), nil }

// sum is of all sessions until now.
func (r *recorded) sum() Counts {
	all := Counts{Rows: map[string]int64{}, Lost: map[string]int64{}, Hits: r.before.Hits, Pending: map[string]int64{"calls": 0, "samples": 0}}
	for table, n := range r.before.Rows {
		all.Rows[table] = n
	}
	for reason, n := range r.before.Lost {
		all.Lost[reason] = n
	}
	if r.session == nil {
		return all
	}
	s := r.session()
	for table, n := range map[string]uint64{"span": s.Spans, "memory": s.Memory, "flow": s.Flows, "sample": s.Samples, "io": s.IO,
		"stack": s.Stacks.Rows, "counter": s.Counters} {
		all.Rows[table] += int64(n)
	}
	all.Hits += int64(s.Probes.Hits)
	all.Probes = int64(s.Probes.Attached)
	all.Pending["calls"], all.Pending["samples"] = int64(s.Pending.Calls), int64(s.Pending.Samples)
	for reason, n := range s.Lost {
		all.Lost[reason] += int64(n)
	}
	return all
}
