package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/inventory"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/numbers"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/reference"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/query"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// mostOutput is how much of the job's output patterns look at, from the end.
const mostOutput = 16 << 20

// output is what the job printed, without the recorder's summary, which stands at the end of it.
func (x *execution) output() string {
	text, _ := readEnd(filepath.Join(x.o.Place, stdoutName), mostOutput)
	more, _ := readEnd(filepath.Join(x.o.Place, stderrName), mostOutput)
	return withoutSummary(text) + "\n" + more
}

// withoutSummary cuts off the JSON object that ends a text and names a dataset.
func withoutSummary(text string) string {
	begin := strings.LastIndex("\n"+text, "\n{\n")
	if begin < 0 {
		return text
	}
	var summary struct {
		Dataset *string `json:"dataset"`
	}
	if json.Unmarshal([]byte(text[begin:]), &summary) != nil || summary.Dataset == nil {
		return text
	}
	return text[:begin]
}

// sanity tells whether the run did what it should. A failure that was expected is one all the same for what follows:
// there is nothing to measure.
func (x *execution) sanity() error {
	err := x.sane()
	expected := x.c.Sanity.Expected
	switch {
	case err == nil && expected != "":
		x.o.Result = reference.XPass
		return failed("it passed, though it was expected to fail: %s", expected)
	case err != nil && expected != "":
		x.o.Result = reference.XFail
		return failed("%s; expected: %s", err, expected)
	}
	return err
}

func (x *execution) sane() error {
	want := 0
	if x.c.Sanity.ExitCode != nil {
		want = *x.c.Sanity.ExitCode
	}
	if code := *x.o.ExitCode; code != want {
		return failed("the job's exit code is %d: %s", code, tail(filepath.Join(x.o.Place, stderrName)))
	}
	text := x.output()
	for _, re := range x.c.Sanity.Find {
		if !re.MatchString(text) {
			return failed("the job did not print what matches %q", re)
		}
	}
	for _, re := range x.c.Sanity.Absent {
		if found := re.FindString(text); found != "" {
			return failed("the job printed %q, which matches %q", found, re)
		}
	}
	return nil
}

// performance reads the numbers and holds them against their references.
func (x *execution) performance() error {
	if x.o.Recording == "" {
		return failed("there is no recording: %s", tail(filepath.Join(x.o.Place, stderrName)))
	}
	db, err := dataset.Open(x.o.Recording)
	if err != nil {
		return failed("reading the recording: %w", err)
	}
	defer db.Close()
	options := x.c.Numbers
	options.HostMemoryMiB, options.Output = x.peak, x.output()
	if x.o.Numbers, x.o.Periods, err = numbers.Measure(x.ctx, db, options); err != nil {
		return failed("%w", err)
	}
	recorded, err := inventory.Recorded(x.ctx, db)
	if err != nil {
		return failed("%w", err)
	}
	x.o.Inventory = slices.Concat(x.runner.Machine, recorded)
	for _, v := range x.c.Variables {
		x.o.Numbers = append(x.o.Numbers, x.variable(v, options.Output))
	}
	return x.check()
}

// variable reads a variable of the suite.
func (x *execution) variable(v Variable, output string) numbers.Number {
	n := numbers.Number{Name: v.Name, Unit: v.Unit}
	var values []float64
	var err error
	if v.Pattern != nil {
		n.From, n.Why = "matches", fmt.Sprintf("nothing that the job printed matches %q", v.Pattern)
		values = matches(v.Pattern, output)
	} else {
		n.From, n.Why = "rows", "its SQL gives no number"
		values, err = x.ask(v.SQL)
	}
	if err != nil {
		n.Why = err.Error()
	}
	if len(values) > 0 {
		n.Value, n.Of, n.Why = new(take(v.Take, values)), len(values), ""
	}
	return n
}

func matches(re *regexp.Regexp, text string) (values []float64) {
	for _, found := range re.FindAllStringSubmatch(text, -1) {
		if v, err := strconv.ParseFloat(strings.ReplaceAll(found[len(found)-1], ",", ""), 64); err == nil {
			values = append(values, v)
		}
	}
	return values
}

// ask is the first column of what SQL gives; SQL of a suite reads the recording and nothing else.
func (x *execution) ask(statement string) (values []float64, err error) {
	db, err := query.Open(x.o.Recording)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	result, err := db.Run(x.ctx, statement)
	if err != nil {
		return nil, err
	}
	for _, row := range result.Rows {
		if v, ok := number(row[0]); ok {
			values = append(values, v)
		}
	}
	return values, nil
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case float32:
		return float64(v), true
	case int64:
		return float64(v), true
	case int32:
		return float64(v), true
	case nil:
		return 0, false
	}
	f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	return f, err == nil
}

// take makes one value of several.
func take(how string, values []float64) float64 {
	switch how {
	case "first":
		return values[0]
	case "min":
		return slices.Min(values)
	case "max":
		return slices.Max(values)
	case "mean":
		return steps.Mean(values)
	case "sum":
		return steps.Mean(values) * float64(len(values))
	}
	return values[len(values)-1]
}

// check holds the numbers against their references, by ReFrame's rules: a miss fails the run; it reports an expected miss
// and an unexpected pass.
func (x *execution) check() error {
	var results []reference.Result
	var said []string
	for name, ref := range x.c.References {
		n, ok := numbers.Find(x.o.Numbers, name)
		if !ok || n.Value == nil {
			why := n.Why
			if !ok {
				why = "there is no number of that name"
			}
			results, said = append(results, reference.Fail), append(said, fmt.Sprintf("%s has a reference and no value: %s", name, why))
			x.o.Checked[name] = Checked{ref, reference.Fail, true}
			continue
		}
		result, err := ref.Check(*n.Value)
		if err != nil {
			return failed("%s: %w", name, err)
		}
		checked := Checked{ref, result, n.Lo == nil || n.Hi == nil || ref.Certain(*n.Value, *n.Lo, *n.Hi)}
		x.o.Checked[name] = checked
		results = append(results, result)
		if sentence := checked.sentence(n); sentence != "" {
			said = append(said, sentence)
		}
	}
	x.o.Result = reference.Worst(results)
	if x.o.Result == reference.Pass {
		return nil
	}
	slices.Sort(said)
	return failed("%s", strings.Join(said, "; "))
}

// sentence is in ReFrame's words; "" for a number that meets its reference.
func (c Checked) sentence(n numbers.Number) string {
	lower, upper, _ := c.Reference.Bounds()
	expected := fmt.Sprintf("%s=%v %s, expected %v (l=%v, u=%v)", n.Name, Significant(*n.Value), n.Unit, c.Reference.Value, lower, upper)
	switch c.Result {
	case reference.Fail:
		return "failed to meet its reference: " + expected
	case reference.XPass:
		return "met its reference unexpectedly: " + expected
	case reference.XFail:
		return "missed its reference, as expected: " + c.Reference.Expected
	}
	return ""
}

// Significant rounds to five digits, for people.
func Significant(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64)
	return rounded
}

var errNoCommand = errors.New("the benchmark has no command")

// Check finds what cannot run.
func (c *Case) Check() error {
	if len(c.Command) == 0 {
		return errNoCommand
	}
	for name, ref := range c.References {
		if _, _, err := ref.Bounds(); err != nil {
			return fmt.Errorf("reference of %s: %w", name, err)
		}
	}
	return nil
}
