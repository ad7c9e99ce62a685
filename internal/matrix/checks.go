package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// check is one command of a guest, and what is read from what it prints.
type check struct {
	name    string
	command string
	// read fills in what was found, and says in one clause what is wrong.
	read func(f *findings, r result) error
}

// findings are what one kernel showed.
type findings struct {
	kernel   kernel
	boot     *boot
	skipped  string          // why it was not booted
	features map[string]bool // by their keys
	programs []loaded
	tests    map[string]tally // by check
	failures []string
}

// loaded is one program, as one way of loading it asks.
type loaded struct {
	name, without string // all: nothing was left out
	instructions  int
}

// tally counts the tests of one check.
type tally struct{ passed, skipped, failed int }

// shortChecks are those of `make test`.
var shortChecks = []check{
	{"programs", "cd /tmp && tracer.test -test.v -test.run TestEachProgramLoadsWithinTheCeiling", readPrograms},
	{"doctor", "agent doctor", readDoctor},
	// What doctor says run does, down to a file: true is a job without a library to probe,
	// which is exit code 5.
	{"run", "agent run --json --output /out/true -- /usr/bin/busybox true", readRun},
}

// longChecks come after them.
var longChecks = []check{
	{"native jobs", "cd /w/tracer && tracer.test -test.v -test.run 'TestEveryCallOfEveryShape|TestExceptionsAreMarked|TestArgumentsComeFrom'", readTests},
	{"stub runtimes", "cd /w/internal/e2e && e2e.test -test.v -test.run 'TestEveryCallOf(CUDA|HIP|NCCL|Neuron|LevelZero)'", readTests},
	{"native stacks", "cd /w/tracer/unwinding && unwinding.test -test.v -test.run 'TestEveryShapeOfFrame|TestOutcomesCount|TestForkedChild'", readTests},
	{"Python job", "agent run --quiet --budget off --output /out/py -- python3 /jobs/spin.py 20 && ebpfprof stacks /out/py --json >/out/stacks.json; " +
		"ebpfprof stacks /out/py | head -40", readPython},
}

func readPrograms(f *findings, r result) error {
	for line := range strings.Lines(r.output) {
		_, line, _ = strings.Cut(line, ".go:")
		_, line, _ = strings.Cut(line, ": ")
		words := strings.Fields(line)
		switch {
		case len(words) == 3 && words[0] == "feature":
			f.features[words[1]] = words[2] == "true"
		case len(words) == 4 && words[0] == "program":
			n, err := strconv.Atoi(words[3])
			if err == nil {
				f.programs = append(f.programs, loaded{words[1], words[2], n})
			}
		}
	}
	if err := readTests(f, r); err != nil {
		return err
	}
	if len(f.programs) == 0 {
		return fmt.Errorf("no program was loaded")
	}
	return nil
}

func readTests(f *findings, r result) error {
	var t tally
	var failed []string
	for line := range strings.Lines(r.output) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "---" || strings.HasPrefix(line, " ") {
			continue
		}
		switch words[1] {
		case "PASS:":
			t.passed++
		case "SKIP:":
			t.skipped++
		case "FAIL:":
			t.failed++
			failed = append(failed, words[2])
		}
	}
	f.tests[r.name] = t
	switch {
	case !r.ended:
		return fmt.Errorf("it did not end")
	case t.failed > 0:
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	case r.code != 0:
		return fmt.Errorf("exit code %d", r.code)
	case t.passed == 0:
		return fmt.Errorf("no test passed")
	}
	return nil
}

func readDoctor(_ *findings, r result) error {
	if r.code != 0 {
		return fmt.Errorf("exit code %d: %s", r.code, lastLine(r.output))
	}
	for _, name := range []string{"programs load", "sampling programs load"} {
		if !slices.ContainsFunc(strings.Split(r.output, "\n"), func(line string) bool {
			rest, ok := strings.CutPrefix(line, name+" ")
			return ok && strings.HasPrefix(strings.TrimSpace(rest), "ok")
		}) {
			return fmt.Errorf("it does not say that %s", name)
		}
	}
	return nil
}

// readRun wants that it was recorded and that nothing was there to be captured.
func readRun(_ *findings, r result) error {
	if r.code != 0 && r.code != 5 {
		return fmt.Errorf("exit code %d where doctor finds nothing wrong: %s", r.code, lastLine(r.output))
	}
	return nil
}

// readPython wants the job's own functions, one inside the other, on both walks.
func readPython(_ *findings, r result) error {
	if r.code != 0 {
		return fmt.Errorf("exit code %d: %s", r.code, lastLine(r.output))
	}
	for _, name := range []string{"outermost (spin.py)", "Worker.run (spin.py)", "middle (spin.py)", "innermost (spin.py)"} {
		if !strings.Contains(r.output, name) {
			return fmt.Errorf("no sample is in %s", name)
		}
	}
	return nil
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
