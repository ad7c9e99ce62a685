// Command bench measures what the tracer costs the jobs that it traces, and
// what it costs itself: `make bench`. With -write the figures go into
// docs/overhead.md and its appendix. It needs root, the jobs' interpreters and two cores: the
// job has one, the tracer the other.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	quick := flag.Bool("quick", false, "fewer rounds, shorter windows")
	write := flag.Bool("write", false, "put the figures into docs/overhead.md and its appendix, each section with the date; what this run "+
		"did not measure stays")
	only := flag.String("only", "",
		"parts to run, of "+
			"start,hit,python,launch,native,mixed,programs,plan,decode,attach,paired,watched,budget,allocator,allocations,prices,reads,memory,models,samples (all if empty), or always-on")
	torch := flag.String("torch", "", "only the interpreter whose name begins so: 1.13 or 2")
	spans := flag.Int("decode", 0, "decode so many synthetic records and print the figures as JSON (used by bench itself)")
	length := flag.Duration("for", 30*time.Minute, "how long the agent watches each job of always-on")
	watched := flag.String("job", "", "only this job of always-on: mlp.py or transformer.py")
	program := flag.String("agent", "bin/ebpfprof-agent", "the agent of always-on")
	flag.Parse()
	if *spans > 0 {
		fail(decodeChild(*spans))
		return
	}
	s := setup.Settings{Rounds: 9, Window: 500 * time.Millisecond, Long: 8 * time.Second, Attaches: 7, Spans: 10_000_000}
	if *quick {
		s = setup.Settings{Rounds: 3, Window: 300 * time.Millisecond, Long: 3 * time.Second, Attaches: 5, Spans: 3_000_000}
	}
	s.Interpreted = setup.Interpreters(*torch)
	if *only != "" {
		s.Only = strings.Split(*only, ",")
	}
	started := time.Now()
	r := &results{started: started, quick: *quick, command: command()}
	fail(setup.PinToTracerCore())
	part := func(name string, run func() error) {
		if !s.Wanted(name) {
			return
		}
		setup.Say("%s …", name)
		r.load = append(r.load, setup.LoadAverage())
		if err := run(); err != nil {
			fail(fmt.Errorf("%s: %w", name, err))
		}
	}
	part("start", func() error { return setup.OnBothCores(func() error { return r.measureStart(s) }) })
	part("hit", r.training.MeasureHits)
	part("python", r.samples.MeasurePythonWalk)
	part("launch", func() error { return r.calls.MeasureLaunches(s) })
	part("reads", r.calls.MeasureReads)
	part("decode", func() error { return r.measureDecoding(s) })
	part("mixed", func() error { return r.samples.MeasureWarm(s) })
	part("memory", func() error { return setup.OnBothCores(func() error { return r.measureMemory(s) }) })
	part("watched", func() error { return setup.OnBothCores(func() error { return measureWatched(s) }) })
	for _, python := range s.Interpreted {
		part("native", func() error { return r.samples.MeasureNativeWalk(s, python) })
		part("mixed", func() error { return r.samples.MeasureMixed(s, python) })
		if slices.ContainsFunc([]string{"plan", "programs", "attach", "paired"}, s.Wanted) {
			r.load = append(r.load, setup.LoadAverage())
			if err := r.training.MeasureWorstCase(s, python); err != nil {
				fail(err)
			}
		}
		part("budget", func() error { return r.training.MeasureBudget(s, python) })
		part("allocator", func() error { return r.training.MeasureAllocator(s, python) })
		part("allocations", func() error { return r.training.MeasureAllocationTimes(s, python) })
		part("prices", func() error { return r.training.MeasurePrices(s, python) })
		part("samples", func() error { return r.samples.MeasureSampling(s, python) })
		for _, job := range []string{"mlp.py", "transformer.py"} {
			if s.Named("always-on") && (*watched == "" || *watched == job) { // it takes hours
				part("always-on", func() error { return r.always.Measure(*program, python, job, *length) })
			}
		}
		for _, model := range []string{"resnet.py", "transformer.py"} {
			part("models", func() error { return r.training.MeasureModel(s, python, model) })
		}
	}
	r.load = append(r.load, setup.LoadAverage())
	r.took = time.Since(started)
	for _, page := range r.pages() {
		fmt.Print(page.text)
		if *write {
			fail(r.put(filepath.Join("docs", page.name), page.text))
		}
	}
}

// put writes a page over the one that was there, whose other sections stay.
func (r *results) put(path, text string) error {
	old, err := os.ReadFile(path)
	switch {
	case err == nil:
		text = r.merge(string(old), text)
	case !os.IsNotExist(err):
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// command is how this run was started, for the page.
func command() string {
	if len(os.Args) > 1 {
		return "go run ./internal/dev/bench " + strings.Join(os.Args[1:], " ")
	}
	return "go run ./internal/dev/bench"
}

func fail(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
