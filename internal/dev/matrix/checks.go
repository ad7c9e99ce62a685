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
	ends bool // of the oldest and the newest kernel only: it takes long, and next to nothing of it is the kernel's
}

// shortChecks are those of `make test`.
var shortChecks = []check{
	{"programs", "cd /tmp && tracer.test -test.v -test.run TestEachProgramLoadsWithinTheCeiling", readPrograms, false},
	{"doctor", "agent doctor", readDoctor, false},
	// What doctor says run does, down to a file.
	{"run", "agent run --json --output /out/true -- /usr/bin/busybox true", readRun, false},
}

// longChecks come after them. Where a job is attached to it runs already: a kernel
// under emulation takes seconds to load the programs.
var longChecks = []check{
	{"probes", "uprobe.test -test.v -test.run Test -test.bench BenchmarkSites -test.benchtime 1x", readProbes, false},
	{"native jobs", "cd /w/tracer && tracer.test -test.v -test.run " +
		"'TestEveryCallOfEveryShape|TestExceptionsAreMarked|TestArgumentsComeFrom|TestPerfEventsAreNeverSliced|TestCallsGoOnWithoutTheirStacks'",
		readTests, false},
	{"stub runtimes", "cd /w/internal/testkit/e2e && e2e.test -test.v -test.run " +
		"'TestEveryCallOf(CUDA|HIP|NCCL|Neuron|LevelZero)|TestABudgetHasAllLaunches'", readTests, false},
	{"native stacks", "cd /w/tracer/unwinding && unwinding.test -test.v -test.run 'TestEveryShapeOfFrame|TestOutcomesCount|TestForkedChild'",
		readTests, false},
	// Guests have control groups of version 2 alone, and their kernel says who was killed.
	{"out of memory", "cd /w/internal/testkit/e2e && e2e.test -test.v -test.run TestAJobThatTheKernelKills", readTests, false},
	{"OpenCL on PoCL", "cd /w/internal/testkit/e2e && e2e.test -test.v -test.run 'TestEveryOpenCLCall|TestOpenCLKernelsOfAProgram'",
		readTests, true},
	{"Python job", "python3 /jobs/spin.py 90 & sleep 5; agent attach --quiet --budget off --duration 5s --output /out/first --pid $!; " +
		"agent attach --quiet --budget off --duration 15s --output /out/py --pid $! && kill $!; " +
		"ebpfprof stacks /out/py | head -40; ebpfprof query --format csv /out/py \"" + stacksOf + "\"", readPython, false},
}

// stacksOf counts samples by what became of their stacks. A thread that only waits
// has one when it is woken.
const stacksOf = "SELECT 'stacks', count(*) FILTER (k.status = 'complete'), count(*) FROM sample s LEFT JOIN stack k USING (stack_id) WHERE s.stack_id IS NOT NULL"

// fewestComplete is how many of a hundred stacks have to be known to the thread's start.
const fewestComplete = 99

func readPrograms(f *findings, r result) error {
	for line := range strings.Lines(r.output) {
		_, line, _ = strings.Cut(line, ".go:")
		_, line, _ = strings.Cut(line, ": ")
		words := strings.Fields(line)
		switch {
		case len(words) == 3 && words[0] == "feature":
			f.Features[words[1]] = words[2] == "true"
		case len(words) == 4 && words[0] == "program":
			n, err := strconv.Atoi(words[3])
			if err == nil {
				f.Programs = append(f.Programs, loaded{words[1], words[2], n})
			}
		}
	}
	if err := readTests(f, r); err != nil {
		return err
	}
	if len(f.Programs) == 0 {
		return fmt.Errorf("no program was loaded")
	}
	return nil
}

// count reads a line in which a test says how many it saw of how many. Those of one
// name are added up.
func (f *findings) count(line string) {
	m := counted.FindStringSubmatch(line)
	if m == nil {
		return
	}
	recorded, _ := strconv.Atoi(m[2])
	made, _ := strconv.Atoi(m[3])
	i := slices.IndexFunc(f.Counts, func(c count) bool { return c.Of == m[1] })
	if i < 0 {
		i = len(f.Counts)
		f.Counts = append(f.Counts, count{Of: m[1]})
	}
	f.Counts[i].Recorded += recorded
	f.Counts[i].Made += made
}

func readTests(f *findings, r result) error {
	var t tally
	var failed []string
	for line := range strings.Lines(r.output) {
		f.count(line)
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "---" || strings.HasPrefix(line, " ") {
			continue
		}
		switch words[1] {
		case "PASS:":
			t.Passed++
		case "SKIP:":
			t.Skipped++
		case "FAIL:":
			t.Failed++
			failed = append(failed, words[2])
		}
	}
	f.Tests[r.name] = t
	switch {
	case !r.ended:
		return fmt.Errorf("it did not end")
	case t.Failed > 0:
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	case r.code != 0:
		return fmt.Errorf("exit code %d", r.code)
	case t.Passed == 0:
		return fmt.Errorf("no test passed")
	}
	return nil
}

// readCommand prints all of it.
func readCommand(_ *findings, r result) error {
	fmt.Print(r.output)
	if r.code != 0 || !r.ended {
		return fmt.Errorf("exit code %d", r.code)
	}
	return nil
}

// readProbes reads what a probe takes to put in and to take out.
func readProbes(f *findings, r result) error {
	for line := range strings.Lines(r.output) {
		if m := timed.FindStringSubmatch(line); m != nil {
			f.Times = append(f.Times, times{strings.ReplaceAll(m[1], "_", " "), m[2], m[3]})
		}
	}
	return readTests(f, r)
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
	if r.code != 0 {
		return fmt.Errorf("exit code %d where doctor finds nothing wrong: %s", r.code, lastLine(r.output))
	}
	return nil
}

// readPython wants the job's own functions, one inside the other, and that nearly all
// stacks are complete.
func readPython(f *findings, r result) error {
	if r.code != 0 {
		return fmt.Errorf("exit code %d: %s", r.code, lastLine(r.output))
	}
	for _, name := range []string{"outermost (spin.py)", "Worker.run (spin.py)", "middle (spin.py)", "innermost (spin.py)"} {
		if !strings.Contains(r.output, name) {
			return fmt.Errorf("no sample is in %s", name)
		}
	}
	words := strings.Split(lastLine(r.output), ",")
	if len(words) != 3 || words[0] != "stacks" {
		return fmt.Errorf("it does not say how many stacks are complete: %s", lastLine(r.output))
	}
	complete, _ := strconv.Atoi(words[1])
	all, _ := strconv.Atoi(words[2])
	f.Counts = append(f.Counts, count{"complete stacks of a CPython job", complete, all})
	if all == 0 || complete*100 < all*fewestComplete {
		return fmt.Errorf("%d of %d stacks are complete, fewer than %d %%", complete, all, fewestComplete)
	}
	return nil
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
