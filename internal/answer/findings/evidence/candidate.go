package evidence

import (
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// Rule is a question about a recording, answered by what it accuses.
type Rule func(*Recording) []Candidate

// Candidate is what a rule accuses.
type Candidate struct {
	Rule     string
	Title    string // in the place of the rule's; "" is that
	Name     string
	Place    Place
	Evidence string
	Advice   string
	// Replace changes the times of a step as if it were mended; nil where nothing
	// can be said about that.
	Replace func(*timeline.StepGraph, graph.Times)
	// Together is the same for the steps of all ranks; used in its place where these could
	// be joined.
	Together func(*timeline.RanksGraph, graph.Times)
}
