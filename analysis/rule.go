package analysis

import (
	"context"
	"encoding/json"
	"io"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// Rule is one question to a recording.
type Rule interface {
	// Name is the rule of its findings: a word in lower case.
	Name() string
	// Look says what it accuses; nothing is a good answer, too. Its error ends the analysis.
	Look(context.Context, *Recording) ([]Accusation, error)
}

// Accusation is what a rule has found. What it would bring to mend it is not the rule's to say.
type Accusation struct {
	Title  string // a few words: what is wrong
	Name   string // of what is accused: an operator, a kernel; "": that of the spans with the most time
	Advice string // one sentence
	// EvidenceSQL is a query that shows it.
	EvidenceSQL string
	// File and Line are the place. Without them it is the line of the user's code that the
	// spans were called from, if a stack has it.
	File, Function string
	Line           int
	// Spans are what would be mended, by span_id, of the process Recording.PID: each step is
	// replayed with their time, and that of all inside them, multiplied by Left. Without
	// spans there is no headroom, and the severity is info.
	Spans []int64
	Left  float64 // 0: they would be gone
}

// Finding is an accusation that stands above the noise of the recording. Its JSON is that of
// `ebpfprof findings --json` (docs/findings.md).
type Finding = findings.Finding

// Abstained is an accusation that is not claimed, with the reason.
type Abstained = findings.Abstained

// Options of Run.
type Options struct {
	Rules []Rule
	// BuiltIn asks the rules of `ebpfprof findings` as well.
	BuiltIn bool
}

// Result is what the rules say.
type Result struct {
	Findings  []Finding   // the most headroom first
	Abstained []Abstained // what is not claimed
	Untold    []string    // what could not be asked, and why

	result *findings.Result
}

// Run asks rules about a recording. The error is of a rule, or of the context; of a recording
// without steps the built-in rules examine all of it, the others are not asked, and Untold says so.
func Run(ctx context.Context, r *Recording, o Options) (*Result, error) {
	var outside []findings.Outside
	for _, rule := range o.Rules {
		outside = append(outside, func(ctx context.Context) ([]findings.Accusation, error) {
			accused, err := rule.Look(ctx, r)
			var all []findings.Accusation
			for _, a := range accused {
				all = append(all, findings.Accusation{Rule: rule.Name(), Title: a.Title, Name: a.Name, File: a.File, Function: a.Function, Line: a.Line,
					EvidenceSQL: a.EvidenceSQL, Advice: a.Advice, Spans: a.Spans, Left: a.Left})
			}
			return all, err
		})
	}
	result, err := findings.RunOutside(ctx, r.db, r.threads, thresholds.Default(), o.BuiltIn, outside...)
	if err != nil {
		return nil, err
	}
	return &Result{result.Findings, result.Abstained, result.Untold, result}, nil
}

// WriteText writes the findings as `ebpfprof findings` does. Names of the job have no
// characters that a terminal obeys.
func (r *Result) WriteText(w io.Writer) error { return r.result.WriteText(w) }

// WriteJSON writes them as `ebpfprof findings --json` does.
func (r *Result) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(printable.JSON(w))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(append([]Finding{}, r.Findings...))
}
