// Package explain names what a job spends its time on, and why: one explanation first, its place in the user's code,
// its share of the wall time of the thread that sets the pace, the evidence and what to do.
//
// Samples are the ground truth of where time goes: they cover all of the recording, on and off the CPU. Each kind of
// explanation claims rows of samples, so that all kinds compete on one scale, and two that claim the same rows are one.
package explain

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// Explanation is one reason for the time that a job takes.
type Explanation struct {
	Kind string `json:"kind"`
	// Place is a line or function of the user's code, "" if no stack shows one.
	Place string `json:"place"`
	// Explained is a share of the wall time of the thread that sets the pace, 0 to 1; Lo and Hi are its 95 % interval.
	Explained  float64  `json:"explained"`
	Lo         *float64 `json:"lo"`
	Hi         *float64 `json:"hi"`
	HeadroomMS *float64 `json:"headroom_ms"` // of a step, if a replay computes one
	Evidence   string   `json:"evidence"`
	Advice     string   `json:"advice"`

	sentence string // the claim: what, where and how much
	title    string // the same in a few words, for the second paragraph
	rank     int    // position of its kind in the list
	class    int    // order before the share: 1 nothing moves, 2 memory runs out, 3 the rest, 4 slow growth
	score    float64
	claims   map[int]float64 // rows of the pace-setting thread, and which part of each
	own      [2]*float64     // Lo and Hi of its own samples, before it took the share of another that it absorbed
	alone    bool            // neither absorbs another explanation nor is absorbed: its cause lies outside of the job
}

// Verdict is what a recording says about its job.
type Verdict struct {
	// First is the first explanation as a paragraph; Second has the next ones, and how sure the first is.
	First, Second string
	Sentence      string // the first sentence of First
	Explanations  []Explanation
	Shares        *Shares // of the thread that sets the pace; nil without samples
}

// Inputs are what other analyses found in the same dataset.
type Inputs struct {
	Loops       []timeline.Thread
	Findings    []findings.Finding
	OutOfMemory *analysis.Shortage
	Memory      *analysis.Memory
	StepMS      float64        // 0 without steps
	Hang        string         // collectives that wait for ranks, "" if none do
	Standing    []hang.Process // where threads stood when the recording ended, if they did
}

// leastShare is the share from which an explanation is a verdict.
const leastShare = 0.10

// Run explains a recording. A nil verdict means that there are too few samples: the caller falls back to spans.
func Run(ctx context.Context, db *dataset.DB, in Inputs) (*Verdict, error) {
	r, err := load(ctx, db, in)
	if err != nil {
		return nil, fmt.Errorf("explaining the time: %w", err)
	}
	if r == nil {
		return nil, nil
	}
	var found []Explanation
	for i, kind := range kinds {
		if r.few && kind.name != "nothing_moves" {
			continue
		}
		candidates, err := kind.find(r)
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", kind.name, err)
		}
		for _, e := range candidates {
			e.Kind, e.rank, e.class = kind.name, i, cmp.Or(e.class, ordinary)
			r.measure(&e)
			found = append(found, e)
		}
	}
	if found = merged(r, found); r.few && len(found) == 0 {
		return nil, nil
	}
	v := &Verdict{Explanations: found}
	if !r.few {
		v.Shares = r.shares()
	}
	v.write(r)
	return v, nil
}

// The classes of explanations: a class comes before all others of the next one.
const (
	stopped = iota + 1
	outOfMemory
	ordinary
	slowGrowth // and whatever else does not take time yet
)

// kind is one kind of explanation.
type kind struct {
	name string
	find func(*Recording) ([]Explanation, error)
	// looked is what the kind looks for, for the sentence that says what was not found.
	looked string
}

// kinds are in the order in which one explanation absorbs another that claims the same samples: what comes first names
// the cause, what comes later is its evidence.
var kinds []kind

func init() {
	kinds = []kind{
		{"nothing_moves", nothingMoves, "a hang"},
		{"memory", memory, "memory that grows or is short"},
		{"quota", quota, "a CPU quota"},
		{"contention", contention, "threads without a CPU"},
		{"loader", loader, "waiting for data"},
		{"io", inputOutput, "files and fsync"},
		{"blocked", blocked, "blocked calls and locks"},
		{"compilation", compilation, "compilation"},
		{"rare_steps", rareSteps, "rare heavy steps"},
		{"collective", collectives, "collectives"},
		{"synchronisation", synchronisation, "synchronisation with a device"},
		{"gil", interpreterLock, "the interpreter's lock"},
		{"serialisation", serialisation, "serialisation"},
		{"operator_mode", operatorMode, "operator modes"},
		{"other_rule", otherRules, "known costs of libraries"},
		{"hot_line", hotLine, "a hot line"},
		{"kernel", kernel, "a hot kernel"},
	}
}
