// Planted says how true findings are: training loops with one problem each are recorded
// with the defaults, and run without a tracer with and without the problem.
//
//	planted [-problems loader,fetch,…] [-runs 3] [-tracer bin/ebpfprof] [-python python3]
//
// The first finding with a headroom is to be the right rule at the right line, and mending
// the problem to bring at least four fifths of what it promises; a loop without a problem
// is to have no finding of high severity. It needs root.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/ebpfprof/ebpfprof/internal/dev/study"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// rules are what each problem of the job is to be found by.
var rules = map[string]string{
	"loader": "loader_starved", "fetch": "sync_in_step", "layout": "layout", "index": "backward_anomaly", "fusion": "fusion",
	"hook": "blocked", "gil": "gil_contention", "recompile": "recompilation", "none": "",
	// The same kinds, written otherwise.
	"workers": "loader_starved", "branch": "sync_in_step", "permute": "layout", "embedding": "backward_anomaly", "gelu": "fusion",
	"gradient": "blocked", "text": "gil_contention", "shape": "recompilation",
}

// leastKept is the share of a finding's headroom that mending is to bring.
const leastKept = 0.8

func main() {
	s := recordings{}
	problems := flag.String("problems", "none,loader,fetch,layout,index,fusion,hook,gil,recompile", "which of the job's problems")
	flag.IntVar(&s.runs, "runs", 3, "how often each loop is timed without a tracer")
	flag.IntVar(&s.steps, "steps", 200, "steps of a loop")
	flag.StringVar(&s.tracer, "tracer", "bin/ebpfprof", "the program that records and answers")
	flag.StringVar(&s.python, "python", "python3", "the interpreter that has PyTorch 2")
	flag.StringVar(&s.job, "job", "testdata/jobs/planted.py", "the job; it takes --problem, --mended and --steps")
	flag.Parse()
	study.Main("planted", func(ctx context.Context) error { return s.all(ctx, strings.Split(*problems, ",")) })
}

type recordings struct {
	tracer, python, job string
	runs, steps         int
}

// finding is what `ebpfprof findings --json` has of one.
type finding struct {
	Rule       string   `json:"rule"`
	Severity   string   `json:"severity"`
	HeadroomMS *float64 `json:"headroom_ms"`
	LowMS      *float64 `json:"lo_ms"`
	HighMS     *float64 `json:"hi_ms"`
	File       *string  `json:"file"`
	Line       *int     `json:"line"`
}

// truth is the job's last line.
type truth struct {
	Line     *int    `json:"line"`
	MedianNS float64 `json:"step_ns_median"`
}

// outcome of one problem.
type outcome struct {
	problem       string
	line          *int // where it is
	found         []finding
	with, without float64 // ms of a step, not traced
}

func (o *outcome) kept() (share float64, ok bool) {
	if len(o.found) == 0 || o.found[0].HeadroomMS == nil || *o.found[0].HeadroomMS <= 0 {
		return 0, false
	}
	return (o.with - o.without) / *o.found[0].HeadroomMS, true
}

func (s *recordings) all(ctx context.Context, problems []string) error {
	dir, err := os.MkdirTemp("", "ebpfprof-planted-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var all []outcome
	for _, p := range problems {
		p = strings.TrimSpace(p)
		if _, ok := rules[p]; !ok {
			return fmt.Errorf("the job has no problem %q", p)
		}
		o, err := s.try(ctx, p, filepath.Join(dir, p))
		if err != nil {
			return err
		}
		all = append(all, o)
	}
	show(all)
	var wrong []error
	for i := range all {
		wrong = append(wrong, all[i].judge())
	}
	return errors.Join(wrong...)
}

func (s *recordings) try(ctx context.Context, problem, dataset string) (o outcome, err error) {
	o.problem = problem
	fmt.Fprintf(os.Stderr, "%s: recording\n", problem)
	t, err := s.run(ctx, problem, s.tracer, "run", "--quiet", "--output", dataset, "--")
	if err != nil {
		return o, err
	}
	o.line = t.Line
	out, err := exec.CommandContext(ctx, s.tracer, "findings", dataset, "--json").Output()
	if err == nil {
		err = json.Unmarshal(out, &o.found)
	}
	if err != nil {
		return o, fmt.Errorf("%s: asking for findings: %w", problem, err)
	}
	var with, without []float64
	for range s.runs {
		fmt.Fprintf(os.Stderr, "%s: timing it with and without\n", problem)
		a, err := s.run(ctx, problem)
		if err != nil {
			return o, err
		}
		b, err := s.run(ctx, problem+" --mended")
		if err != nil {
			return o, err
		}
		with, without = append(with, a.MedianNS/1e6), append(without, b.MedianNS/1e6)
	}
	o.with, o.without = steps.Median(with), steps.Median(without)
	return o, nil
}

// run runs the job, under what is given before it, and reads its truth.
func (s *recordings) run(ctx context.Context, problem string, under ...string) (t truth, err error) {
	args := append(under, s.python, s.job, "--steps", strconv.Itoa(s.steps), "--problem")
	args = append(args, strings.Fields(problem)...)
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	var said bytes.Buffer
	c.Stderr = &said
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	out, err := c.Output()
	if err != nil {
		return t, fmt.Errorf("%s: %w\n%s", problem, err, said.Bytes())
	}
	for line := range bytes.Lines(out) {
		var told struct {
			Truth *truth `json:"truth"`
		}
		if json.Unmarshal(line, &told) == nil && told.Truth != nil {
			return *told.Truth, nil
		}
	}
	return t, fmt.Errorf("%s: the job tells no truth:\n%s", problem, out)
}

// judge says what is wrong with what was found.
func (o *outcome) judge() error {
	rule := rules[o.problem]
	if rule == "" {
		if i := slices.IndexFunc(o.found, func(f finding) bool { return f.Severity == "high" }); i >= 0 {
			return fmt.Errorf("%s: a finding of high severity in a healthy loop: %s", o.problem, o.found[i].Rule)
		}
		return nil
	}
	if len(o.found) == 0 {
		return fmt.Errorf("%s: nothing was found", o.problem)
	}
	f := o.found[0]
	switch kept, ok := o.kept(); {
	case f.Rule != rule:
		return fmt.Errorf("%s: the first finding is %s, not %s", o.problem, f.Rule, rule)
	case o.line == nil || f.Line == nil || *f.Line != *o.line || f.File == nil || filepath.Base(*f.File) != "planted.py":
		return fmt.Errorf("%s: found at %s instead of line %s", o.problem, f.at(), number(o.line))
	case !ok:
		return fmt.Errorf("%s: without headroom", o.problem)
	case kept < leastKept:
		return fmt.Errorf("%s: mending it brings %.0f %% of the headroom of %.2f ms", o.problem, 100*kept, *f.HeadroomMS)
	}
	return nil
}

func (f finding) at() string {
	if f.File == nil {
		return "no line"
	}
	return filepath.Base(*f.File) + ":" + number(f.Line)
}

func number(n *int) string {
	if n == nil {
		return "?"
	}
	return strconv.Itoa(*n)
}

func show(all []outcome) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "planted\tat line\tfirst finding\tat\theadroom, ms\tfrom\tto\tms a step\tmended\tbrings\tof the headroom")
	for i := range all {
		o := &all[i]
		row := []string{o.problem, number(o.line), "–", "–", "–", "–", "–"}
		if len(o.found) > 0 {
			f := o.found[0]
			row = []string{o.problem, number(o.line), f.Rule, f.at(), text(f.HeadroomMS), text(f.LowMS), text(f.HighMS)}
		}
		brings := o.with - o.without
		row = append(row, fmt.Sprintf("%.2f\t%.2f\t%.2f", o.with, o.without, brings))
		if kept, ok := o.kept(); ok {
			row = append(row, fmt.Sprintf("%.0f %%", 100*kept))
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
}

func text(ms *float64) string {
	if ms == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", *ms)
}
