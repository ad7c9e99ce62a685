package main

import (
	"strings"
	"testing"
)

// printedBy is what a run printed, and its second tries, as main makes them.
func printedBy(t *testing.T, again int, first []string, second map[string][]string) (printed string, ok bool) {
	t.Helper()
	var out strings.Builder
	r := newReport(&out)
	r.again = again
	read := func(into *report, events []string) {
		if err := into.read(strings.NewReader(lines(events...))); err != nil {
			t.Fatal(err)
		}
	}
	read(r, first)
	for _, n := range r.repeatable() {
		by := newReport(&out)
		by.again = again
		read(by, second[n.test])
		r.repeated(n, by)
	}
	ok = r.finish()
	return out.String(), ok
}

var twoFail = []string{"run A", "output A a_test.go:7: odd", "fail A", "run B", "run B/c", "output B/c b_test.go:9: wrong", "fail B/c",
	"fail B", "run C", "pass C", "output  FAIL", "fail "}

// Who looks for the first FAIL of a run finds what failed it, not what passed later.
func TestTheFirstFAILIsOfATestThatFailedForGood(t *testing.T) {
	printed, ok := printedBy(t, 2, twoFail, map[string][]string{
		"A": {"run A", "pass A", "pass "},
		"B": {"run B", "run B/c", "output B/c b_test.go:9: wrong again", "fail B/c", "fail B", "output  FAIL", "fail "},
	})
	before, from, found := strings.Cut(printed, "FAIL")
	if ok || !found || !strings.HasPrefix(from, "  p B/c ") {
		t.Errorf("well: %v; the first FAIL is not of B/c:\n%s", ok, printed)
	}
	for _, want := range []string{"again? p A ", "again? p B ", "again p A (0.0 s)\n      a_test.go:7: odd\n"} {
		if !strings.Contains(before, want) {
			t.Errorf("%q is not before the first FAIL:\n%s", want, printed)
		}
	}
	if at := strings.Index(from, "b_test.go:9: wrong\n"); at < 0 || at > strings.Index(from, "b_test.go:9: wrong again\n") {
		t.Errorf("both tries of B/c are not printed in their order:\n%s", printed)
	}
	if !strings.HasSuffix(printed, "\nthese tests failed:\n  p B/c\n      b_test.go:9: wrong\n") {
		t.Errorf("the run ends without what failed it:\n%s", printed)
	}
}

func TestARunWhoseTestsPassedAtTheSecondTryHasNoFAIL(t *testing.T) {
	pass := func(test string) []string { return []string{"run " + test, "pass " + test, "pass "} }
	printed, ok := printedBy(t, 2, twoFail, map[string][]string{"A": pass("A"), "B": pass("B")})
	if !ok || strings.Contains(printed, "FAIL") || strings.Contains(printed, "these tests failed") {
		t.Errorf("well: %v; printed:\n%s", ok, printed)
	}
	for _, said := range []string{"a_test.go:7: odd", "b_test.go:9: wrong"} {
		if strings.Count(printed, said) != 1 {
			t.Errorf("%q is not printed once:\n%s", said, printed)
		}
	}
}

// What has no second try is not held back for one.
func TestFailuresWithoutASecondTryArePrintedAtOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		again  int
		events []string
		want   string
	}{
		{"there are no second tries", 0, []string{"run A", "output A a_test.go:7: wrong", "fail A"}, "a_test.go:7: wrong"},
		{"one that says that nobody is harmed", 2, []string{"run NobodyIsHarmed", "output NobodyIsHarmed a_test.go:7: wrong",
			"fail NobodyIsHarmed"}, "a_test.go:7: wrong"},
		{"a process died", 2, []string{"run A", "output A a_test.go:7: the job: signal: killed", "fail A"}, "the job: signal: killed"},
		{"one too many", 1, []string{"run A", "output A a_test.go:7: wrong", "fail A", "run B", "fail B"},
			"FAIL  p A (0.0 s)\n      a_test.go:7: wrong\nFAIL  p B "},
		{"a package that did not build, later", 2, []string{"run A", "output A a_test.go:7: wrong", "fail A", "output  FAIL", "fail ", "other"},
			"a_test.go:7: wrong"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out)
			r.again = c.again
			for _, e := range c.events {
				if e == "other" {
					r.take(event{Action: "fail", Package: "q"})
					continue
				}
				if err := r.read(strings.NewReader(lines(e))); err != nil {
					t.Fatal(err)
				}
			}
			if !strings.Contains(out.String(), c.want) || !strings.Contains(out.String(), "FAIL  ") {
				t.Errorf("printed before the end:\n%swant FAIL, and %q", out.String(), c.want)
			}
		})
	}
}

func TestTheFirstLineOfAFailureIsWhatItFailedWith(t *testing.T) {
	const here = "github.com/ebpfprof/ebpfprof/internal/dev/testrun"
	t.Chdir("../../..")
	for _, c := range []struct {
		pkg    string
		output []string
		want   string
	}{
		{here, []string{"=== RUN   A\n", "    main.go:1: a log\n", "    report_test.go:1: a log\n", "    failures_test.go:12: a call\n",
			"    failures_test.go:16: it fails\n", "--- FAIL: A (0.00s)\n"}, "failures_test.go:16: it fails"},
		{here, []string{"    beside.go:1: waited 3.0 s for its turn\n", "    gone_test.go:7: wrong\n", "    gone_test.go:8: more\n"},
			"gone_test.go:7: wrong"},
		{"elsewhere", []string{"=== RUN   A\n", "text\n", "    a_test.go:7: wrong\n"}, "a_test.go:7: wrong"},
		{"elsewhere", []string{"    a_test.go:7: a log\n", "panic: nil map\n"}, "panic: nil map"},
		{"elsewhere", []string{"text\n"}, "text"},
		{"elsewhere", []string{"=== RUN   A\n", "--- FAIL: A (0.00s)\n"}, "it said nothing"},
	} {
		if got := firstLine(c.pkg, c.output); got != c.want {
			t.Errorf("%q is the first line of %q, want %q", got, c.output, c.want)
		}
	}
}
