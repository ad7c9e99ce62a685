package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// event is a line of `go test -json` (go doc test2json).
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build output
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

type name struct{ pkg, test string }

func (n name) String() string {
	if n.test == "" {
		return n.pkg
	}
	return n.pkg + " " + n.test
}

// report collects the events of one run.
type report struct {
	to     io.Writer
	strict bool // the kernel must have every feature but those of optional

	output  map[name][]string
	passed  map[name]bool // leaves only, as are the other two
	failed  map[name]bool
	skipped map[name]string // reason
	parents map[name]bool
	other   []string         // packages that failed without a failing test
	seconds map[name]float64 // of top-level tests
	waited  map[name]float64 // of tests that waited for others that trace the same library: seconds
	turns   map[name]float64 // of top-level tests: seconds after that, their own or their children's
	broke   bool             // a test binary ended before its tests had
	crashed bool             // a failed test says that a process died by a signal
	second  []name           // top-level tests that failed, and passed by themselves
	known   map[string]int   // of these the ones that are listed, and how often they did before

	failures
}

func newReport(to io.Writer) *report {
	return &report{
		to: to, output: map[name][]string{}, passed: map[name]bool{}, failed: map[name]bool{},
		skipped: map[name]string{}, parents: map[name]bool{}, seconds: map[name]float64{},
		waited: map[name]float64{}, turns: map[name]float64{}, failures: failures{texts: map[name]failure{}},
	}
}

// read takes events until the end, and prints failures as they come, or holds them back.
func (r *report) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(r.to, "%s", line) // of the go command itself
			} else {
				r.take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.to, e.Output)
	case "run":
		for parent := n.test; ; {
			i := strings.LastIndex(parent, "/")
			if i < 0 {
				break
			}
			parent = parent[:i]
			r.parents[name{n.pkg, parent}] = true
		}
	case "output":
		r.output[n] = append(r.output[n], e.Output)
		if said := waitedFor.FindStringSubmatch(e.Output); said != nil {
			r.waited[n], _ = strconv.ParseFloat(said[1], 64)
		}
	case "pass", "fail", "skip":
		r.ended(e, n)
		delete(r.output, n)
	}
}

// waitedFor is what a test says that waited for others (internal/testkit/e2e/harness).
var waitedFor = regexp.MustCompile(`: waited ([0-9.]+) s for its turn\n$`)

// timed adds up how long top-level tests ran. Of those that waited for others, or whose
// children did, that is without the wait.
func (r *report) timed(e event, n name) {
	top, _, child := strings.Cut(n.test, "/")
	if waited, took := r.waited[n]; took {
		r.turns[name{n.pkg, top}] += max(0, e.Elapsed-waited)
	}
	if !child && n.test != "" {
		r.seconds[n] = e.Elapsed
		if turns, took := r.turns[n]; took {
			r.seconds[n] = turns
		}
	}
}

func (r *report) ended(e event, n name) {
	r.timed(e, n)
	switch {
	case n.test == "" && e.Action == "fail":
		r.packageFailed(e, n)
	case n.test == "" && e.Action == "pass":
		fmt.Fprintf(r.to, "ok    %-60s %6.1f s\n", n.pkg, e.Elapsed)
	case n.test == "":
	case e.Action == "pass":
		r.passed[n] = true
	case e.Action == "skip":
		r.skipped[n] = reason(r.output[n])
	case e.Action == "fail":
		r.failed[n] = true
		r.crashed = r.crashed || strings.Contains(strings.Join(r.output[n], ""), diedBySignal)
		r.failedNow(n, failure{e.Elapsed, r.output[n]})
	}
}

// packageFailed prints why a package failed in which no test did: it did not
// build, it panicked, it ran out of time.
func (r *report) packageFailed(e event, n name) {
	r.broke = r.broke || !slices.Contains(r.output[n], ranToTheEnd)
	inside := slices.ContainsFunc(slices.Collect(maps.Keys(r.failed)), func(test name) bool { return test.pkg == n.pkg })
	if !inside {
		r.other = append(r.other, n.pkg)
	}
	if r.mayPass() {
		fmt.Fprintf(r.to, "ended %-60s %6.1f s, some of its tests failed\n", n.pkg, e.Elapsed)
		return
	}
	r.release(func(name) bool { return true }, "FAIL ")
	fmt.Fprintf(r.to, "FAIL  %-60s %6.1f s\n", n.pkg, e.Elapsed)
	if inside {
		return
	}
	for _, test := range slices.SortedFunc(maps.Keys(r.output), func(a, b name) int { return strings.Compare(a.test, b.test) }) {
		if test.pkg == n.pkg { // and of the tests that were running
			r.print(r.output[test])
		}
	}
}

// print indents a test's output, without the lines that only frame it.
func (r *report) print(output []string) {
	for _, line := range strings.SplitAfter(strings.Join(output, ""), "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || isFrame(trimmed) {
			continue
		}
		fmt.Fprintf(r.to, "      %s", line)
	}
}

func isFrame(line string) bool {
	return strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ")
}

// reason is what a test said before it was skipped, without file and line.
func reason(output []string) string {
	said := ""
	for _, line := range strings.Split(strings.Join(output, ""), "\n") {
		line = strings.TrimSpace(line)
		if line != "" && !isFrame(line) {
			said = line
		}
	}
	if file, text, ok := strings.Cut(said, ": "); ok && strings.Contains(file, ".go:") {
		said = text
	}
	if said == "" {
		return "no reason given"
	}
	return said
}

// optional are the kernel features that a kernel of any version may lack:
// virtual machines have no PMU, many builds no kprobes.
var optional = []string{"kprobes", "fentry", "hardware PMU", "GPU"}

// inexcusable reports whether a test was skipped for a feature that the kernel
// must have.
func (r *report) inexcusable(reason string) bool {
	if !r.strict || !strings.HasPrefix(reason, "kernel:") {
		return false
	}
	return !slices.ContainsFunc(optional, func(feature string) bool { return strings.Contains(reason, feature) })
}

// finish prints the skipped tests and the totals. It reports whether all is well.
func (r *report) finish() bool {
	r.release(func(name) bool { return true }, "FAIL ")
	for _, results := range []map[name]bool{r.passed, r.failed} {
		maps.DeleteFunc(results, func(n name, _ bool) bool { return r.parents[n] && !r.failedByItself(n) })
	}
	ok := len(r.failed) == 0 && len(r.other) == 0
	for _, n := range slices.SortedFunc(maps.Keys(r.skipped), func(a, b name) int { return strings.Compare(a.String(), b.String()) }) {
		why := r.skipped[n]
		fmt.Fprintf(r.to, "skip  %s: %s\n", n, why)
		if r.inexcusable(why) {
			fmt.Fprintln(r.to, "      this kernel has to be able to do that, and the test runs as root: a failure")
			ok = false
		}
	}
	r.printSlowest()
	if len(r.passed)+len(r.failed)+len(r.other) == 0 {
		fmt.Fprintln(r.to, "no test ran")
		ok = false
	}
	for _, n := range r.second {
		said, may := r.defect(n)
		fmt.Fprintf(r.to, "again %s: failed beside others, see above, and passed by itself: %s\n", n, said)
		ok = ok && may
	}
	fmt.Fprintf(r.to, "%d passed, %d failed, %d skipped", len(r.passed), len(r.failed)+len(r.other), len(r.skipped))
	if len(r.second) > 0 {
		fmt.Fprintf(r.to, ", %d passed at the second try", len(r.second))
	}
	fmt.Fprintln(r.to)
	r.printFailed()
	return ok
}

// failedByItself: a parent that failed while none of its subtests did.
func (r *report) failedByItself(n name) bool {
	if !r.failed[n] {
		return false
	}
	for child := range r.failed {
		if child.pkg == n.pkg && strings.HasPrefix(child.test, n.test+"/") {
			return false
		}
	}
	return true
}

// slowest is how many of the tests that took longest are named.
const slowest = 12

// printSlowest names the tests by which a run could be made shorter.
func (r *report) printSlowest() {
	names := slices.SortedFunc(maps.Keys(r.seconds), func(a, b name) int { return cmp.Compare(r.seconds[b], r.seconds[a]) })
	for _, n := range names[:min(slowest, len(names))] {
		if r.seconds[n] >= 10 {
			fmt.Fprintf(r.to, "slow  %6.1f s  %s\n", r.seconds[n], n)
		}
	}
}
