package evidence

import (
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// Rule is a question about a recording, answered by what it accuses.
type Rule struct {
	Name       string // of its findings: words with _
	Title      string // what is wrong, in a few words
	Placed     bool   // it accuses a line of code
	OfSteps    bool   // it compares steps with one another, so that a recording without steps has no answer
	Thresholds []thresholds.Threshold
	// Look returns what the rule accuses. It reads the recording and does not change it.
	Look func(*Recording) ([]Candidate, error)
}

// Evidence is the query that shows what a rule claims, and the rows that it adds up, which pictures mark. Without a table
// the query is no sum over rows that can be pointed at.
type Evidence struct {
	SQL   string
	Table string // span, or sample s with its stack st; "" for none
	Where string
}

// Query is evidence without rows to point at.
func Query(sql string) Evidence { return Evidence{SQL: sql} }

// Rows says which rows of a table the query adds up.
func (e Evidence) Rows(table, where string) Evidence {
	e.Table, e.Where = table, where
	return e
}

// Candidate is what a rule accuses.
type Candidate struct {
	Rule     string // "": the name of the rule that returned it
	Unknown  string // in place of an accusation: what the rule could not determine, and why
	Title    string // in the place of the rule's; "" is that
	Name     string
	Place    Place
	Evidence Evidence
	Advice   string
	// Replace changes the times of a step as if it were mended; nil where nothing
	// is known about that.
	Replace func(*timeline.StepGraph, graph.Times)
	// Together is the same for the steps of all ranks; used in its place where these could
	// be joined.
	Together func(*timeline.RanksGraph, graph.Times)
}
