// Package findings says what makes a step of a job longer than it has to be,
// where in the user's code that is, and what it would bring to change it.
//
// Each rule is a file of package rules. It accuses spans or waits of the steps, and how much
// shorter the step would be follows from replaying the steps with these replaced
// (package graph): an estimate with an interval. What is not above the noise of
// the recording is not said.
package findings

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/rules"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
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

var (
	highSeverity = thresholds.Threshold{
		Name: "high_severity_percent", Default: 10, Why: "From which lower end of the headroom on a finding is high or medium.",
	}
	mediumSeverity = thresholds.Threshold{Name: "medium_severity_percent", Default: 3}
)

// Thresholds are those of all rules, and of the severities.
func Thresholds() (all []thresholds.Threshold) {
	for _, rule := range rules.All {
		all = append(all, rule.Thresholds...)
	}
	return append(all, highSeverity, mediumSeverity)
}

// Finding is one answer. Headroom is of a step; it is nil if it is unknown.
type Finding struct {
	Rule            string   `json:"rule"`
	Severity        Severity `json:"severity"`
	HeadroomMS      *float64 `json:"headroom_ms"`
	HeadroomPercent *float64 `json:"headroom_percent"`
	LowMS           *float64 `json:"lo_ms"`
	HighMS          *float64 `json:"hi_ms"`
	LowConfidence   bool     `json:"low_confidence"`
	// FromSteps is how many steps there are, if they are too few for an interval: LowMS and HighMS
	// are nil then, and RangeMS is the least and the most of them.
	FromSteps *int      `json:"from_steps"`
	RangeMS   []float64 `json:"range_ms,omitempty"`
	// WindowPercent is a share of the window that devices worked in, of findings about that window.
	WindowPercent *float64 `json:"window_percent,omitempty"`
	ProbesMS      *float64 `json:"probes_ms"` // what was taken off a step for the tracer's own probes
	File          *string  `json:"file"`      // nil where no stack shows it
	Line          *int     `json:"line"`
	Function      *string  `json:"function"`
	Name          string   `json:"name"` // of what is accused: an operator, a kernel, a call
	EvidenceSQL   string   `json:"evidence_sql"`
	Advice        string   `json:"advice"`
	// DeviceHoursADay are what the headroom is worth on all devices of the job, if it runs all day; nil without a device.
	DeviceHoursADay *float64 `json:"device_hours_a_day"`
	PriceADay       *float64 `json:"price_a_day,omitempty"` // of these, by a price of a device-hour
	PID             int      `json:"pid"`
	Rank            *int     `json:"rank"`
	// The headroom at both ends where only bounds of device times are known; HeadroomMS is the lesser.
	HeadroomLoMS *float64 `json:"headroom_lo_ms,omitempty"`
	HeadroomHiMS *float64 `json:"headroom_hi_ms,omitempty"`
	// Evidence has the rows that the query adds up, where these can be pointed at.
	Evidence evidence.Evidence `json:"-"`
	wording  string            // of the title, where the rule's usual one would be wrong
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
	Untold    []string        // what could not be asked, and why
	Steps     int             // replayed
	MeanNS    float64         // of their periods, without what the probes cost
	Probes    evidence.Probes // what was taken off for that
	FloorNS   float64         // the noise floor; 0 where it is not known
	// Contended says who had the CPUs while the training thread was ready to run; nil
	// where it hardly ever was.
	Contended *timeline.Contention

	// Window: no step was found, and what Steps, MeanNS and headrooms are about is the whole recording.
	Window bool

	few bool // too few steps for an interval
}

// EnoughSteps is from how many steps on a headroom has an interval.
const EnoughSteps = steps.EnoughForNoise

// LeastPercentOfFew is the least headroom that is claimed from fewer steps than that.
const LeastPercentOfFew = 3

// Run asks all rules about the thread whose steps take the most time.
func Run(ctx context.Context, db *dataset.DB, threads []timeline.Thread, limits thresholds.Set) (*Result, error) {
	return RunOf(ctx, db, threads, threads, limits)
}

// RunOf asks all rules about the one of some threads whose steps take the most time; the others
// are what it is held against.
func RunOf(ctx context.Context, db *dataset.DB, threads, of []timeline.Thread, limits thresholds.Set) (*Result, error) {
	return ask(ctx, db, threads, of, limits, rules.All)
}

func ask(
	ctx context.Context, db *dataset.DB, threads, of []timeline.Thread, limits thresholds.Set, asked []evidence.Rule,
) (*Result, error) {
	if len(of) == 0 {
		return askWindow(ctx, db, nil, limits, asked)
	}
	result, err := askThread(ctx, db, threads, Looked(of), limits, asked)
	if err != nil {
		return nil, fmt.Errorf("looking for findings: %w", err)
	}
	if len(of) > 1 {
		result.Untold = append([]string{fmt.Sprintf("only process %d was examined, the one with the most time in steps; %d others were not",
			Looked(of).PID, len(of)-1)}, result.Untold...)
	}
	if result.few {
		if err := result.addWindowFacts(ctx, db, nil); err != nil {
			return nil, err
		}
	}
	result.sort()
	return result, result.worth(ctx, db)
}

// askThread asks rules about the steps of one thread.
func askThread(
	ctx context.Context, db *dataset.DB, threads []timeline.Thread, thread timeline.Thread, limits thresholds.Set, asked []evidence.Rule,
) (*Result, error) {
	r, err := evidence.Load(ctx, db, thread, threads, limits)
	if err != nil {
		return nil, err
	}
	result := &Result{Steps: len(r.Graphs), MeanNS: r.MeanUndone(), Probes: r.Probes}
	if len(r.Graphs) == 0 {
		result.few = true
		result.Untold = append(result.Untold, "no step has all its rows: record longer, or with --budget off")
		return result, nil
	}
	floor, known := steps.Noise(evidence.Settled(thread))
	result.FloorNS, result.few = floor, !known || len(r.Graphs) < EnoughSteps
	for _, rule := range asked {
		accused, unknown, err := accusedBy(r, rule)
		if err != nil {
			return nil, err
		}
		result.Untold = append(result.Untold, unknown...)
		for _, c := range accused {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			f, reason := judge(r, c.Candidate, c.most, floor, !result.few)
			if reason != "" {
				result.Abstained = append(result.Abstained, Abstained{Rule: c.Rule, Name: c.Name, Reason: reason, title: f.title()})
				continue
			}
			if f.Rule == rules.Contention.Name {
				result.Contended = &r.Contention
			}
			result.Findings = append(result.Findings, f)
		}
	}
	return result, nil
}

// sort has the most headroom first. Without steps, shares of the window compete with headrooms.
func (r *Result) sort() {
	weight := func(f Finding) float64 {
		switch {
		case f.HeadroomPercent != nil:
			return *f.HeadroomPercent
		case f.WindowPercent != nil && r.Window:
			return *f.WindowPercent
		case f.WindowPercent != nil:
			return -1 + *f.WindowPercent/1000
		}
		return -1
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(weight(b), weight(a)) })
}

func inSteps(t timeline.Thread) (ns int64) {
	for _, s := range t.Steps {
		ns += max(s.Period, 0)
	}
	return ns
}

// judge makes a finding of what a rule accuses, or says why not. most is the same with the most
// time on devices, where only bounds are known.
func judge(
	r *evidence.Recording, c evidence.Candidate, most *evidence.Candidate, floor float64, enough bool,
) (f Finding, abstains string) {
	f = Finding{Rule: c.Rule, Severity: Info, Name: c.Name, EvidenceSQL: c.Evidence.SQL, Evidence: c.Evidence, Advice: c.Advice,
		wording: c.Title,
		PID:     r.Thread.PID, Rank: r.Thread.Rank}
	if c.Place.File != "" {
		f.File, f.Line, f.Function = &c.Place.File, &c.Place.Line, &c.Place.Function
	}
	if r.Most != nil && most == nil {
		return f, "it holds at only one end of the bounds of device times"
	}
	if c.Replace == nil && c.Together == nil {
		return f, ""
	}
	h, ok := evidence.HeadroomOf(r.Differences(c, r.Probes.HitNS))
	if !ok {
		return f, "no step was replayed"
	}
	h = r.Bounded(h, c)
	if r.Most != nil {
		h = widened(r, h, *most, func(low, high float64) { f.HeadroomLoMS, f.HeadroomHiMS = milliseconds(low), milliseconds(high) })
	}
	share := 100 * h.NS / r.MeanUndone()
	f.HeadroomPercent, f.ProbesMS = &share, milliseconds(r.MeanNS()-r.MeanUndone())
	if !enough {
		return ofFew(r, f, h)
	}
	switch {
	case h.LowNS <= 0:
		return f, fmt.Sprintf("the headroom may be zero (%s to %s a step)", evidence.Time(h.LowNS), evidence.Time(h.HighNS))
	case h.LowNS < floor:
		return f, fmt.Sprintf("at least %s a step is below the noise of %s", evidence.Time(h.LowNS), evidence.Time(floor))
	}
	f.HeadroomMS, f.LowMS, f.HighMS = milliseconds(h.NS), milliseconds(h.LowNS), milliseconds(h.HighNS)
	switch low := 100 * h.LowNS / r.MeanUndone(); {
	case low >= r.Thresholds.Of(highSeverity):
		f.Severity = High
	case low >= r.Thresholds.Of(mediumSeverity):
		f.Severity = Medium
	default:
		f.Severity = Low
	}
	return f, ""
}

// ofFew judges a headroom by its point alone: fewer steps than EnoughSteps have no interval, and a single step is worth an
// answer, too. Their range is shown, and the severity is medium at most.
func ofFew(r *evidence.Recording, f Finding, h evidence.Headroom) (Finding, string) {
	n := len(r.Graphs)
	if *f.HeadroomPercent < LeastPercentOfFew {
		return f, fmt.Sprintf("%s, %.1f %%, of %s is below the %d %% that are claimed from so few", evidence.Time(h.NS), *f.HeadroomPercent,
			counted(n, "step", "steps"), LeastPercentOfFew)
	}
	f.Severity, f.LowConfidence, f.FromSteps = Medium, true, &n
	f.HeadroomMS, f.RangeMS = milliseconds(h.NS), []float64{h.LowNS / 1e6, h.HighNS / 1e6}
	return f, ""
}

func milliseconds(ns float64) *float64 { v := ns / 1e6; return &v }
