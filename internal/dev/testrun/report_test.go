package main

import (
	"fmt"
	"strings"
	"testing"
)

// lines makes the events of a package p: "run A", "skip A", "output A text".
func lines(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		action, rest, _ := strings.Cut(e, " ")
		test, output, _ := strings.Cut(rest, " ")
		fmt.Fprintf(&b, `{"Action":%q,"Package":"p","Test":%q,"Output":%q}`+"\n", action, test, output+"\n")
	}
	return b.String()
}

func TestReportTellsWhetherAllIsWell(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		strict bool
		ok     bool
		totals string
		prints string
	}{
		{"passed", []string{"run A", "pass A", "pass "}, true, true, "1 passed, 0 failed, 0 skipped", ""},
		{"failed", []string{"run A", "output A a_test.go:7: wrong", "fail A", "fail "}, true, false, "0 passed, 1 failed, 0 skipped",
			"a_test.go:7: wrong"},
		{"only the leaves count", []string{"run A", "run A/b", "run A/c", "fail A/b", "pass A/c", "fail A", "fail "}, true, false,
			"1 passed, 1 failed, 0 skipped", ""},
		{"a parent that fails by itself counts", []string{"run A", "run A/b", "pass A/b", "fail A", "fail "}, true, false,
			"1 passed, 1 failed, 0 skipped", ""},
		{"skipped for want of a package", []string{"run A", "pass A", "run B", "output B b_test.go:1: not installed: run `make torch`", "skip B"},
			true, true, "1 passed, 0 failed, 1 skipped", "skip  p B: not installed: run `make torch`"},
		{"skipped for a feature that must be there", []string{"run A", "pass A", "run B", "output B b_test.go:1: kernel: no uprobe.multi",
			"skip B"}, true, false, "1 passed, 0 failed, 1 skipped", "a failure"},
		{"the same on an old kernel, or not as root", []string{"run A", "pass A", "run B", "output B b_test.go:1: kernel: no uprobe.multi",
			"skip B"}, false, true, "1 passed, 0 failed, 1 skipped", "kernel: no uprobe.multi"},
		{"skipped for a feature that may be missing", []string{"run A", "pass A", "run B", "output B b_test.go:1: kernel: kprobes are refused",
			"skip B"}, true, true, "1 passed, 0 failed, 1 skipped", ""},
		{"a package that did not build", []string{"fail "}, true, false, "0 passed, 1 failed, 0 skipped",
			"these tests failed:\n  p, outside of its tests\n"},
		{"a panic", []string{"run A", "output A panic: nil map", "fail "}, true, false, "0 passed, 1 failed, 0 skipped", "panic: nil map"},
		{"nothing ran", []string{"pass "}, true, false, "0 passed, 0 failed, 0 skipped", "no test ran"},
		{"all was skipped", []string{"run A", "output A a_test.go:1: kernel: not in -short", "skip A"}, false, false,
			"0 passed, 0 failed, 1 skipped", "no test ran"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out)
			r.strict = c.strict
			if err := r.read(strings.NewReader(lines(c.events...))); err != nil {
				t.Fatal(err)
			}
			if ok := r.finish(); ok != c.ok {
				t.Errorf("well: %v, want %v", ok, c.ok)
			}
			if !strings.Contains("\n"+out.String(), "\n"+c.totals+"\n") || !strings.Contains(out.String(), c.prints) {
				t.Errorf("printed:\n%swant %q and a line %q", out.String(), c.prints, c.totals)
			}
		})
	}
}

func TestTheTimeThatTestsWaitedForTheirTurnIsNotTheirs(t *testing.T) {
	var out strings.Builder
	r := newReport(&out)
	ended := func(test string, elapsed, waited float64) {
		if waited >= 0 {
			r.take(event{Action: "output", Package: "p", Test: test, Output: fmt.Sprintf("    beside.go:1: waited %.1f s for its turn\n", waited)})
		}
		r.take(event{Action: "pass", Package: "p", Test: test, Elapsed: elapsed})
	}
	ended("Alone", 30, -1)
	ended("Own", 100, 80)
	for child, waited := range map[string]float64{"Both/a": 50, "Both/b": 75} {
		ended(child, 90, waited)
	}
	ended("Both", 91, -1)
	ended("Short", 400, 395)
	r.finish()
	const want = "slow    55.0 s  p Both\nslow    30.0 s  p Alone\nslow    20.0 s  p Own\n"
	if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "Short") {
		t.Errorf("printed:\n%swant:\n%s", out.String(), want)
	}
}

func TestKernelAtLeastReadsReleases(t *testing.T) {
	for release, want := range map[string]bool{
		"6.6.0": true, "6.18.2-cloud": true, "7.0-rc1": true, "6.6-rc3": true, "6.5.13": false, "5.15.0-1-amd64": false, "": false, "six": false,
	} {
		if got := kernelAtLeast(release, 6, 6); got != want {
			t.Errorf("%q: %v, want %v", release, got, want)
		}
	}
}
