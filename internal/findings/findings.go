// Package findings says what makes a step of a job longer than it has to be,
// where in the user's code that is, and what it would bring to change it.
//
// Each rule is a file. A rule accuses spans or waits of the steps, and how much
// shorter the step would be follows from replaying the steps with these replaced
// (package graph): an estimate with an interval. What is not above the noise of
// the recording is not said.
package findings

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/graph"
	"github.com/ebpfprof/ebpfprof/internal/steps"
	"github.com/ebpfprof/ebpfprof/internal/timeline"
)

// Severity is how much a finding matters.
type Severity string

// The severities. Info has no headroom.
const (
	High   Severity = "high"
	Medium Severity = "medium"
	Low    Severity = "low"
	Info   Severity = "info"
)

// Finding is one answer. Headroom is of a step; it is nil where none can be said.
type Finding struct {
	Rule            string   `json:"rule"`
	Severity        Severity `json:"severity"`
	HeadroomMS      *float64 `json:"headroom_ms"`
	HeadroomPercent *float64 `json:"headroom_percent"`
	LowMS           *float64 `json:"lo_ms"`
	HighMS          *float64 `json:"hi_ms"`
	LowConfidence   bool     `json:"low_confidence"`
	ProbesMS        *float64 `json:"probes_ms"` // what was taken off a step for the tracer's own probes
	File            *string  `json:"file"`      // nil where no stack shows it
	Line            *int     `json:"line"`
	Function        *string  `json:"function"`
	Name            string   `json:"name"` // of what is accused: an operator, a kernel, a call
	EvidenceSQL     string   `json:"evidence_sql"`
	Advice          string   `json:"advice"`
	PID             int      `json:"pid"`
	Rank            *int     `json:"rank"`
	// The headroom at both ends where only bounds of device times are known; HeadroomMS is the lesser.
	HeadroomLoMS *float64 `json:"headroom_lo_ms,omitempty"`
	HeadroomHiMS *float64 `json:"headroom_hi_ms,omitempty"`
	wording      string   // of the title, where the rule's usual one would be wrong
}

// Abstained is what a rule saw and cannot claim.
type Abstained struct {
	Rule   string
	Name   string
	Reason string
	title  string
}

// Result is what the rules say of a recording.
type Result struct {
	Findings  []Finding // the most headroom first; those without last
	Abstained []Abstained
	Untold    []string // what could not be asked, and why
	Steps     int      // replayed
	MeanNS    float64  // of their periods, without what the probes cost
	Probes    Probes   // what was taken off for that
	FloorNS   float64  // the noise floor; 0 where it is not known
	// Contended says who had the CPUs while the training thread was ready to run; nil
	// where it hardly ever was.
	Contended *timeline.Contention
}

// candidate is what a rule accuses.
type candidate struct {
	rule     string
	title    string // in the place of the rule's; "" is that
	name     string
	place    place
	evidence string
	advice   string
	// replace changes the times of a step as if it were mended; nil where nothing
	// can be said about that.
	replace func(*timeline.StepGraph, graph.Times)
	// together is the same for the steps of all ranks; used in its place where these could
	// be joined.
	together func(*timeline.RanksGraph, graph.Times)
}

// rules in the order of their files' names.
var rules = []func(*recording) []candidate{
	allocation, backward, blocked, collectiveOutlier, rankImbalance, firstStep, recompilation, contention, smallCopies, fetched, fusion, gil,
	hostBound, hotspot, layout, loader, throttling,
}

// Run asks all rules about the thread whose steps take the most time.
func Run(ctx context.Context, db *dataset.DB, threads []timeline.Thread, thresholds Thresholds) (*Result, error) {
	return RunOf(ctx, db, threads, threads, thresholds)
}

// RunOf asks all rules about the one of some threads whose steps take the most time; the others
// are what it is held against.
func RunOf(ctx context.Context, db *dataset.DB, threads, of []timeline.Thread, thresholds Thresholds) (*Result, error) {
	return ask(ctx, db, threads, of, thresholds, rules)
}

func ask(ctx context.Context, db *dataset.DB, threads, of []timeline.Thread, thresholds Thresholds, rules []func(*recording) []candidate) (*Result, error) {
	if len(of) == 0 {
		return &Result{Untold: []string{"no steps were found: ebpfprof steps says what is missing"}}, nil
	}
	thread := Looked(of)
	r, err := load(ctx, db, thread, thresholds)
	if err != nil {
		return nil, fmt.Errorf("looking for findings: %w", err)
	}
	r.threads = threads
	if r.most != nil {
		r.most.threads = threads
	}
	result := &Result{Steps: len(r.graphs), MeanNS: r.meanUndone(), Probes: r.probes}
	if len(of) > 1 {
		result.Untold = append(result.Untold, fmt.Sprintf(
			"process %d was looked at, the one with the most time in steps; %d others were not",
			thread.PID, len(of)-1))
	}
	if len(r.graphs) == 0 {
		result.Untold = append(result.Untold, "no step has all its rows: record longer, or with --budget off")
		return result, nil
	}
	floor, known := steps.Noise(settled(thread))
	result.FloorNS = floor
	if !known {
		result.Untold = append(result.Untold, fmt.Sprintf(
			"%s too few to know the noise: ten are needed",
			counted(len(settled(thread)), "settled step is", "settled steps are")))
	}
	for _, rule := range rules {
		accused, err := r.accusedBy(rule)
		if err != nil {
			return nil, fmt.Errorf("looking for findings: %w", err)
		}
		for _, c := range accused {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			f, reason := r.judge(c.candidate, c.most, floor, known)
			if reason != "" {
				result.Abstained = append(result.Abstained, Abstained{Rule: c.rule, Name: c.name, Reason: reason, title: f.title()})
				continue
			}
			result.Findings = append(result.Findings, f)
		}
	}
	result.Contended, result.Untold = r.contended, append(result.Untold, r.untold...)
	slices.SortStableFunc(result.Findings, func(a, b Finding) int { return cmp.Compare(b.headroom(), a.headroom()) })
	return result, nil
}

func inSteps(t timeline.Thread) (ns int64) {
	for _, s := range t.Steps {
		ns += max(s.Period, 0)
	}
	return ns
}

func (f Finding) headroom() float64 {
	if f.HeadroomMS == nil {
		return -1
	}
	return *f.HeadroomMS
}

// judge makes a finding of what a rule accuses, or says why not. most is the same with the most
// time on devices, where only bounds are known.
func (r *recording) judge(c candidate, most *candidate, floor float64, floorKnown bool) (f Finding, abstains string) {
	f = Finding{Rule: c.rule, Severity: Info, Name: c.name, EvidenceSQL: c.evidence, Advice: c.advice, wording: c.title,
		PID: r.thread.PID, Rank: r.thread.Rank}
	if c.place.file != "" {
		f.File, f.Line, f.Function = &c.place.file, &c.place.line, &c.place.function
	}
	if r.most != nil && most == nil {
		return f, "it is so only with one end of the bounds of device times"
	}
	if c.replace == nil && c.together == nil {
		return f, ""
	}
	h, ok := headroomOf(r.differences(c, r.probes.HitNS))
	switch {
	case !ok:
		return f, "one step is too few for a headroom"
	case !floorKnown:
		return f, "the noise is not known"
	}
	h = r.bounded(h, c)
	ms := func(ns float64) *float64 { v := ns / 1e6; return &v }
	if r.most != nil {
		h = r.widened(h, *most, func(low, high float64) { f.HeadroomLoMS, f.HeadroomHiMS = ms(low), ms(high) })
	}
	switch {
	case h.LowNS <= 0:
		return f, fmt.Sprintf("it may bring nothing (%s to %s a step)", text(h.LowNS), text(h.HighNS))
	case h.LowNS < floor:
		return f, fmt.Sprintf("at least %s a step is below the noise of %s", text(h.LowNS), text(floor))
	}
	percent := func(ns float64) float64 { return 100 * ns / r.meanUndone() }
	share := percent(h.NS)
	f.HeadroomMS, f.LowMS, f.HighMS = ms(h.NS), ms(h.LowNS), ms(h.HighNS)
	f.HeadroomPercent, f.LowConfidence, f.ProbesMS = &share, h.LowConfidence, ms(r.meanNS()-r.meanUndone())
	switch low := percent(h.LowNS); {
	case low >= r.thresholds.HighSeverityPercent:
		f.Severity = High
	case low >= r.thresholds.MediumSeverityPercent:
		f.Severity = Medium
	default:
		f.Severity = Low
	}
	return f, ""
}

// text is a time as people read it.
func text(ns float64) string {
	switch {
	case ns >= 1e9 || ns <= -1e9:
		return fmt.Sprintf("%.2f s", ns/1e9)
	case ns >= 1e6 || ns <= -1e6:
		return fmt.Sprintf("%.2f ms", ns/1e6)
	}
	return fmt.Sprintf("%.1f µs", ns/1e3)
}
