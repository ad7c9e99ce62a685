package flightrecorder

import (
	"cmp"
	"database/sql"
	"maps"
	"slices"
)

// Job is what was recorded of the ranks of one node.
type Job struct {
	Host string
	// Members come in order: those of a group one after the other, and of a rank that has
	// had several processes the last one last.
	Members []Member
	Calls   []Call            // of a process in the order in which they were asked for
	Frames  map[int64][]Frame // by stack, the innermost first
	Lost    Lost
}

// Member is a process in a group of ranks.
type Member struct {
	Communicator      int64
	Name, Description string
	PID               int64
	InGroup, Ranks    int64  // its rank in the group, and how many that has
	Rank              *int64 // in the job; nil is not known
	Completed         *int64 // the last collective of the group that has ended in it
}

// Call is a collective that a process asked for.
type Call struct {
	PID, Communicator, Number int64
	Name                      string // gloo::allreduce
	CreatedNS                 int64
	Elements                  *int64
	Dtype                     string // "" is not known
	Stack                     int64  // of Python; 0 is not known
	StartedNS, CompletedNS    *int64 // nil: not seen, or not yet
}

// Lost is what the recording lost, of all processes.
type Lost struct {
	Rows   int64
	LastNS int64  // when that was noticed last; 0: never
	Last   string // and of what
}

func nullable(n *int64) sql.NullInt64 {
	if n == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: *n, Valid: true}
}

// dumps are one a rank, in their order.
func (j *Job) dumps() []*rankDump {
	byPID := j.groups()
	for i := range j.Calls {
		c := &j.Calls[i]
		r := byPID[c.PID]
		if r == nil {
			continue // another process had this rank after it
		}
		e := entry{number: c.Number, name: c.Name, dtype: c.Dtype, created: c.CreatedNS, started: nullable(c.StartedNS),
			completed: nullable(c.CompletedNS)}
		at := slices.IndexFunc(r.groups, func(g group) bool { return g.communicator == c.Communicator && g.known })
		if at < 0 || !e.shaped(nullable(c.Elements), len(r.groups[at].ranks)) {
			r.leftOut++
			continue
		}
		e.group, e.frames = &r.groups[at], j.Frames[c.Stack]
		r.entries = append(r.entries, e)
	}
	ranks := slices.SortedFunc(maps.Values(byPID), func(a, b *rankDump) int { return cmp.Compare(a.rank, b.rank) })
	for _, r := range ranks {
		r.lost = &j.Lost
	}
	return ranks
}

// mostRanks bounds a group whose size a job has told.
const mostRanks = 1 << 16

// groups are which process is which rank, and who is in each group.
func (j *Job) groups() map[int64]*rankDump {
	last := map[int64]int64{} // process of a rank of the job
	of := map[int64][]int{}   // communicator: its members' ranks in the job, by their rank in it; -1 unknown
	for _, m := range j.Members {
		if m.Ranks < 1 || m.Ranks > mostRanks {
			continue
		}
		if of[m.Communicator] == nil {
			of[m.Communicator] = slices.Repeat([]int{-1}, int(m.Ranks))
		}
		if m.Rank == nil || m.InGroup < 0 || m.InGroup >= m.Ranks || int64(len(of[m.Communicator])) != m.Ranks {
			continue
		}
		of[m.Communicator][m.InGroup] = int(*m.Rank)
		last[*m.Rank] = m.PID
	}
	byPID := map[int64]*rankDump{}
	for _, m := range j.Members {
		if m.Rank == nil || last[*m.Rank] != m.PID {
			continue
		}
		if byPID[m.PID] == nil {
			byPID[m.PID] = &rankDump{rank: int(*m.Rank), pid: m.PID, host: j.Host}
		}
		g := group{communicator: m.Communicator, name: m.Name, description: m.Description, ranks: of[m.Communicator],
			completed: nullable(m.Completed)}
		if g.description == "default_pg" || g.name == "0" { // all ranks of the job, recorded or not
			for i := range of[m.Communicator] {
				of[m.Communicator][i] = i
			}
		}
		g.known = !slices.Contains(g.ranks, -1)
		byPID[m.PID].groups = append(byPID[m.PID].groups, g)
	}
	return byPID
}
