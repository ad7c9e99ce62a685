package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// Formats are the names that Write knows.
func Formats() []string { return []string{"text", "markdown", "json", "html"} }

// Style is how text looks.
type Style struct {
	Width int // of the terminal, 0 where there is none
	Color bool
	Top   int // rows of each table, 0 is all
}

// Write writes the report in one of the Formats.
func (r *Report) Write(w io.Writer, format string, style Style) error {
	switch format {
	case "json":
		out := json.NewEncoder(printable.JSON(w))
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(r)
	case "text":
		return r.writeText(w, style)
	case "markdown":
		return r.writeMarkdown(w, style)
	case "html":
		return r.writeHTML(w, style)
	}
	return fmt.Errorf("unknown format %q: one of %s", format, strings.Join(Formats(), ", "))
}

// section is a part of the report as a reader sees it.
type section struct {
	title string
	notes []string
	table *table
	left  int // rows that Top cut off
}

type table struct {
	header []string
	left   []bool // columns that are aligned to the left
	rows   [][]string
	share  []float64 // of each row, for the bar beside it; nil is no bars
	of     string    // what the bars are shares of
	ranges []spread  // of each row, how far off its share may be; nil where none of them is known
	colors []string  // of each row's bar; nil is the usual one
	below  []string  // a sentence under each row; nil where there is none
	about  string    // what those sentences are
}

// spread is between which shares the true one lies.
type spread struct{ low, high float64 }

func (s *section) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// document is the report in the order in which it is read.
func (r *Report) document(style Style) (all []section) {
	add := func(s section) {
		if s.table != nil && style.Top > 0 && len(s.table.rows) > style.Top {
			s.left = len(s.table.rows) - style.Top
			s.table.rows = s.table.rows[:style.Top]
			if s.table.share != nil {
				s.table.share = s.table.share[:style.Top]
			}
			if s.table.ranges != nil {
				s.table.ranges = s.table.ranges[:style.Top]
			}
			if s.table.colors != nil {
				s.table.colors = s.table.colors[:style.Top]
			}
			if s.table.below != nil {
				s.table.below = s.table.below[:style.Top]
			}
		}
		if len(s.notes) > 0 || s.table != nil && len(s.table.rows) > 0 {
			all = append(all, s)
		}
	}
	add(r.hotLineSection())
	add(r.standingSection())
	add(r.trustSection())
	add(r.jobSection())
	add(r.hangSection())
	add(r.stepSection())
	add(r.inferenceSection())
	add(r.phaseSection())
	add(r.deviceSection())
	add(r.boundSection())
	add(r.findingSection())
	add(r.operatorSection())
	add(r.kernelSection())
	add(r.launchSection())
	add(r.lineSection())
	add(r.threadSection())
	add(r.ioSection())
	add(r.shortSection())
	add(r.memorySection())
	add(section{title: "What cannot be told", notes: r.Untold})
	return all
}

// hotLineSection has the lines of the thread that sets the pace, as shares of its wall time.
func (r *Report) hotLineSection() section {
	s := section{title: "Where its time passes, by the innermost line of your code"}
	if r.Shares == nil {
		return s
	}
	t := &table{header: []string{"line", "function", "ms", "%"}, left: []bool{true, true, false, false}, of: "of the time"}
	for _, l := range r.Shares.HotLines {
		if l.Percent < leastLinePercent && len(t.rows) > 0 {
			break
		}
		t.rows = append(t.rows, []string{l.Place, l.Function, number(l.MS), percentText(l.Percent)})
		t.share = append(t.share, l.Percent/100)
	}
	s.table = t
	return s
}

// leastLinePercent is the share of the time from which a line is worth a row.
const leastLinePercent = 1

// trustSection has what was lost in full, since it may spoil any answer, and one line for all other warnings.
func (r *Report) trustSection() section {
	s := section{title: "Before you trust it"}
	var others []string
	for _, w := range r.Warnings {
		if lossWarning.MatchString(w) || strings.Contains(w, "left out") {
			s.note("%s", w)
		} else {
			others = append(others, w)
		}
	}
	switch {
	case len(others) == 1:
		s.note("%s", others[0])
	case len(others) > 1:
		s.note("%s; %d more remarks: ebpfprof lint %s", shorten(others[0], 90), len(others)-1, r.Dataset)
	}
	return s
}

// lossWarning matches warnings of rows that were lost.
var lossWarning = regexp.MustCompile(`^\d+ lost`)

// mostProcesses is how many processes of the job have a line.
const mostProcesses = 8

// processes are the job's, the one that sets the pace first, then those with a framework.
func (r *Report) processes() []Process {
	all := slices.Clone(r.Job)
	order := func(p Process) int {
		switch {
		case r.Shares != nil && p.PID == r.Shares.PID:
			return 0
		case p.Framework != "":
			return 1
		case p.Python != "":
			return 2
		}
		return 3
	}
	slices.SortStableFunc(all, func(a, b Process) int { return cmp.Compare(order(a), order(b)) })
	return all
}

func (r *Report) jobSection() section {
	s := section{title: "Job"}
	helpers := 0
	for _, p := range r.processes() {
		if len(s.notes) == mostProcesses || len(s.notes) > 0 && p.Framework == "" && p.Python == "" {
			helpers++
			continue
		}
		text := fmt.Sprintf("pid %d", p.PID)
		if p.Rank != nil {
			text += fmt.Sprintf(", rank %d", *p.Rank)
			if p.WorldSize != nil {
				text += fmt.Sprintf(" of %d", *p.WorldSize)
			}
		}
		if p.Framework != "" {
			text += ", " + p.Framework
		}
		if p.Python != "" {
			text += ", Python " + p.Python
		}
		if p.Command != "" {
			text += ": " + shorten(p.Command, 70)
		}
		s.note("%s", text)
	}
	if helpers > 0 {
		s.note("and %s: compilers, helpers, workers", counted(int64(helpers), "more process", "more processes"))
	}
	if len(r.Job) > 0 && r.Job[0].Device != "" {
		on := "on %s"
		if r.Source == "recorded" { // whether the job uses them is another question
			on = "the machine has %s"
		}
		s.note(on, r.Job[0].Device)
	}
	s.note("%s; %s from the first row to the end of the last; %s", r.Source, msText(r.WindowMS), r.Rows.Sentence)
	return s
}

func (r *Report) stepSection() section {
	s := section{title: "Steps"}
	if r.Steps != nil {
		s.note("%s (found by %s)", r.Steps.sentence(), r.Steps.Method)
	}
	return s
}

func (r *Report) phaseSection() section {
	per := "ms a step"
	if r.Steps == nil {
		per = "ms"
	}
	t := &table{header: []string{"phase", per, "%"}, left: []bool{true, false, false}, of: "of a step"}
	if r.Steps == nil {
		t.of = "of the time"
	}
	for _, p := range r.Phases {
		t.rows = append(t.rows, []string{p.Phase, number(p.MSPerStep), percentText(p.Percent)})
		t.colors = append(t.colors, phaseColors[p.Phase])
		t.share = append(t.share, p.Percent/100)
	}
	s := section{title: r.phaseTitle(), table: t}
	if len(t.rows) > 0 {
		s.note("of %s", r.PhasesOf)
	}
	return s
}

func (r *Report) phaseTitle() string {
	if r.worker == "" || r.worker == "training thread" {
		return "Where the training thread's time goes"
	}
	return "Where the time of the " + r.worker + " goes"
}

func (r *Report) deviceSection() section {
	s := section{title: "Device"}
	if r.Device == nil {
		return r.deviceBoundSection(s)
	}
	t := &table{header: []string{"what", "ms", "%"}, left: []bool{true, false, false}, of: "of the window"}
	d := r.deviceAtWork()
	for _, row := range []struct {
		name string
		ms   float64
	}{
		{"computation", d.ComputationMS}, {"exposed communication", d.ExposedCommunicationMS}, {"exposed copies", d.ExposedMemcpyMS},
		{"idle", d.IdleMS},
	} {
		share := 0.0
		if d.TotalMS > 0 {
			share = row.ms / d.TotalMS
		}
		t.rows = append(t.rows, []string{row.name, number(row.ms), percentText(100 * share)})
		t.share = append(t.share, share)
	}
	s.table = t
	what := "first row's begin to the last one's end"
	if d.Count > 1 {
		what = fmt.Sprintf("mean of %d devices", d.Count)
	}
	if r.Profiled != nil {
		what = "the profiled time"
	}
	if d == r.DeviceInSteps {
		what = "the settled steps, from the first to the last"
	}
	s.note("busy %s of %s (%s)", msText(d.BusyMS), msText(d.TotalMS), what)
	if all := r.Device; d == r.DeviceInSteps {
		s.note("of all that was recorded, from the device's first work to its last and with the job's start, it was busy %s of %s",
			msText(all.BusyMS), msText(all.TotalMS))
	}
	if r.Profiled != nil {
		r.Profiled.notes(&s, r.Steps, r.DeviceBounds)
	}
	return s
}

func (r *Report) deviceBoundSection(s section) section {
	b := r.DeviceBounds
	if b == nil {
		return s
	}
	s.table = &table{header: []string{"what", "ms, at least", "at most"}, left: []bool{true, false, false}}
	for _, row := range []struct {
		name string
		of   func(Device) float64
	}{
		{"computation", func(d Device) float64 { return d.ComputationMS }}, {"exposed communication",
			func(d Device) float64 { return d.ExposedCommunicationMS }},
		{"exposed copies", func(d Device) float64 { return d.ExposedMemcpyMS }}, {"busy", func(d Device) float64 { return d.BusyMS }},
	} {
		lo, hi := row.of(b.Lo), row.of(b.Hi)
		s.table.rows = append(s.table.rows, []string{row.name, number(min(lo, hi)), number(max(lo, hi))})
	}
	s.note("recorded on the host: the same sweep with the least and the most time that each piece of work can have taken, from when it was " +
		"handed over; busy at least as long as threads were blocked that waited for it")
	return s
}

func (r *Report) boundSection() section {
	s := section{title: "How far from the peak (estimated from shapes)"}
	if b := r.Bound; b != nil {
		s.note("%s bound: %.1f FLOP/byte, and the device turns at %.1f", b.Verdict, b.Intensity, b.Ridge)
		b.note(&s)
		of := "busy time"
		if r.Device == nil {
			of = "wall time"
		}
		if b.SharePercent > 0 {
			s.note("counted operators have %s %% of the %s", percentText(b.SharePercent), of)
		}
	}
	return s
}

// fromSteps says what a headroom without an interval comes from.
func fromSteps(n int) string {
	switch n {
	case 0:
		return "of the recording"
	case 1:
		return "from 1 step"
	}
	return fmt.Sprintf("from %d steps", n)
}

func (r *Report) findingSection() section {
	t := &table{header: []string{"severity", "rule", "headroom, ms a step", "%", "place"}, left: []bool{true, true, false, false, true},
		about: "advice"}
	withHeadroom := false
	for _, f := range r.Findings {
		headroom, percent, share, spread := "–", "–", 0.0, spread{}
		if f.HeadroomMS != nil && f.HeadroomPercent != nil {
			withHeadroom = true
			headroom, percent, share = number(*f.HeadroomMS), percentText(*f.HeadroomPercent), *f.HeadroomPercent/100
			if f.FromSteps != nil {
				headroom += " (" + fromSteps(*f.FromSteps) + ")"
			}
			if f.LowMS != nil && f.HighMS != nil {
				headroom += fmt.Sprintf(" (%s to %s)", number(*f.LowMS), number(*f.HighMS))
				each := share / max(*f.HeadroomMS, 1e-9)
				spread.low, spread.high = *f.LowMS*each, *f.HighMS*each
			}
		}
		place := placeOf(f)
		if place == "" {
			place = f.Name
		}
		t.rows = append(t.rows, []string{string(f.Severity), f.Rule, headroom, percent, place})
		t.below = append(t.below, f.Advice)
		t.share, t.ranges = append(t.share, share), append(t.ranges, spread)
	}
	if t.of = "of a step"; !withHeadroom {
		t.share, t.ranges = nil, nil
		t.header, t.left = append(t.header[:2], t.header[4:]...), append(t.left[:2], t.left[4:]...)
		for i, row := range t.rows {
			t.rows[i] = append(row[:2], row[4:]...)
		}
	}
	s := section{title: "Findings", table: t}
	if withHeadroom {
		s.note("the headroom is how much shorter a step would be, in parentheses its 95 %% interval; ebpfprof findings has the evidence")
	}
	return s
}

func (r *Report) threadSection() section {
	t := &table{header: []string{"pid", "tid", "thread", "CPU ms", "wait ms"}, left: []bool{false, false, true, false, false}, of: "of CPU ms"}
	all := 0.0
	for _, x := range r.Threads {
		all += x.CPUMS
	}
	for _, x := range r.Threads {
		t.share = append(t.share, x.CPUMS/max(all, 1e-9))
		t.rows = append(t.rows, []string{fmt.Sprint(x.PID), fmt.Sprint(x.TID), x.Name, number(x.CPUMS), number(x.OffMS)})
	}
	return section{title: "Threads (from samples)", table: t}
}
