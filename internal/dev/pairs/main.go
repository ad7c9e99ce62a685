// Pairs says how far the verdicts of `ebpfprof diff` can be trusted, by recordings of
// jobs whose difference is known. Jobs are pinned to one CPU and recorded one after the
// other, the two sides of a pair in an order that changes from pair to pair.
//
//	pairs [-pairs 20] [-slowed 10] [-longer 3] [-keep DIR] [-tracer bin/ebpfprof]
//
// First pairs of the same job: each verdict but neutral and inconclusive is a false
// alarm. Then pairs of which one side has an operator that makes its step a few percent
// longer: all recordings of one side are compared with all of the other, and the command
// fails where that is no regression or names something else. It needs root.
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
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/ebpfprof/ebpfprof/internal/answer/diff"
	"github.com/ebpfprof/ebpfprof/internal/answer/verdict"
	"github.com/ebpfprof/ebpfprof/internal/dev/study"
)

// The operator whose size the job takes, as diff names it, and its share of the step
// of the faster side.
const (
	operator     = "aten::erf"
	sharePercent = 5
)

func main() {
	s := recordings{}
	pairs := flag.Int("pairs", 20, "how many pairs of the same job")
	slowed := flag.Int("slowed", 10, "how many pairs with a slower operator on one side")
	longer := flag.Float64("longer", 3, "by how many percent the slower operator makes the step longer")
	flag.StringVar(&s.failOn, "fail-on", "1%", "what the slowed pairs are compared with; the same job is with diff's default")
	flag.StringVar(&s.tracer, "tracer", "bin/ebpfprof", "the program that records and compares")
	flag.StringVar(&s.python, "python", "/usr/bin/python3", "the interpreter that has PyTorch")
	flag.StringVar(&s.job, "job", "testdata/jobs/slowed.py", "the job; it takes --measure, --elements and --steps")
	flag.StringVar(&s.cpu, "cpu", "1", "the CPU that jobs are pinned to")
	flag.StringVar(&s.keep, "keep", "", "a directory that is made for the datasets, which are kept in it")
	flag.IntVar(&s.steps, "steps", 300, "training steps of a job")
	flag.Parse()
	study.Main("pairs", func(ctx context.Context) error { return s.all(ctx, *pairs, *slowed, *longer) })
}

// recordings are what is recorded and with what.
type recordings struct {
	tracer, python, job, cpu, failOn string
	steps                            int
	keep, dir                        string
}

func (s *recordings) all(ctx context.Context, pairs, slowed int, longer float64) (err error) {
	remove, err := s.makeDir()
	if err != nil {
		return err
	}
	defer remove()
	percent, err := s.measure(ctx)
	if err != nil {
		return err
	}
	before, after := int(percent*sharePercent), int(percent*(sharePercent+longer))
	alike, err := s.record(ctx, "same", pairs, before, before)
	if err != nil {
		return err
	}
	counts := map[verdict.Verdict]int{}
	for i, p := range alike {
		v, err := s.compare(ctx, "", p[:1], p[1:])
		if err != nil {
			return err
		}
		counts[v.Verdict]++
		fmt.Printf("same %d: %s\n", i+1, v.Sentence)
	}
	differ, err := s.record(ctx, "slowed", slowed, before, after)
	if err != nil {
		return err
	}
	return errors.Join(s.showAlike(ctx, alike, counts), s.showSlowed(ctx, differ, longer))
}

// makeDir makes the directory of the datasets, and gives what is to be done with it in the end.
func (s *recordings) makeDir() (remove func(), err error) {
	if s.keep != "" {
		if err := os.Mkdir(s.keep, 0o755); err != nil {
			return nil, fmt.Errorf("-keep makes a directory, so name one that is not there yet: %w", err)
		}
		s.dir = s.keep
		return func() {}, nil
	}
	s.dir, err = os.MkdirTemp("", "ebpfprof-pairs-")
	return func() { os.RemoveAll(s.dir) }, err
}

// measure is how many elements of the operator take a percent of a step: the least of
// three, since everything that disturbs makes the step longer.
func (s *recordings) measure(ctx context.Context) (float64, error) {
	least := 0.0
	for range 3 {
		out, err := exec.CommandContext(ctx, "taskset", "-c", s.cpu, s.python, s.job, "--measure").Output()
		if err != nil {
			return 0, fmt.Errorf("measuring the operator: %w%s", err, said(err))
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("the job says %q instead of a number of elements", out)
		}
		if least == 0 || n < least {
			least = n
		}
	}
	return least, nil
}

// record makes the pairs and gives their datasets. Which side comes first changes.
func (s *recordings) record(ctx context.Context, name string, pairs, before, after int) (datasets [][2]string, err error) {
	for i := range pairs {
		var p [2]string
		for turn := range 2 {
			side := (turn + i) % 2
			fmt.Fprintf(os.Stderr, "%s: pair %d of %d, side %d\n", name, i+1, pairs, side+1)
			p[side] = filepath.Join(s.dir, fmt.Sprintf("%s-%d-%d", name, i+1, side+1))
			elements := []int{before, after}[side]
			run := exec.CommandContext(ctx, s.tracer, "run", "--quiet", "--output", p[side], "--",
				"taskset", "-c", s.cpu, s.python, s.job, "--elements", strconv.Itoa(elements), "--steps", strconv.Itoa(s.steps))
			run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
			if out, err := run.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("recording %s: %w\n%s", filepath.Base(p[side]), err, out)
			}
		}
		datasets = append(datasets, p)
	}
	return datasets, nil
}

// compare is what `ebpfprof diff` says of one side and the other, of one recording each
// or of more.
func (s *recordings) compare(ctx context.Context, failOn string, before, after []string) (*diff.Result, error) {
	args := []string{"diff", "--json"}
	if failOn != "" {
		args = append(args, "--fail-on", failOn)
	}
	for _, d := range before[1:] {
		args = append(args, "--repeat-before", d)
	}
	for _, d := range after[1:] {
		args = append(args, "--repeat-after", d)
	}
	out, err := exec.CommandContext(ctx, s.tracer, append(args, before[0], after[0])...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && (exit.ExitCode() == verdict.ExitRegression || exit.ExitCode() == verdict.ExitInconclusive) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("comparing: %w%s", err, said(err))
	}
	r := &diff.Result{}
	if err := json.Unmarshal(out, r); err != nil {
		return nil, fmt.Errorf("reading what diff wrote: %w", err)
	}
	return r, nil
}

// said is what a command that failed wrote about it.
func said(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return ""
	}
	return "\n" + string(bytes.TrimSpace(exit.Stderr))
}

func sides(pairs [][2]string) (before, after []string) {
	for _, p := range pairs {
		before, after = append(before, p[0]), append(after, p[1])
	}
	return before, after
}

func (s *recordings) showAlike(ctx context.Context, pairs [][2]string, counts map[verdict.Verdict]int) error {
	if len(pairs) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nthe same job\tneutral\tinconclusive\timprovement\tregression\tfalse alarms")
	fmt.Fprintf(w, "%d pairs\t%d\t%d\t%d\t%d\t%d\n", len(pairs), counts[verdict.Neutral], counts[verdict.Inconclusive],
		counts[verdict.Improvement],
		counts[verdict.Regression], falseAlarms(counts))
	w.Flush()
	before, after := sides(pairs)
	v, err := s.compare(ctx, "", before, after)
	if err != nil {
		return err
	}
	fmt.Printf("all together: %s\n", v.Sentence)
	return nil
}

// falseAlarms are the verdicts that say that two recordings of the same job differ.
func falseAlarms(counts map[verdict.Verdict]int) int {
	return counts[verdict.Improvement] + counts[verdict.Regression]
}

func (s *recordings) showSlowed(ctx context.Context, pairs [][2]string, longer float64) error {
	if len(pairs) == 0 {
		return nil
	}
	before, after := sides(pairs)
	fmt.Printf("\n%s makes a step %.1f %% longer, compared with --fail-on %s\n", operator, longer, s.failOn)
	for _, n := range []int{1, 3, 5} {
		if n >= len(pairs) {
			break
		}
		if _, err := s.showFirst(ctx, n, before, after); err != nil {
			return err
		}
	}
	v, err := s.showFirst(ctx, len(pairs), before, after)
	if err != nil {
		return err
	}
	return judge(v)
}

// showFirst compares the first n recordings of each side.
func (s *recordings) showFirst(ctx context.Context, n int, before, after []string) (*diff.Result, error) {
	v, err := s.compare(ctx, s.failOn, before[:n], after[:n])
	if err != nil {
		return nil, err
	}
	fmt.Printf("%d of each: %s\n", n, v.Sentence)
	return v, nil
}

// judge says what is wrong with the verdict on a job whose operator was made slower.
func judge(v *diff.Result) error {
	if v.Verdict != verdict.Regression {
		return fmt.Errorf("a step with a slower operator is %s: %s", v.Verdict, v.Sentence)
	}
	for _, row := range v.Rows {
		if row.Significant && row.Kind == "operator" && row.After > row.Before {
			if row.Key != operator {
				return fmt.Errorf("diff names %s as the operator that grew most, not %s", row.Key, operator)
			}
			return nil
		}
	}
	return fmt.Errorf("diff names no operator that grew, and %s has", operator)
}
