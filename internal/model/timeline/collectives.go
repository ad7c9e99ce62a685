package timeline

import "strings"

// meeting names a collective so that all its ranks name it alike: by its group and which one
// of the group it is; where nobody counted, by its name and which of that name it is in the
// step. Several pieces of work of one collective are told apart by n.
type meeting struct {
	communicator, sequence int64
	name                   string
	n                      int
}

// runsCollective says whether the span is a library's thread at work on a collective.
func (s Span) runsCollective() bool { return s.Layer == "collective" && s.Category == "work" }

func (b *builder) findWorks() {
	for i, s := range b.Spans {
		if s.runsCollective() && b.onLane[i] != b.main {
			b.runs = append(b.runs, i)
		}
	}
}

// works makes nodes of the collectives that a library's threads run (gloo's): each begins after
// what was before the call that asked for it, and after the work before it on its thread. The
// thread that waits for it goes on when it has ended: a call that says so, else the backward
// pass that it was asked for in.
func (b *builder) works() {
	type key struct{ communicator, sequence int64 }
	asked, awaited := map[key]int{}, map[key][]int{}
	for i, s := range b.Spans {
		if s.Layer != "collective" || s.Sequence < 0 || len(b.owned[i]) == 0 {
			continue
		}
		switch k := (key{s.Communicator, s.Sequence}); s.Category {
		case "issue":
			asked[k] = i
		case "wait":
			awaited[k] = append(awaited[k], i)
		}
	}
	last := map[int]int{}
	for _, i := range b.runs {
		s := b.Spans[i]
		k := key{s.Communicator, s.Sequence}
		end := s.End
		for _, w := range awaited[k] {
			if e := b.Spans[w].End; e > s.Begin {
				end = min(end, e) // the waiting thread is woken before the work's own call returns
			}
		}
		n := b.add(i, s.TID, false, s.Begin-b.begin, end-b.begin)
		if before, ok := last[s.TID]; ok {
			b.nodes.After(n, before)
		}
		last[s.TID] = n
		issue, known := asked[k]
		known = known && s.Sequence >= 0
		if before, ok := b.before[issue]; known && ok && before >= 0 {
			b.nodes.After(n, before)
		}
		for _, w := range awaited[k] {
			b.nodes.Waits(b.owned[w][len(b.owned[w])-1], n)
		}
		if known && len(awaited[k]) == 0 {
			if m := b.backwardAt(issue, end-b.begin); m >= 0 {
				b.nodes.Waits(m, n)
			}
		}
	}
}

// backwardAt is the segment of the backward pass around a span at a time, -1 for none.
func (b *builder) backwardAt(span int, at int64) int {
	for p := b.Parent(span); p >= 0; p = b.Parent(p) {
		if b.Spans[p].Layer != "autograd" || b.Spans[p].Category != "backward" {
			continue
		}
		for _, n := range b.owned[p] {
			if s := b.Segments[n]; s.From < at && at <= s.To {
				return n
			}
		}
	}
	return -1
}

// returnsWhenDone says whether a call of a collective ends with the collective: NCCL's do not,
// and one that has others in it came to it at a time that is not known.
func (g *StepGraph) returnsWhenDone(span int) bool {
	return g.Spans[span].Layer == "collective" && len(g.owned[span]) == 1 && !strings.HasPrefix(g.Spans[span].Name, "nccl")
}

// meetings are the nodes of the step in which ranks wait for one another.
func (g *StepGraph) meetings() map[meeting]int {
	met, nth := map[meeting]int{}, map[meeting]int{}
	for n, segment := range g.Segments {
		if segment.Span < 0 {
			continue
		}
		s := g.Spans[segment.Span]
		if !s.runsCollective() && !(s.Category == "collective" && (segment.Device || g.returnsWhenDone(segment.Span))) {
			continue
		}
		m := meeting{communicator: s.Communicator, sequence: s.Sequence}
		for p := g.Parent(segment.Span); p >= 0 && (m.communicator == 0 || m.sequence < 0); p = g.Parent(p) {
			if a := g.Spans[p]; a.Layer == "collective" {
				if m.communicator == 0 {
					m.communicator = a.Communicator
				}
				if m.sequence < 0 {
					m.sequence = a.Sequence
				}
			}
		}
		if m.sequence < 0 {
			m.name = s.Name
		}
		if lower := strings.ToLower(s.Name); strings.Contains(lower, "sendrecv") || strings.Contains(lower, "send") && m.sequence < 0 {
			continue // between two ranks, and each counts for itself
		}
		m.n, nth[m] = nth[m], nth[m]+1
		met[m] = n
	}
	return met
}
