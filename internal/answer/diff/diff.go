package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/verdict"
	"github.com/ebpfprof/ebpfprof/internal/model/kernelclass"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// Result is what `diff --json` writes; docs/json.md describes it.
type Result struct {
	Verdict       verdict.Verdict `json:"verdict"`
	Sentence      string          `json:"sentence"`
	Comparability []Fact          `json:"comparability"`
	Step          Change          `json:"step_ms"`
	What          string          `json:"compared"`
	NoisePercent  float64         `json:"noise_percent"`
	NoiseFrom     string          `json:"noise_from"`
	Confidence    Confidence      `json:"confidence"`
	DeviceWork    *Change         `json:"device_work_ms"` // nil where a side has none
	FailOnPercent float64         `json:"fail_on_percent"`
	Rows          []Row           `json:"rows"`
	Beyond        *Beyond         `json:"operators_beyond_noise"` // nil without any
	Memory        Memory          `json:"memory"`
	Before        Rows            `json:"computed_on_before"`
	After         Rows            `json:"computed_on_after"`
	uneven        string          // why the two have no times in common
	byOperators   bool            // the verdict is theirs, not the step's
	machine       float64         // by how many percent most operators differ alike
	rateNoise     float64         // in percent, of a comparison by rates
	rateKinds     int             // how many kinds of calls it is by
	alikeText     string          // why recordings without steps are alike though their rates are uncertain
}

// Rows says how much of a side it is computed on.
type Rows string

// Fact is one line of what must be the same for the rest to mean something.
type Fact struct {
	What   string `json:"what"`
	Before string `json:"before"`
	After  string `json:"after"`
	Same   bool   `json:"same"`
}

// Change of the mean.
type Change struct {
	Before  float64 `json:"before"`
	After   float64 `json:"after"`
	Percent float64 `json:"change_percent"`
}

// Row is one thing that can be compared, by time a step.
type Row struct {
	Kind        string   `json:"kind"`
	Key         string   `json:"key"`
	Before      float64  `json:"before_ms"`
	After       float64  `json:"after_ms"`
	Percent     *float64 `json:"change_percent"` // nil where it was not there before
	Noise       *float64 `json:"noise_ms"`       // by how much it may differ by chance; nil where that is not known of the row itself
	Significant bool     `json:"significant"`
}

// rounded is a time without what the order of its summands adds in the last digit, so that two runs write the same.
func rounded(ms float64) float64 { return math.Round(ms*1e9) / 1e9 }

// Confidence says what the noise is known from.
type Confidence string

// The levels of confidence.
const (
	FromRepeats Confidence = "repeats" // several recordings of each side
	FromWindows Confidence = "windows" // windows within a recording of each
	Low         Confidence = "low"     // neither: too few steps, or none
)

// pairNoise is what two recordings differ by without a reason, where nothing
// better is known: no two machines have the same temperature.
const pairNoise = 2.0

// Compare compares; failOn is in percent.
func Compare(before, after *Side, failOn float64) *Result {
	r := &Result{FailOnPercent: failOn, Rows: []Row{}, What: before.What, Before: Rows(before.Checks.Sentence()),
		After: Rows(after.Checks.Sentence())}
	for i, what := range factNames {
		a, b := before.Facts[i], after.Facts[i]
		if a != "" || b != "" {
			r.Comparability = append(r.Comparability, Fact{what, a, b, a == b})
		}
	}
	if w := max(before.Waited, after.Waited); w >= pairNoise {
		text := func(s *Side) string {
			return fmt.Sprintf("training thread without a CPU %.0f %% of the time", s.Waited)
		}
		r.Comparability = append(r.Comparability, Fact{"machine", text(before), text(after), math.Abs(after.Waited-before.Waited) < pairNoise})
	}
	var steady Fact
	before, after, steady = onEqualTerms(before, after)
	if steady.What != "" {
		r.Comparability = append(r.Comparability, steady)
	}
	if before.What != after.What {
		r.Comparability = append(r.Comparability, Fact{"compared", before.What, after.What, false})
	} else if before.What == workOfASecond {
		before, after = r.onTheSameWork(before, after)
	} else if before, after, steady = byTheDevice(before, after); steady.What != "" {
		r.Comparability = append(r.Comparability, steady)
	}
	r.Step = Change{Before: steps.Mean(before.Periods), After: steps.Mean(after.Periods)}
	if r.Step.Before > 0 {
		r.Step.Percent = 100 * (r.Step.After - r.Step.Before) / r.Step.Before
	}
	r.noise(before, after)
	r.deviceWork(before, after)
	r.rows(before, after)
	r.Memory = compareMemory(before, after)
	r.judge(before, after)
	return r
}

// noise is what two recordings always differ by and what the means of equal windows within
// them differ by at random (Welch), which have nothing to do with each other and so add up by
// their squares, beside that by which most operators differ alike; where each side was recorded
// three times or more, what the means of those differ by at random: of pairs that were recorded
// by turns, by the differences of each. It is never less than what a busy machine may have done
// to them.
func (r *Result) noise(before, after *Side) {
	atLeast := func(percent float64, from string) {
		if percent > r.NoisePercent {
			r.NoisePercent, r.NoiseFrom = percent, from
		}
	}
	ofRepeats := func() {
		from := fmt.Sprintf("the spread of %d and %d repeats", len(before.Repeats), len(after.Repeats))
		if interleaved(before, after) {
			from = fmt.Sprintf("the spread of the differences of %d pairs that were recorded by turns", len(before.Repeats))
		}
		atLeast(100*apart(before, after)(before.Periods, after.Periods)/r.Step.Before, from)
	}
	r.Confidence = Low
	if r.rateKinds > 0 {
		r.Confidence = FromWindows
		atLeast(math.Hypot(pairNoise, r.rateNoise), fmt.Sprintf("the rates of %d kinds of calls and functions in %d parts of each recording",
			r.rateKinds, rateBlocks))
		return
	}
	if repeated(before, after) {
		r.Confidence = FromRepeats
		ofRepeats()
	} else {
		atLeast(pairNoise, "what two recordings differ by without a reason")
		if min(len(before.Repeats), len(after.Repeats)) >= fewRepeats {
			ofRepeats()
		}
		if b, a := steps.Windows(before.Periods), steps.Windows(after.Periods); min(len(b), len(a)) > 1 && r.Step.Before > 0 {
			r.Confidence = FromWindows
			within := 100 * steps.Apart(b, a) / r.Step.Before
			from := "what two recordings differ by without a reason"
			if within > pairNoise/2 {
				from += ", and the spread of windows within them"
			}
			atLeast(math.Hypot(pairNoise, within), from)
		}
		var text string
		if r.machine, text = alike(before, after); math.Abs(r.machine) > pairNoise/2 {
			atLeast(beside(r.NoisePercent, r.Step.Percent, r.machine), r.NoiseFrom+", and "+text)
		}
	}
	if before.What == "a step" && after.What == before.What {
		atLeast(busy(before, after))
	}
}

// rows are sorted by what they add to a step or take from it. One counts when it
// moves the step by a percent, and itself by more than its own noise; where there are too
// few steps to know that, by more than the step's.
func (r *Result) rows(before, after *Side) {
	keys := map[Key]bool{}
	for k := range before.PerStep {
		keys[k] = true
	}
	for k := range after.PerStep {
		keys[k] = true
	}
	sameTimes := before.Device == after.Device
	for k := range keys {
		if !sameTimes && (k.Kind == "operator" || k.Kind == "kernel" || k.Kind == "class") {
			continue // time on the host is not time on the device
		}
		row := Row{Kind: k.Kind, Key: k.Name, Before: rounded(before.PerStep[k]), After: rounded(after.PerStep[k])}
		d := math.Abs(row.After - row.Before)
		if d < 1e-9*max(row.Before, row.After) { // sums in another order
			row.After, d = row.Before, 0
		}
		own := math.Inf(1)
		if row.Before > 0 {
			p := 100 * (row.After - row.Before) / row.Before
			row.Percent, own = &p, math.Abs(p)
		}
		moves := d > 0.01*max(r.Step.Before, r.Step.After)
		row.Significant = moves && own > r.NoisePercent
		noise, known := noiseOf(before, after, k, r.machine)
		if repeated(before, after) {
			noise, known = apart(before, after)(before.values(k), after.values(k)), true
		}
		if known {
			row.Noise, row.Significant = &noise, moves && d > noise
		}
		r.Rows = append(r.Rows, row)
	}
	moved := movedBy(r.Rows)
	slices.SortFunc(r.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(moved(b), moved(a)), cmp.Compare(a.order(), b.order()), strings.Compare(a.Key, b.Key))
	})
}

// kinds are in the order of rows that moved as much: an operator's only kernel does, and the
// class that it alone is of.
var kinds = []string{"operator", "line", "kernel", "class", "phase"}

func (r Row) order() int {
	if r.Key == noOperator {
		return len(kinds)
	}
	return slices.Index(kinds, r.Kind)
}

// movedBy says by how many nanoseconds a row moved. A kernel that only one side has may be the
// other's by another name (of another maker, of another choice of the library): it moved by no
// more than its class did.
func movedBy(rows []Row) func(Row) float64 {
	by := func(row Row) float64 { return math.Round(math.Abs(row.After-row.Before) * 1e6) }
	classes := map[string]float64{}
	for _, row := range rows {
		if row.Kind == "class" {
			classes[row.Key] = by(row)
		}
	}
	return func(row Row) float64 {
		if row.Kind == "kernel" && (row.Before == 0 || row.After == 0) {
			if class, known := classes[kernelclass.Of(row.Key)]; known {
				return min(by(row), class)
			}
		}
		return by(row)
	}
}

// deviceWork is all that devices did, whether or not the steps are longer for it.
func (r *Result) deviceWork(before, after *Side) {
	if !before.Device || !after.Device {
		return
	}
	total := func(s *Side) (ms float64) {
		for k, v := range s.PerStep {
			if k.Kind == "kernel" {
				ms += v
			}
		}
		return ms
	}
	c := Change{Before: total(before), After: total(after)}
	if math.Abs(c.After-c.Before) < 1e-9*max(c.Before, c.After) { // sums in another order
		c.After = c.Before
	}
	if c.Before > 0 {
		c.Percent = 100 * (c.After - c.Before) / c.Before
	}
	r.DeviceWork = &c
}

func (r *Result) judge(before, after *Side) {
	change, size := r.Step.Percent, math.Abs(r.Step.Percent)
	switch {
	case r.uneven != "":
		r.Verdict = verdict.Inconclusive
	case before.What != after.What || r.Step.Before <= 0 || r.Step.After <= 0:
		r.Verdict = verdict.Inconclusive
		r.uneven = fmt.Sprintf("times of %s and of %s cannot be compared", before.What, after.What)
	case size > r.NoisePercent && change >= r.FailOnPercent:
		r.Verdict = verdict.Regression
	case size > r.NoisePercent && change < 0:
		r.Verdict = verdict.Improvement
	case size >= r.FailOnPercent || change != 0 && r.NoisePercent > r.FailOnPercent:
		r.Verdict = verdict.Inconclusive
	default:
		r.Verdict = verdict.Neutral
	}
	if r.Verdict == verdict.Inconclusive && before.What == workOfASecond && after.What == workOfASecond && r.spendAlike(before, after) {
		r.Verdict = verdict.Neutral
	}
	r.Beyond = r.beyondNoise(before, after)
	if r.Verdict == verdict.Inconclusive && r.uneven == "" && r.Beyond != nil {
		r.Verdict = r.Beyond.tell(r)
		r.byOperators = r.Verdict != verdict.Inconclusive
	}
	r.Sentence = r.sentence()
}

// named are rows that the sentence can name: phases and classes only say in which
// part to look.
func named(row Row) bool {
	return row.Significant && row.Kind != "phase" && row.Kind != "class" && row.Key != noOperator
}

func (r *Result) title() string {
	return strings.ToUpper(string(r.Verdict[:1])) + string(r.Verdict[1:])
}

func (r *Result) sentence() string {
	if r.alikeText != "" {
		return r.title() + ": " + r.alikeText + "."
	}
	text := fmt.Sprintf("%s: %s takes %.3f ms instead of %.3f ms, %s", r.title(), r.What, r.Step.After, r.Step.Before, longer(r.Step.Percent))
	if r.Step.Percent == 0 && r.Verdict == verdict.Neutral {
		return fmt.Sprintf("Neutral: %s takes %.3f ms, as before%s.", r.What, r.Step.After, r.work())
	}
	if r.byOperators {
		return r.Beyond.decided(r) + "."
	}
	switch r.Verdict {
	case verdict.Inconclusive:
		if r.uneven != "" {
			return fmt.Sprintf("Inconclusive: %s.", r.uneven)
		}
		text += fmt.Sprintf("; the noise is %.1f %% (%s), so that is not known: record longer, or more often", r.NoisePercent, r.NoiseFrom)
		if r.Beyond != nil {
			text += "; beyond its own noise, " + r.Beyond.sentence()
		}
	case verdict.Neutral:
		text += fmt.Sprintf(", which is less than --fail-on %.1f %% or the noise, %.1f %%", r.FailOnPercent, r.NoisePercent) + r.work()
	default:
		text += r.where()
		if r.Confidence == Low {
			text += "; how much such times differ by themselves is not known from so few"
		}
	}
	return text + "."
}

// work says what devices do more or less of where that does not show in the steps.
func (r *Result) work() string {
	c := r.DeviceWork
	if c == nil || math.Abs(c.Percent) <= r.NoisePercent {
		return ""
	}
	return fmt.Sprintf("; that devices work %.3f ms instead of %.3f ms does not show in it", c.After, c.Before)
}

// where says where most of the difference is: in the row that can be named if that has
// half of it, else in the phase that has, and then what there is to be named beside.
func (r *Result) where() string {
	unit := "ms"
	if r.What == "a step" {
		unit = "ms a step"
	}
	row := func(wanted func(Row) bool) (text string, share float64) {
		for _, row := range r.Rows {
			if wanted(row) && (row.After > row.Before) == (r.Step.Percent > 0) {
				change := row.After - row.Before
				return fmt.Sprintf("%s %s (%+.3f %s)", row.Kind, cut(row.Key, 90), change, unit), change / (r.Step.After - r.Step.Before)
			}
		}
		return "", 0
	}
	place, share := row(named)
	if share >= 0.5 {
		return "; most of it in " + place
	}
	phase, share := row(func(row Row) bool { return row.Significant && row.Kind == "phase" })
	switch {
	case share >= 0.5 && place != "":
		return "; most of it in " + phase + ", the most at one place in " + place
	case share >= 0.5:
		return "; most of it in " + phase
	case place != "":
		return "; the largest part at one place is in " + place
	}
	return ""
}
