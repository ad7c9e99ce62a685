package timeline

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// Summary is what the steps of a recording look like. Times are of periods.
type Summary struct {
	Processes []ProcessSummary `json:"processes"`
}

// ProcessSummary is a process's; its training thread's.
type ProcessSummary struct {
	PID      int    `json:"pid"`
	TID      int    `json:"tid"`
	Rank     *int   `json:"rank"`
	Sequence string `json:"sequence"` // of most steps, by the letters of steps.Class
	Method   string `json:"method"`
	// Unit is what a step is, and Trains whether the process trains.
	Unit   string `json:"unit"`
	Trains bool   `json:"trains"`
	// Confidence is how sure the loop is, 0 to 1: of steps that neither marks nor anchors tell, how much of what happens
	// in them happens in the same number in each.
	Confidence float64 `json:"confidence"`
	Anchor     string  `json:"anchor,omitempty"` // the call or range that begins a step, of such loops
	// Parts are how many repetitions of the anchor are one step, because they alternate.
	Parts     int  `json:"parts,omitempty"`
	Irregular bool `json:"irregular,omitempty"` // the periods follow no pattern
	// Steps are the training steps, or in a loop that only evaluates those.
	Steps    LoopSummary `json:"steps"`
	Warmup   int         `json:"warmup_count"`   // of Steps: before they settled
	Evaluate int         `json:"evaluate_count"` // between training steps
	Other    int         `json:"other_count"`    // anchors that are in no step
	Whole    int         `json:"whole_count"`    // of Steps: every row was recorded
	List     []StepRow   `json:"list"`
	note     string      // how much longer probes made some
}

// LoopSummary is about all steps of a loop, warm-up included in Count and not in
// the times. The times are null without a step that has a period.
type LoopSummary struct {
	Kind  steps.Kind `json:"kind"`
	Count int        `json:"count"` // that were seen
	// Represented is how many there were: more than Count where only slices of what
	// tells steps were recorded; an estimate then.
	Represented float64 `json:"represented_count"`
	Timed       int     `json:"timed_count"` // of which the times are: settled, and another one follows
	// Profiled are steps in which another profiler ran whose trace was merged: the times are without them.
	Profiled int      `json:"profiled_count,omitempty"`
	MeanMS   *float64 `json:"mean_ms"`
	MedianMS *float64 `json:"median_ms"`
	StddevMS *float64 `json:"stddev_ms"`
	Fastest  *OneStep `json:"fastest"`
	Slowest  *OneStep `json:"slowest"`
	// DurationMS is the mean from the first anchor to the last: without what lies
	// between steps.
	DurationMS *float64 `json:"mean_duration_ms"`
}

// OneStep is a step by its number.
type OneStep struct {
	Index int     `json:"index"`
	MS    float64 `json:"ms"`
}

// StepRow is a row of table step.
type StepRow struct {
	ID       int64        `json:"step_id"`
	Kind     steps.Kind   `json:"kind"`
	Number   int          `json:"number"`
	BeginNS  int64        `json:"begin_ns"`
	EndNS    int64        `json:"end_ns"`
	PeriodNS *int64       `json:"period_ns"`
	Whole    bool         `json:"whole"`
	Anchors  string       `json:"anchors"`
	Method   steps.Method `json:"method"`
}

// Summarize adds up the steps of each thread.
func Summarize(threads []Thread) *Summary {
	s := &Summary{Processes: []ProcessSummary{}}
	for _, t := range threads {
		s.Processes = append(s.Processes, summarize(t))
	}
	return s
}

func summarize(t Thread) ProcessSummary {
	p := ProcessSummary{PID: t.PID, TID: t.TID, Rank: t.Rank, Warmup: len(t.Of(steps.Warmup)),
		Evaluate: len(t.Of(steps.Evaluate)), Other: len(t.Of(steps.Other)), List: []StepRow{}, note: Note([]Thread{t})}
	loop := t.Of(steps.Train, steps.Warmup)
	kind := steps.Train
	if len(loop) == 0 {
		kind, loop, p.Evaluate = steps.Evaluate, t.Of(steps.Evaluate), 0
	}
	p.Unit, p.Trains, p.Confidence = t.Unit, t.Trains, 1
	if l := t.Loop; l != nil {
		p.Confidence, p.Anchor, p.Parts, p.Irregular = l.Fit, l.Anchor, l.Parts, l.Irregular
	}
	p.Steps = loopSummary(kind, loop)
	most := map[[2]string]int{}
	for _, s := range loop {
		most[[2]string{s.Anchors, string(s.Method)}]++
		if s.Whole {
			p.Whole++
		}
	}
	best := 0
	for key, n := range most {
		if n > best || n == best && key[0] < p.Sequence {
			best, p.Sequence, p.Method = n, key[0], key[1]
		}
	}
	for _, s := range t.Steps {
		row := StepRow{s.ID, s.Kind, s.Number, s.Begin, s.End, nil, s.Whole, s.Anchors, s.Method}
		if s.Period >= 0 {
			row.PeriodNS = &s.Period
		}
		p.List = append(p.List, row)
	}
	return p
}

func loopSummary(kind steps.Kind, loop []Step) LoopSummary {
	l := LoopSummary{Kind: kind, Count: len(loop)}
	for _, s := range loop {
		l.Represented += max(1, s.Weight)
	}
	timed := slices.DeleteFunc(slices.Clone(loop), func(s Step) bool { return s.Kind == steps.Warmup || s.Period < 0 })
	undisturbed := Undisturbed(timed)
	l.Profiled = len(timed) - len(undisturbed)
	timed = undisturbed
	if l.Timed = len(timed); l.Timed == 0 {
		return l
	}
	var periods []int64
	var sum, square, durations float64
	for _, s := range timed {
		periods = append(periods, s.Period)
		sum, durations = sum+float64(s.Period), durations+float64(s.Duration())
	}
	mean := sum / float64(len(timed))
	for _, p := range periods {
		square += (float64(p) - mean) * (float64(p) - mean)
	}
	ms := func(ns float64) *float64 { v := ns / 1e6; return &v }
	l.MeanMS, l.MedianMS, l.DurationMS = ms(mean), ms(steps.Median(periods)), ms(durations/float64(len(timed)))
	if len(timed) > 1 {
		l.StddevMS = ms(math.Sqrt(square / float64(len(timed)-1)))
	}
	byPeriod := func(a, b Step) int { return cmp.Compare(a.Period, b.Period) }
	fastest, slowest := slices.MinFunc(timed, byPeriod), slices.MaxFunc(timed, byPeriod)
	l.Fastest = &OneStep{fastest.Number, float64(fastest.Period) / 1e6}
	l.Slowest = &OneStep{slowest.Number, float64(slowest.Period) / 1e6}
	return l
}

// letters say what a sequence is made of.
var letters = []struct{ letter, meaning string }{
	{"L", "data loader"}, {"B", "backward pass"}, {"O", "optimizer"}, {"X", "execution"}, {"C", "collective"},
	{"S", "the job's own range"}, {"P", "the job's own mark"}, {"F", "the outermost calls"},
}

// WriteText writes a paragraph, a table of the slowest and a picture for each process.
func (s *Summary) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	if len(s.Processes) == 0 {
		fmt.Fprintln(out, "No steps: on no thread do calls or ranges repeat in the same way. A recording at --level window or anchor has")
		fmt.Fprintln(out, "the calls of a training loop; for other loops use --level window, or put ranges around an iteration")
		fmt.Fprintln(out, "(torch.profiler.record_function, nvtx). ebpfprof report and findings answer over the whole recording.")
	}
	for i, p := range s.Processes {
		if i > 0 {
			fmt.Fprintln(out)
		}
		p.write(out)
	}
	return out.Flush()
}

func (p ProcessSummary) write(out io.Writer) {
	who := fmt.Sprintf("process %d", p.PID)
	if p.Rank != nil {
		who = fmt.Sprintf("rank %d (process %d)", *p.Rank, p.PID)
	}
	fmt.Fprintf(out, "%s: %s", who, CountedUnit(p.Steps.Count, p.unit()))
	if l := p.Steps; l.Represented >= 1.01*float64(l.Count) {
		fmt.Fprintf(out, " seen, of about %.0f (recorded in slices),", l.Represented)
	}
	if l := p.Steps; l.MeanMS != nil {
		fmt.Fprintf(out, " of %s (mean period", milliseconds(*l.MeanMS))
		if l.StddevMS != nil {
			fmt.Fprintf(out, " ± %s; median %s", milliseconds(*l.StddevMS), milliseconds(*l.MedianMS))
		}
		fmt.Fprintf(out, "), slowest %s (step %d)", milliseconds(l.Slowest.MS), l.Slowest.Index)
	}
	fmt.Fprintln(out)
	fmt.Fprintf(out, "  %s\n", p.found())
	var notes []string
	switch {
	case p.Warmup == 1:
		notes = append(notes, "the first is warm-up and not in the times")
	case p.Warmup > 1:
		notes = append(notes, fmt.Sprintf("the first %d are warm-up and not in the times", p.Warmup))
	}
	if p.Evaluate > 0 {
		notes = append(notes, counted(p.Evaluate, "evaluation step"))
	}
	if p.Other > 0 {
		notes = append(notes, fmt.Sprintf("%s in no step", counted(p.Other, "call")))
	}
	if p.Whole < p.Steps.Count {
		notes = append(notes, fmt.Sprintf("%d of %d have all their rows: the others lie between slices", p.Whole,
			p.Steps.Count))
	}
	if n := p.Steps.Profiled; n > 0 {
		notes = append(notes, fmt.Sprintf("in %d another profiler ran, whose trace was merged: they are slower and not in the times", n))
	}
	if p.note != "" {
		notes = append(notes, p.note)
	}
	if p.Steps.DurationMS != nil && *p.Steps.MeanMS > 0 {
		if left := *p.Steps.MeanMS - *p.Steps.DurationMS; left > 0.05**p.Steps.MeanMS {
			notes = append(notes, fmt.Sprintf("%s of a step lie after its last call", milliseconds(left)))
		}
	}
	for _, n := range notes {
		fmt.Fprintf(out, "  %s\n", n)
	}
	p.writePicture(out)
}

// unit is what a step is: one of evaluation where the loop does nothing else.
func (p ProcessSummary) unit() string {
	if p.Steps.Kind == steps.Evaluate {
		return "evaluation step"
	}
	return cmp.Or(p.Unit, TrainingStep)
}

// CountedUnit is so many of a unit, in words.
func CountedUnit(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %s", n, Plural(unit))
}

// found says how a step is known, and how sure that is.
func (p ProcessSummary) found() string {
	switch {
	case p.Anchor == "":
		return fmt.Sprintf("a step is %s, found by %s", sequenceText(p.Sequence), p.Method)
	case p.Method == string(steps.Annotated):
		text := fmt.Sprintf("a step begins with the job's range %q", p.Anchor)
		if p.Irregular {
			text += "; their periods vary without a pattern"
		}
		return text
	}
	text := fmt.Sprintf("a step begins with %s, found by the order of the outermost calls: %.0f %% of them come in equal numbers in each",
		p.Anchor, 100*p.Confidence)
	if p.Parts > 1 {
		text += fmt.Sprintf("; %d of these alternate and are one step", p.Parts)
	}
	if p.Irregular {
		text += "; their periods vary without a pattern"
	}
	return text
}

const pictureBins, barWidth = 10, 40

// writePicture is a histogram of the periods; the last bin holds all that took longer.
func (p ProcessSummary) writePicture(out io.Writer) {
	var ms []float64
	for _, s := range p.List {
		if s.Kind == p.Steps.Kind && s.PeriodNS != nil {
			ms = append(ms, float64(*s.PeriodNS)/1e6)
		}
	}
	if len(ms) < 3 {
		return
	}
	slices.Sort(ms)
	low, high := ms[0], ms[len(ms)-1-len(ms)/20] // a few slow steps do not stretch it
	width := (high - low) / (pictureBins - 1)
	if width <= 0 {
		return
	}
	bins := make([]int, pictureBins)
	for _, v := range ms {
		bins[min(int((v-low)/width), pictureBins-1)]++
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.SuppressTrailingSpaces()
	t.AppendHeader(table.Row{"period", "steps", ""})
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 1, Align: text.AlignRight}, {Number: 2, Align: text.AlignRight}})
	for i, n := range bins {
		label := "from " + milliseconds(low+float64(i)*width)
		bar := int(math.Round(float64(n) / float64(slices.Max(bins)) * barWidth))
		t.AppendRow(table.Row{label, n, strings.Repeat("█", bar)})
	}
	fmt.Fprintln(out, t.Render())
}

// sequenceText is LBO in words.
func sequenceText(sequence string) string {
	var parts []string
	for i := 0; i < len(sequence); {
		n := 1
		for i+n < len(sequence) && sequence[i+n] == sequence[i] {
			n++
		}
		for _, l := range letters {
			if l.letter[0] != sequence[i] {
				continue
			}
			part := l.meaning
			if n > 1 {
				part = fmt.Sprintf("%d × %s", n, part)
			}
			parts = append(parts, part)
		}
		i += n
	}
	const most = 12
	if len(parts) > most {
		parts = append(parts[:most-1], fmt.Sprintf("… (%d calls)", len(sequence)))
	}
	return strings.Join(parts, ", ")
}

func milliseconds(ms float64) string {
	switch {
	case ms >= 10_000:
		return fmt.Sprintf("%.2f s", ms/1e3)
	case ms >= 100:
		return fmt.Sprintf("%.0f ms", ms)
	case ms >= 1:
		return fmt.Sprintf("%.2f ms", ms)
	}
	return fmt.Sprintf("%.1f µs", ms*1e3)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
