package hang

import (
	"fmt"
	"slices"
	"strings"
)

// A collective that began before the recording, or while a budget had taken the probes
// out, has no row: nothing was seen of it. That a thread waits in one its stack says, not
// which one of its group it is.

// Unseen is what waits so.
type Unseen struct {
	Waiting []Process `json:"waiting"`
	// Others are the processes of the job that are in no collective, as far as is known.
	Others []Process `json:"others"`
	// Different: they wait in different collectives, which never meet if they are of one group.
	Different bool `json:"different"`
}

// Process is a process that may be a rank.
type Process struct {
	Host       string   `json:"host,omitempty"`
	PID        int64    `json:"pid"`
	Rank       *int64   `json:"rank"` // null: it says none
	Collective string   `json:"collective,omitempty"`
	Seconds    float64  `json:"seconds"` // that it has waited, at the least; of others that it has stood still, 0: it has not
	Place      string   `json:"place,omitempty"`
	Stopped    string   `json:"stopped,omitempty"` // by what, where it can't run
	Threads    []Thread `json:"threads,omitempty"`
}

// leastStill is how long a thread has stood still that is believed to wait for a rank to
// come, in seconds: as long as the recorder makes sure of, less what its clock may be off.
const leastStill = 1.9

// unseen finds the processes that wait in collectives of which a recording has seen nothing.
func (r *Recording) unseen(number int, to *Report) {
	said := map[int64]bool{}
	for i := range to.Groups {
		for _, known := range slices.Concat(to.Groups[i].Waiting, to.Groups[i].Missing) {
			if known.PID != nil && known.in == number {
				said[*known.PID] = true
			}
		}
	}
	if to.Unseen == nil {
		to.Unseen = &Unseen{Waiting: []Process{}, Others: []Process{}}
	}
	for _, known := range r.Processes {
		if threads := r.Threads[known.PID]; !said[known.PID] && len(threads) > 0 {
			to.Unseen.add(Process{Host: r.Host, PID: known.PID, Rank: known.Rank, Threads: threads})
		}
	}
}

// add judges a process by its threads: the main one and those that run Python, as others
// of a group are in its library while they have nothing to do. One that can't run waits for
// no rank, wherever it was stopped.
func (u *Unseen) add(p Process) {
	p.Stopped = haltOf(p.Threads)
	for i := range p.Threads {
		t := &p.Threads[i]
		if p.Stopped != "" || !t.Main && !t.RunsPython() {
			continue
		}
		if name := t.Collective(); name != "" && t.stillFor(leastStill) {
			p.Collective, p.Seconds, p.Place = name, *t.Still, t.place()
			u.Different = u.Different || slices.ContainsFunc(u.Waiting, func(q Process) bool { return differ(p.Collective, q.Collective) })
			u.Waiting = append(u.Waiting, p)
			return
		}
	}
	if first := &p.Threads[0]; first.Main {
		p.Place = first.place()
		if first.Still != nil {
			p.Seconds = *first.Still
		}
	}
	u.Others = append(u.Others, p)
}

// together are the functions of torch.distributed that all ranks of a group call together.
// What else a stack may show is no evidence: a library's function may be any of them, two
// functions of FSDP may be in the same one, and who sends waits for one who receives.
var together = []string{
	"all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "barrier", "broadcast",
	"broadcast_object_list", "gather", "gather_object", "monitored_barrier", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
	"scatter_object_list",
}

// differ reports whether two names are of collectives that are not the same one.
func differ(a, b string) bool {
	return a != b && slices.Contains(together, a) && slices.Contains(together, b)
}

func (u *Unseen) sentence() string {
	names := []string{}
	for _, p := range u.Waiting {
		if !slices.Contains(names, p.Collective) {
			names = append(names, p.Collective)
		}
	}
	text := fmt.Sprintf("%d wait in a collective whose begin was not recorded (%s): its number is not known", len(u.Waiting),
		strings.Join(names, ", "))
	if u.Different {
		text += "; if they are of one group, they have asked for different collectives, and none can end"
	}
	others := 0
	for _, p := range u.Others {
		if p.Stopped != "" {
			text += fmt.Sprintf("; %s is %s", p.name(), p.Stopped)
		} else {
			others++
		}
	}
	switch {
	case others == 0:
		return text
	case len(u.Others) == 1:
		return text + "; " + u.Others[0].name() + " is in none"
	case others == 1:
		return text + "; one process is in none"
	}
	return fmt.Sprintf("%s; %d processes are in none", text, others)
}

func (p *Process) name() string {
	if p.Rank == nil {
		return fmt.Sprintf("pid %d", p.PID)
	}
	return fmt.Sprintf("rank %d", *p.Rank)
}

func (u *Unseen) write(b *strings.Builder, on func(host string) string) {
	fmt.Fprintf(b, "not seen: %s\n", u.sentence())
	var all []standing
	for _, p := range u.Others {
		state := "runs now and then"
		if p.Stopped != "" {
			state = p.Stopped
		} else if p.Seconds > 0 {
			state = fmt.Sprintf("still for %.1f s", p.Seconds)
		}
		fmt.Fprintf(b, "  in none  %-9s %spid %-8d %s  %s\n", p.name(), on(p.Host), p.PID, state, p.Place)
		all = append(all, standing{"in none", p.name(), p.Threads})
	}
	for _, p := range u.Waiting {
		fmt.Fprintf(b, "  waits    %-9s %spid %-8d %s  still for %.1f s  %s\n", p.name(), on(p.Host), p.PID, p.Collective, p.Seconds, p.Place)
		all = append(all, standing{"waits", p.name(), p.Threads})
	}
	writeStacks(b, all)
}

// byThreads takes those off who wait for the kernel's table alone, and reports whether any
// are left: else what the table has is old, and the stacks of the ranks answer.
func (g *Group) byThreads() bool {
	g.byStates()
	g.byStacks()
	return len(g.Waiting) > 0 || g.Mismatch
}

// byStates takes those off who wait and can't run: a rank that a signal has stopped may
// have come, and keeps the others waiting all the same.
func (g *Group) byStates() {
	g.Waiting = slices.DeleteFunc(g.Waiting, func(r Rank) bool {
		if r.Stopped != "" {
			g.Missing = append(g.Missing, r)
		}
		return r.Stopped != ""
	})
}

// byStacks takes those off who wait for the kernel's table alone: a collective whose end
// was not seen, in a slice say, is open there. Where some stand in a collective by their
// stacks, one that stands still elsewhere has not come.
func (g *Group) byStacks() {
	if !slices.ContainsFunc(g.Waiting, Rank.inCollective) {
		return
	}
	g.Waiting = slices.DeleteFunc(g.Waiting, func(r Rank) bool {
		elsewhere := len(r.Threads) > 0 && r.Threads[0].Main && r.Threads[0].stillFor(leastStill) && !r.inCollective()
		if elsewhere {
			g.Missing = append(g.Missing, r)
		}
		return elsewhere
	})
}

// inCollective reports whether the main thread, or one that runs Python, is in one.
func (r Rank) inCollective() bool {
	return slices.ContainsFunc(r.Threads, func(t Thread) bool { return (t.Main || t.RunsPython()) && t.Collective() != "" })
}
