package evidence

import "github.com/ebpfprof/ebpfprof/internal/model/timeline"

// JoinRanks joins the replayed steps with those of the other ranks, once: fewer of them, the
// more ranks there are.
func (r *Recording) JoinRanks() {
	if r.tried {
		return
	}
	r.tried = true
	n := max(2, mostSteps/max(len(r.Threads), 1))
	graphs := r.Graphs
	if len(graphs) > n {
		from := (len(graphs) - n) / 2
		graphs = graphs[from : from+n]
	}
	looked := make([]timeline.Step, len(graphs))
	for i, g := range graphs {
		looked[i] = g.Step
	}
	var all []*timeline.RanksGraph
	all, r.Failed = timeline.OverRanks(r.Ctx, r.DB, r.Threads, r.Thread, looked, graphs)
	for _, j := range all {
		if j != nil {
			r.Joined = append(r.Joined, j)
		}
	}
}
