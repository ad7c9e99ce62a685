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
	switch {
	case r.Steps == 0:
		return "Nothing can be said: there is no step to look at."
	case r.unknownNoise && (len(r.Findings) == 0 || r.Findings[0].HeadroomMS == nil):
		return fmt.Sprintf("Nothing can be claimed of steps of %s: too few were seen to know their noise.", evidence.Time(r.MeanNS))
	case len(r.Findings) == 0 || r.Findings[0].HeadroomMS == nil:
		return fmt.Sprintf("Nothing above the noise makes the steps of %s longer than they have to be.", evidence.Time(r.MeanNS))
	}
	f := r.Findings[0]
	return fmt.Sprintf("A step of %s could be %s shorter (%.0f %%): %s%s.", evidence.Time(r.MeanNS), evidence.Time(*f.HeadroomMS*1e6),
		*f.HeadroomPercent, f.title(), f.at())
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

// WriteText writes the verdict, the findings and what could not be said.
func (r *Result) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n", printable.Text(r.Verdict()))
	if r.Steps > 0 {
		floor := "unknown"
		if r.FloorNS > 0 {
			floor = evidence.Time(r.FloorNS)
		}
		fmt.Fprintf(out, "replayed: %s; noise of the mean: %s\n", counted(r.Steps, "step with all its rows", "steps with all their rows"), floor)
		r.Probes.WriteText(out)
	}
	for i, f := range r.Findings {
		fmt.Fprintf(out, "\n%d. %s (%s, %s)\n", i+1, printable.Text(f.title()), f.Rule, f.Severity)
		if f.HeadroomMS != nil {
			note := ""
			if f.LowConfidence {
				note = ", low confidence: few steps"
			}
			if f.HeadroomLoMS != nil && *f.HeadroomLoMS < *f.HeadroomHiMS {
				note += fmt.Sprintf("; by the bounds of device times %s to %s", evidence.Time(*f.HeadroomLoMS*1e6), evidence.Time(*f.HeadroomHiMS*1e6))
			}
			fmt.Fprintf(out, "   %s %s a step, %.1f %% (%s to %s%s)\n", bar(*f.HeadroomPercent), evidence.Time(*f.HeadroomMS*1e6),
				*f.HeadroomPercent, evidence.Time(*f.LowMS*1e6), evidence.Time(*f.HighMS*1e6), note)
		}
		if f.File != nil {
			fmt.Fprintf(out, "   %s:%d in %s\n", printable.Text(*f.File), *f.Line, printable.Text(*f.Function))
		} else if ruleOf(f.Rule).Placed {
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
