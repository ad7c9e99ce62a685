package evidence

import "github.com/ebpfprof/ebpfprof/internal/model/timeline"

// Joined are the replayed steps with those of the other ranks: fewer of them, the more ranks
// there are, and none if collectives join no ranks.
func (r *Recording) Joined() ([]*timeline.RanksGraph, error) { return r.joined() }

func (r *Recording) joinRanks() (joined []*timeline.RanksGraph, err error) {
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
	all, err := timeline.OverRanks(r.Ctx, r.DB, r.Threads, r.Thread, looked, graphs)
	for _, j := range all {
		if j != nil {
			joined = append(joined, j)
		}
	}
	return joined, err
}
