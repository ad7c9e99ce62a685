package decode

import (
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// ranks are those of processes whose environment has none: a program that torch.multiprocessing.spawn
// started gets its rank as an argument, and tells its group of ranks alone.
type ranks struct {
	rows  map[int32]event.Process // by pid, those without a rank
	found map[int32]place         // by pid
}

// place is a process's rank in its job.
type place struct{ rank, size int32 }

func newRanks() ranks { return ranks{rows: map[int32]event.Process{}, found: map[int32]place{}} }

// fill puts a process's rank into its row, where its groups have told it.
func (r *ranks) fill(row event.Process) event.Process {
	if row.Rank != nil {
		delete(r.rows, row.PID)
		return row
	}
	if row.EndedNS == nil {
		r.rows[row.PID] = row
	} else {
		delete(r.rows, row.PID)
	}
	if p, known := r.found[row.PID]; known {
		row = p.in(row)
	}
	if row.EndedNS != nil {
		delete(r.found, row.PID)
	}
	return row
}

func (p place) in(row event.Process) event.Process {
	row.Rank = &p.rank
	if row.WorldSize == nil {
		row.WorldSize = &p.size
	}
	return row
}

// learn takes the ranks that groups tell, and returns the rows of processes whose rank is news.
func (r *ranks) learn(groups []event.Communicator) (news []event.Process) {
	if len(r.rows) == 0 {
		return nil
	}
	several := map[int32]int{}
	for i := range groups {
		several[groups[i].PID]++
	}
	for i := range groups {
		g := &groups[i]
		row, wanted := r.rows[g.PID]
		_, known := r.found[g.PID]
		if !wanted || known || g.Rank == nil || g.Ranks == nil || *g.Ranks < 2 || *g.Rank < 0 || *g.Rank >= *g.Ranks ||
			!ofAll(g, several[g.PID] == 1, row.WorldSize) {
			continue
		}
		p := place{*g.Rank, *g.Ranks}
		r.found[g.PID] = p
		news = append(news, p.in(row))
	}
	return news
}

// ofAll reports whether a group is of all ranks of the job: in a group of some a process has another rank.
func ofAll(g *event.Communicator, alone bool, worldSize *int32) bool {
	switch {
	case g.Description != "":
		return g.Description == "default_pg"
	case worldSize != nil:
		return *worldSize == *g.Ranks
	case g.Name == "0" || g.Name == "default_pg":
		return true
	}
	return g.Name == "" && alone
}
