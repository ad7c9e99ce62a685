// Shortruns says how right the estimates of short jobs are. A training job of so many
// steps of 30 ms, with imports before and evaluation between, is recorded under `run`
// within a budget, many times over; how often it calls each operator is counted by a
// recording of the same job that takes every call.
//
//	shortruns [-runs 20] [-steps 20,60,200,1000] [-budgets 5%,1%] [-tracer bin/ebpfprof]
//
// An estimate is right if it is within 5 % of the truth or its interval contains it. The
// command fails where fewer than 90 % of all are, where an operator is in fewer than 16
// of 20 runs of a cell, or where an interval at 60 steps and 5 % is wider than ±30 %. It
// needs root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/ebpfprof/ebpfprof/internal/dataset/query"
	"github.com/ebpfprof/ebpfprof/internal/dev/study"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

const (
	near         = 0.05 // an estimate so close is right whatever its interval says
	leastPooled  = 0.90
	leastInACell = 16.0 / 20
	// The intervals of this cell are to be no wider than widest to either side.
	widestSteps, widestBudget, widest = 60, "5%", 0.30
)

func main() {
	runs := flag.Int("runs", 20, "how often each job is recorded within each budget")
	steps := flag.String("steps", "20,60,200,1000", "the lengths of the jobs, in training steps")
	budgets := flag.String("budgets", "5%,1%", "the budgets")
	tracer := flag.String("tracer", "bin/ebpfprof", "the program that records")
	python := flag.String("python", "python3", "the interpreter that has PyTorch")
	job := flag.String("job", "testdata/jobs/short.py", "the job; it takes --steps")
	keep := flag.String("keep", "", "a directory to keep the datasets of runs in that have a wrong estimate, or one too wide")
	flag.Parse()
	s := recordings{*tracer, *python, *job, *keep, *runs}
	study.Main("shortruns", func(ctx context.Context) error {
		return s.all(ctx, strings.Split(*steps, ","), strings.Split(*budgets, ","))
	})
}

// recordings are what is run, and how often.
type recordings struct {
	tracer, python, job string
	keep                string // "": nowhere
	runs                int
}

// estimate is what a recording says of the calls of one operator; the bounds are
// infinite where it can't say how far off it may be.
type estimate struct{ calls, low, high float64 }

func (e estimate) right(truth float64) bool {
	return math.Abs(e.calls-truth) <= near*truth || e.contains(truth)
}

func (e estimate) contains(truth float64) bool { return e.low <= truth && truth <= e.high }

// cell is the outcome of all runs of one length within one budget.
type cell struct {
	steps      int
	budget     string
	right      map[string]int // runs, by operator
	contained  int            // of the estimates, those whose interval holds the truth
	estimates  int
	width      []float64 // of half an interval, by the truth
	worstCalls []float64 // how far off each run's worst operator was, by the truth
}

func (s *recordings) all(ctx context.Context, lengths, budgets []string) error {
	dir, err := os.MkdirTemp("", "ebpfprof-shortruns-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var cells []cell
	for _, text := range lengths {
		steps, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || steps < 1 {
			return fmt.Errorf("%q is no number of steps", text)
		}
		truth, err := s.record(ctx, dir, steps, "off")
		if err != nil {
			return err
		}
		every, err := ofEveryStep(ctx, filepath.Join(dir, "dataset"))
		if err != nil {
			return err
		}
		maps.DeleteFunc(truth, func(name string, _ estimate) bool { return !every[name] })
		if len(truth) == 0 {
			return fmt.Errorf("the recording of every call of %d steps has no operator of each step", steps)
		}
		for _, budget := range budgets {
			c := cell{steps: steps, budget: strings.TrimSpace(budget), right: map[string]int{}}
			for run := range s.runs {
				fmt.Fprintf(os.Stderr, "%d steps within %s: run %d of %d\n", steps, c.budget, run+1, s.runs)
				got, err := s.record(ctx, dir, steps, c.budget)
				if err != nil {
					return err
				}
				if wrong := c.add(truth, got); len(wrong) > 0 {
					fmt.Fprintln(os.Stderr, "  "+strings.Join(wrong, "; "))
					if err := s.keepDataset(dir, steps, c.budget, run); err != nil {
						return err
					}
				}
			}
			cells = append(cells, c)
			show(cells[len(cells)-1:], s.runs)
		}
	}
	fmt.Println()
	show(cells, s.runs)
	return judge(cells, s.runs)
}

// record runs the job under the tracer and reads the estimates.
func (s *recordings) record(ctx context.Context, dir string, steps int, budget string) (map[string]estimate, error) {
	dataset := filepath.Join(dir, "dataset")
	if err := os.RemoveAll(dataset); err != nil {
		return nil, err
	}
	run := exec.CommandContext(ctx, s.tracer, "run", "--quiet", "--budget", budget, "--output", dataset, "--", s.python, s.job, "--steps",
		strconv.Itoa(steps))
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	if out, err := run.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("recording %d steps within %s: %w\n%s", steps, budget, err, out)
	}
	db, err := query.Open(dataset)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	result, err := db.Run(ctx, `SELECT name, sum(calls), sum(coalesce(calls_lo, '-inf'::DOUBLE)), sum(coalesce(calls_hi, 'inf'::DOUBLE))
		FROM operator_estimate WHERE layer IN ('op', 'autograd') GROUP BY name`)
	if err != nil {
		return nil, err
	}
	estimates := map[string]estimate{}
	for _, row := range result.Rows {
		name, isText := row[0].(string)
		calls, ok1 := row[1].(float64)
		low, ok2 := row[2].(float64)
		high, ok3 := row[3].(float64)
		if !isText || !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("operator_estimate has a row %v", row)
		}
		estimates[name] = estimate{calls, low, high}
	}
	return estimates, nil
}

// everyStep are the operators of a dataset with every call that each training step calls, from
// one backward pass to the next; what an import or an initialisation calls often is not
// asked. The first step may do less: it has no momentum yet.
const everyStep = `
	WITH pass AS (
		SELECT row_number() OVER (ORDER BY ts_ns) AS n, ts_ns, lead(ts_ns) OVER (ORDER BY ts_ns) AS until FROM span WHERE category = 'backward'
	)
	SELECT name FROM span AS s JOIN pass ON s.ts_ns >= pass.ts_ns AND s.ts_ns < until
	WHERE layer IN ('op', 'autograd') AND coalesce(category, '') <> 'backward'
	GROUP BY name HAVING count(DISTINCT n) FILTER (n > 1) = (SELECT count(*) - 2 FROM pass)`

func ofEveryStep(ctx context.Context, dataset string) (map[string]bool, error) {
	db, err := query.Open(dataset)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	result, err := db.Run(ctx, everyStep)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, row := range result.Rows {
		name, isText := row[0].(string)
		if !isText {
			return nil, fmt.Errorf("a span has the name %v", row[0])
		}
		names[name] = true
	}
	return names, nil
}

// keepDataset moves a dataset to where it can be looked at.
func (s *recordings) keepDataset(dir string, steps int, budget string, run int) error {
	if s.keep == "" {
		return nil
	}
	to := filepath.Join(s.keep, fmt.Sprintf("%d-%s-%d", steps, strings.TrimSuffix(budget, "%"), run+1))
	return errors.Join(os.MkdirAll(s.keep, 0o700), os.RemoveAll(to), os.Rename(filepath.Join(dir, "dataset"), to))
}

// narrow is how wide half an interval of the cell may be.
func (c *cell) narrow() float64 {
	if c.steps == widestSteps && c.budget == widestBudget {
		return widest
	}
	return math.Inf(1)
}

// add takes one run, and says what of it is wrong, or too wide. An operator that it did not see is
// estimated at no calls.
func (c *cell) add(truth, got map[string]estimate) (wrong []string) {
	worst := 0.0
	for name, t := range truth {
		e := got[name]
		c.estimates++
		if e.right(t.calls) {
			c.right[name]++
		} else {
			c.right[name] += 0
			wrong = append(wrong, fmt.Sprintf("wrong: %s %.0f (%.0f to %.0f), not %.0f", name, e.calls, e.low, e.high, t.calls))
		}
		if e.contains(t.calls) {
			c.contained++
		}
		width := (e.high - e.low) / 2 / t.calls
		c.width = append(c.width, width)
		if width > c.narrow() {
			wrong = append(wrong, fmt.Sprintf("wide: %s %.0f (%.0f to %.0f) of %.0f", name, e.calls, e.low, e.high, t.calls))
		}
		worst = max(worst, math.Abs(e.calls/t.calls-1))
	}
	c.worstCalls = append(c.worstCalls, worst)
	slices.Sort(wrong)
	return wrong
}

// rights is how many estimates are right, and the operator that is so least often.
func (c *cell) rights() (right int, least string) {
	for _, name := range slices.Sorted(maps.Keys(c.right)) {
		right += c.right[name]
		if least == "" || c.right[name] < c.right[least] {
			least = name
		}
	}
	return right, least
}

// halfWidth is half an interval, by the truth.
func halfWidth(w float64) string {
	if math.IsInf(w, 1) {
		return "no upper end"
	}
	return fmt.Sprintf("±%.1f %%", 100*w)
}

func show(cells []cell, runs int) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "steps\tbudget\toperators\tright\tinterval holds\tleast often right\tmedian of the runs' worst\thalf interval, "+
		"median\twidest")
	for i := range cells {
		c := &cells[i]
		right, least := c.rights()
		fmt.Fprintf(w, "%d\t%s\t%d\t%.1f %%\t%.1f %%\t%d of %d (%s)\t%.1f %%\t%s\t%s\n", c.steps, c.budget, len(c.right),
			percent(right, c.estimates), percent(c.contained, c.estimates), c.right[least], runs, least,
			100*steps.Median(c.worstCalls), halfWidth(steps.Median(c.width)), halfWidth(slices.Max(c.width)))
	}
	w.Flush()
}

// judge says what falls short of its target.
func judge(cells []cell, runs int) error {
	var short []error
	right, estimates := 0, 0
	for i := range cells {
		c := &cells[i]
		n, least := c.rights()
		right, estimates = right+n, estimates+c.estimates
		if float64(c.right[least]) < leastInACell*float64(runs) {
			short = append(short, fmt.Errorf("%d steps within %s: %s is right in %d of %d runs", c.steps, c.budget, least, c.right[least], runs))
		}
		if wide := slices.Max(c.width); wide > c.narrow() {
			short = append(short, fmt.Errorf("%d steps within %s: an interval of ±%.0f %%, ±%.0f %% at the most", c.steps, c.budget, 100*wide,
				100*c.narrow()))
		}
	}
	if percent(right, estimates) < 100*leastPooled {
		short = append(short, fmt.Errorf("%.1f %% of all estimates are right, %.0f %% at the least", percent(right, estimates), 100*leastPooled))
	}
	return errors.Join(short...)
}

func percent(part, of int) float64 { return 100 * float64(part) / float64(max(1, of)) }
