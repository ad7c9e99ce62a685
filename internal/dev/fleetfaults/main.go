// Fleetfaults says how well the fleet names what is wrong: real ranks under gloo, one of
// which has a known fault, are recorded with the defaults, and asked by `fleet report`, or
// where they hang by `fleet hang`.
//
//	fleetfaults [-faults loader,quota,…] [-runs 3] [-healthy 20] [-tracer bin/ebpfprof] [-python python3]
//
// It prints the table of what was named, with the misses, and fails where a run names
// none or another worker, or a healthy window accuses a worker. Ranks share the machine:
// what the machine does to one is done to its CPU or by signals. It needs root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/study"
)

// ranks of the job, and the one with the fault.
const (
	ranks  = 3
	victim = 1
)

// fault is one that is injected, and what is to be named for it.
type fault struct {
	name     string
	function string // that the finding's is to contain, or that of an operator's caller
	inJob    string // the job's --fault; "" is none
	// outside does it to the victim until the function that it returns is called.
	outside func(pid int) (undo func(), err error)
	hang    string // what fleet hang is to say of it; "" where the job goes on, slower
}

var all = []fault{
	{name: "loader sleeps", inJob: "loader", function: "__getitem__"},
	{name: "reads from a slow FIFO", inJob: "fifo", function: "__getitem__"},
	{name: "Python code", inJob: "python", function: "tokenize"},
	{name: "forced collection", inJob: "gc", function: "garbage collection"},
	{name: "extra allocations", inJob: "allocations", function: "hoard"},
	{name: "CPU quota", outside: quota, function: "throttled"},
	{name: "busy neighbour", outside: neighbour, function: "preempted"},
	{name: "SIGSTOP pulses", outside: pulses, function: "stopped"},
	{name: "stopped rank", outside: stopped, hang: "missing"},
	{name: "mismatched collective", inJob: "mismatch", hang: "mismatch"},
	{name: "blocked in teardown", inJob: "teardown", hang: "missing"},
}

func main() {
	s := recordings{}
	names := flag.String("faults", "", "the first words of those to inject, with commas between them; all if empty")
	flag.IntVar(&s.runs, "runs", 3, "how often each fault is injected")
	flag.IntVar(&s.healthy, "healthy", 20, "how many windows of a healthy job are asked for")
	flag.DurationVar(&s.window, "window", 10*time.Second, "how long each is recorded")
	flag.StringVar(&s.tracer, "tracer", "bin/ebpfprof", "the program that records and answers")
	flag.StringVar(&s.python, "python", "python3", "the interpreter that has PyTorch 2")
	flag.StringVar(&s.job, "job", "testdata/jobs/straggler.py", "the job; it takes --fault, --after and --seconds")
	flag.Parse()
	study.Main("fleetfaults", func(ctx context.Context) error { return s.all(ctx, strings.Split(*names, ",")) })
}

type recordings struct {
	tracer, python, job string
	runs, healthy       int
	window              time.Duration
	dir                 string
	made                int // jobs so far
}

// errNotHere is why a fault cannot be injected on this machine.
var errNotHere = errors.New("not on this machine")

func (s *recordings) all(ctx context.Context, names []string) (err error) {
	if s.dir, err = os.MkdirTemp("", "ebpfprof-faults-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	var table []outcome
	for i := range all {
		f := &all[i]
		if !wanted(f.name, names) {
			continue
		}
		for range s.runs {
			o := s.inject(ctx, f)
			if table = append(table, o); errors.Is(o.err, errNotHere) {
				break
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	show(table)
	wrong := judge(table)
	if s.healthy > 0 && wanted("healthy", names) {
		accused, asked, err := s.watchHealthy(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("\n%d windows of %s of a healthy job: %d name a worker\n", asked, s.window, len(accused))
		for _, a := range accused {
			fmt.Println(" ", a)
			wrong = errors.Join(wrong, fmt.Errorf("healthy: %s", a))
		}
	}
	return wrong
}

func wanted(name string, names []string) bool {
	for _, n := range names {
		if strings.HasPrefix(name, strings.TrimSpace(n)) {
			return true
		}
	}
	return false
}

// outcome of one injection.
type outcome struct {
	fault *fault
	said  string // the verdict
	first string // the first finding's function, and whose
	place int    // of the right function at the right worker among the findings, from 1; 0: not in the first three
	err   error
}

// right reports whether the function is among the first three, and the worker is right.
func (o *outcome) right() bool { return o.err == nil && o.place > 0 }

func judge(table []outcome) (wrong error) {
	for i := range table {
		switch o := &table[i]; {
		case errors.Is(o.err, errNotHere):
		case o.err != nil:
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w", o.fault.name, o.err))
		case !o.right():
			wrong = errors.Join(wrong, fmt.Errorf("%s: missed: %s", o.fault.name, o.said))
		}
	}
	return wrong
}

// inject runs the job with a fault, and asks who it is.
func (s *recordings) inject(ctx context.Context, f *fault) (o outcome) {
	o.fault = f
	fmt.Fprintln(os.Stderr, f.name)
	inJob, after := f.inJob, 0
	if inJob == "" {
		inJob = "none"
	}
	if f.hang != "" {
		after = 1 << 40 // until it is asked for, which is once the recorder sees all: see asked
	}
	j, err := s.start(ctx, inJob, after)
	if err != nil {
		return outcome{fault: f, err: err}
	}
	defer j.end()
	if f.hang != "" {
		o.err = s.hangs(ctx, f, j, &o)
		return o
	}
	if f.outside != nil {
		undo, err := f.outside(j.pids[victim])
		if err != nil {
			return outcome{fault: f, err: err}
		}
		defer undo()
	}
	a, err := s.report(ctx, j)
	if err != nil {
		return outcome{fault: f, err: err}
	}
	o.read(f, a)
	return o
}

// read finds the fault in an answer of fleet report.
func (o *outcome) read(f *fault, a *answer) {
	o.said = a.Verdict
	told := a.told()
	if len(told) > 0 {
		o.first = fmt.Sprintf("%s, rank %d", told[0].Function, told[0].Workers[0].Rank)
	}
	for i, t := range told[:min(3, len(told))] {
		if t.Workers[0].Rank == victim && (strings.Contains(t.Function, f.function) || strings.Contains(t.Caller, f.function)) {
			o.place = i + 1
			return
		}
	}
}

// show prints the table: what was injected, and how often what was named.
func show(table []outcome) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "fault\truns\tfirst\tin the first three\tmissed\twhat was named first")
	for from := 0; from < len(table); {
		to := from
		first, three, missed, not := 0, 0, 0, ""
		named := map[string]int{}
		var order []string
		for ; to < len(table) && table[to].fault == table[from].fault; to++ {
			o := &table[to]
			switch {
			case errors.Is(o.err, errNotHere):
				not = o.err.Error()
			case o.right():
				if three++; o.place == 1 {
					first++
				}
			default:
				missed++
			}
			if named[o.first] == 0 && o.first != "" {
				order = append(order, o.first)
			}
			named[o.first]++
		}
		var words []string
		for _, n := range order {
			words = append(words, fmt.Sprintf("%s (%d)", n, named[n]))
		}
		if not != "" {
			fmt.Fprintf(w, "%s\t–\t–\t–\t–\t%s\n", table[from].fault.name, not)
		} else {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\n", table[from].fault.name, to-from, first, three, missed, strings.Join(words, "; "))
		}
		from = to
	}
	w.Flush()
}

// command runs the tracer and returns what it writes.
func (s *recordings) command(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, s.tracer, args...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(s.tracer), strings.Join(args, " "), err, said.String())
	}
	return out, nil
}
