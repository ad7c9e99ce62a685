package graph

// Segment is a stretch of the critical path: from From to To nothing but this
// node kept the graph from ending earlier.
type Segment struct {
	Node     int
	From, To float64
}

// CriticalPath walks back from the last end, always to the dependency with the
// latest end; among equals to one in the same lane. The segments are in order of
// time and follow one another without a hole, so that they add up to the run.
func (g *Graph) CriticalPath(run Run) []Segment {
	if len(g.nodes) == 0 {
		return nil
	}
	v := int32(0)
	for n := range int32(len(g.nodes)) {
		if run.End[n] > run.End[v] {
			v = n
		}
	}
	var path []Segment
	end, begunOnly := run.End[v], false
	// An event is passed once at most: the order of the replay has no cycle.
	for range 2*len(g.nodes) + 1 {
		cause, at, begins := g.cause(run, v, begunOnly)
		if cause < 0 {
			path = append(path, Segment{int(v), min(run.Start[v], end), end})
			break
		}
		if end > at {
			path = append(path, Segment{int(v), at, end})
		}
		v, end, begunOnly = cause, min(at, end), begins
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

// cause is what node v got on after: the node, when, and whether that one's
// begin (and not its end) was it. -1 is none. Of a node that only its begin
// matters for, what it waited for later does not count.
func (g *Graph) cause(run Run, v int32, begunOnly bool) (cause int32, at float64, begins bool) {
	cause = -1
	better := func(d int32, t float64) bool {
		same := g.nodes[d].Lane == g.nodes[v].Lane
		return cause < 0 || t > at || t == at && same && g.nodes[cause].Lane != g.nodes[v].Lane
	}
	for _, d := range g.after.of(v) {
		if better(d, run.End[d]) {
			cause, at = d, run.End[d]
		}
	}
	if begunOnly {
		return cause, at, false
	}
	for _, d := range g.waits.of(v) {
		// What had ended before the node began held up nothing.
		if run.End[d] > run.Start[v] && better(d, run.End[d]) {
			cause, at = d, run.End[d]
		}
	}
	if k := g.member[v]; k >= 0 {
		for _, m := range g.groups[k] {
			if m != v && run.Start[m] > run.Start[v] && (cause < 0 || run.Start[m] > at) {
				cause, at, begins = m, run.Start[m], true
			}
		}
	}
	return cause, at, begins
}
