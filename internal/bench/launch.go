package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
)

// launchResult is what a launch of a stub device costs more with its probes in.
// The stub does nothing: what is left is the price of the probes.
type launchResult struct {
	costs      *launchCosts
	made, seen uint64 // at the paced rate
	lost       map[string]uint64
	rate       float64 // launches a second
}

const (
	pacedLaunches = 300_000
	pacedPeriod   = 10_000 // ns: 100,000 launches a second
)

// launchJob is a stub job in a loop, which makes its launches when it is told to.
type launchJob struct {
	*exec.Cmd
	in   io.Writer
	out  *bufio.Scanner
	tell string // what has it make its launches
	// directory of its own with copies of program and library, if it has one.
	directory string
}

var stubs = filepath.Join("testdata", "stubs", "build")

func startLaunches(arguments ...string) (*launchJob, error) {
	return startLaunchJob(append([]string{filepath.Join(stubs, "cudacalls"), "loop"}, arguments...)...)
}

func buildStubs() error {
	if out, err := exec.Command("make", "-s", "-C", filepath.Join("testdata", "stubs")).CombinedOutput(); err != nil {
		return fmt.Errorf("building the stubs: %w\n%s", err, out)
	}
	return nil
}

func startLaunchJob(program ...string) (*launchJob, error) {
	if err := buildStubs(); err != nil {
		return nil, err
	}
	line := append([]string{"-c", strconv.Itoa(jobCore)}, program...)
	j := &launchJob{Cmd: exec.Command("taskset", line...), tell: "go"}
	j.Env = append(os.Environ(), "STUB_INSTANT=1")
	var err error
	if j.in, err = j.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.out = bufio.NewScanner(out)
	if err := j.Start(); err != nil {
		return nil, err
	}
	j.out.Scan() // ready
	return j, nil
}

// once has the job make its launches; it returns ns a launch.
func (j *launchJob) once() (float64, error) {
	if _, err := io.WriteString(j.in, j.tell+"\n"); err != nil {
		return 0, err
	}
	if !j.out.Scan() {
		return 0, fmt.Errorf("the stub job ended: %w", j.out.Err())
	}
	return strconv.ParseFloat(strings.TrimSuffix(j.out.Text(), " ns"), 64)
}

func (j *launchJob) end() {
	j.Process.Kill()
	j.Wait()
	if j.directory != "" {
		os.RemoveAll(j.directory)
	}
}

// traced runs something while a session records the calls of the job.
func (j *launchJob) traced(run func() error) (tracer.Stats, error) {
	return traced(tracer.Options{PIDs: []int{j.Process.Pid}, Filter: filter.OfGroups("cuda"), Budget: tracer.Unlimited}, 0, run)
}

// traced runs something some time after a session began.
func traced(options tracer.Options, after time.Duration, run func() error) (tracer.Stats, error) {
	sink, err := newScratch()
	if err != nil {
		return tracer.Stats{}, err
	}
	defer sink.remove()
	session, err := tracer.Open(options, sink)
	if err != nil {
		return tracer.Stats{}, err
	}
	defer session.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- session.Run(ctx) }()
	time.Sleep(after)
	err = run()
	cancel()
	if failed := <-ended; err == nil {
		err = failed
	}
	return session.Stats(), err
}

func (r *results) measureLaunches(s settings) error {
	costs, err := measureLaunchCosts(s)
	if err != nil {
		return err
	}
	result := &launchResult{costs: costs}
	paced, err := startLaunches(strconv.Itoa(pacedLaunches), strconv.Itoa(pacedPeriod))
	if err != nil {
		return err
	}
	defer paced.end()
	stats, err := paced.traced(func() error {
		ns, err := paced.once()
		result.rate = 1e9 / ns
		return err
	})
	if err != nil {
		return err
	}
	result.made, result.seen, result.lost = pacedLaunches, stats.Spans, stats.Lost
	r.launch = result
	if err := r.measureLaunchStacks(s); err != nil {
		return err
	}
	say("  a launch: %s; paced: %d of %d recorded at %.0f/s, lost %v", costs, result.seen, result.made, result.rate, result.lost)
	return nil
}

func (r *results) launchTargets(p *page) {
	l := r.launch
	if l == nil {
		return
	}
	recorded := l.costs.over(&l.costs.recorded)
	p.row("a launch, entry, return, nine captured values and span record, without a stack (stub device): ≤ 0.8 µs", "",
		fmt.Sprintf("%.2f µs, %.2f empty uprobes", recorded/1e3, median(l.costs.traps(&l.costs.recorded))), verdict(recorded <= 800))
	r.launchStackTargets(p)
	p.row("100,000 launches/s from one thread without loss (stub device)", "",
		fmt.Sprintf("%d of %d at %.0f/s", l.seen, l.made, l.rate), verdict(l.seen >= l.made && len(l.lost) == 0 && l.rate > 99_000))
}

func (r *results) launches(p *page) {
	l := r.launch
	if l == nil {
		return
	}
	p.line("## A launch\n")
	l.costs.page(p)
	r.launchesWithStacks(p)
	p.line("Paced at %.0f launches a second from one thread, %d of %d were recorded.\n", l.rate, l.seen, l.made)
}
