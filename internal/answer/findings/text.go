package findings

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/rules"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

const barWidth = 30

// Verdict is the answer in one sentence.
func (r *Result) Verdict() string {
	it, of := "A step of "+evidence.Time(r.MeanNS), ""
	switch {
	case r.Window:
		it = "No step repeats; the recording of " + evidence.Time(r.MeanNS)
	case r.few:
		of = ", from " + counted(r.Steps, "step", "steps")
	}
	var f Finding
	if len(r.Findings) > 0 {
		f = r.Findings[0]
	}
	switch {
	case f.HeadroomMS != nil:
		return fmt.Sprintf("%s could be %s shorter (%.0f %%%s): %s%s.",
			it, evidence.Time(*f.HeadroomMS*1e6), *f.HeadroomPercent, of, f.title(), f.at())
	case f.WindowPercent != nil && r.few:
		return fmt.Sprintf("%s: %s (%s), %.0f %% of the time between the first and the last work of devices.",
			r.subject(), f.title(), f.Name, *f.WindowPercent)
	case r.Steps == 0 && r.Window:
		return "No step repeats, and no call was recorded whose replacement could be replayed."
	case r.Steps == 0:
		return "Steps were found, and none of them has all its rows: no replacement can be replayed."
	case r.few:
		return fmt.Sprintf("%s: no rule found anything that takes %d %% of it.", r.subject(), LeastPercentOfFew)
	}
	return fmt.Sprintf("Nothing above the noise makes the steps of %s longer than they have to be.", evidence.Time(r.MeanNS))
}

// subject is what a result of few steps, or none, is about.
func (r *Result) subject() string {
	switch {
	case r.Window && r.Steps == 0:
		return "No step repeats"
	case r.Window:
		return fmt.Sprintf("No step repeats; in the recording of %s", evidence.Time(r.MeanNS))
	case r.Steps == 0:
		return "No step has all its rows"
	}
	return fmt.Sprintf("In %s of %s", counted(r.Steps, "step", "steps"), evidence.Time(r.MeanNS))
}

// ruleOf is a rule by its name, which is all that is known of rules from outside.
func ruleOf(name string) evidence.Rule {
	i := slices.IndexFunc(rules.All, func(r evidence.Rule) bool { return r.Name == name })
	if i < 0 {
		return evidence.Rule{Name: name, Title: name, Placed: true}
	}
	return rules.All[i]
}

func (f Finding) title() string {
	if f.wording != "" {
		return f.wording
	}
	return ruleOf(f.Rule).Title
}

// Accusation is what would be mended, in words.
func (f Finding) Accusation() string {
	if f.wording != "" {
		return f.wording
	}
	return strings.ReplaceAll(f.Rule, "_", " ")
}

func (f Finding) at() string {
	if f.File == nil {
		return ""
	}
	return fmt.Sprintf(", at %s:%d", filepath.Base(*f.File), *f.Line)
}

// WriteText writes the verdict, the findings and what is not known.
func (r *Result) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n", printable.Text(r.Verdict()))
	if r.Steps > 0 {
		floor := "unknown"
		if r.FloorNS > 0 {
			floor = evidence.Time(r.FloorNS)
		}
		replayed := counted(r.Steps, "step with all its rows", "steps with all their rows")
		if r.Window {
			replayed = "the recording, as one step"
		}
		fmt.Fprintf(out, "replayed: %s; noise of the mean: %s\n", replayed, floor)
		r.Probes.WriteText(out)
	}
	for i, f := range r.Findings {
		fmt.Fprintf(out, "\n%d. %s (%s, %s)\n", i+1, printable.Text(f.title()), f.Rule, f.Severity)
		if f.HeadroomMS != nil {
			note := ""
			if f.HeadroomLoMS != nil && *f.HeadroomLoMS < *f.HeadroomHiMS {
				note += fmt.Sprintf("; by the bounds of device times %s to %s", evidence.Time(*f.HeadroomLoMS*1e6), evidence.Time(*f.HeadroomHiMS*1e6))
			}
			fmt.Fprintf(out, "   %s %s%s, %.1f %% (%s%s)\n", bar(*f.HeadroomPercent), evidence.Time(*f.HeadroomMS*1e6), r.each(),
				*f.HeadroomPercent, f.spread(), note)
		}
		if worth := f.worthText(); worth != "" {
			fmt.Fprintf(out, "   %s\n", worth)
		}
		if f.WindowPercent != nil {
			fmt.Fprintf(out, "   %s %.1f %% of the window\n", bar(*f.WindowPercent), *f.WindowPercent)
		}
		if f.File != nil {
			fmt.Fprintf(out, "   %s:%d in %s\n", printable.Text(*f.File), *f.Line, printable.Text(*f.Function))
		} else if f.WindowPercent == nil && ruleOf(f.Rule).Placed {
			fmt.Fprintln(out, "   no stack shows the line: record longer, or with a higher --frequency")
		}
		fmt.Fprintf(out, "   %s\n   %s\n", printable.Text(f.Name), printable.Text(f.Advice))
	}
	if len(r.Abstained) > 0 {
		fmt.Fprintln(out, "\nNot claimed:")
		for _, a := range r.Abstained {
			fmt.Fprintf(out, "   %s\n", printable.Text(a.says()))
		}
	}
	for _, u := range r.Untold {
		fmt.Fprintf(out, "\nNote: %s.\n", printable.Text(u))
	}
	return out.Flush()
}

// each is what a headroom is of.
func (r *Result) each() string {
	if r.Window {
		return " of the recording"
	}
	return " a step"
}

// spread is the interval of a headroom, or where it comes from.
func (f Finding) spread() string {
	switch {
	case f.FromSteps == nil:
		return fmt.Sprintf("%s to %s", evidence.Time(*f.LowMS*1e6), evidence.Time(*f.HighMS*1e6))
	case *f.FromSteps == 0:
		return "from the whole recording, no interval"
	case *f.FromSteps == 1:
		return "from 1 step, no interval"
	}
	return fmt.Sprintf("from %d steps, %s to %s in them", *f.FromSteps, evidence.Time(f.RangeMS[0]*1e6), evidence.Time(f.RangeMS[1]*1e6))
}

func (a Abstained) says() string {
	return fmt.Sprintf("%s (%s, %s): %s", a.title, a.Rule, a.Name, a.Reason)
}

// Sentence says what is not claimed, for those who read it among other things.
func (a Abstained) Sentence() string { return "not claimed: " + a.says() }

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// bar is the headroom as a part of the step.
func bar(percent float64) string {
	n := max(0, min(int(math.Round(percent/100*barWidth)), barWidth))
	return strings.Repeat("█", n) + strings.Repeat("·", barWidth-n)
}
