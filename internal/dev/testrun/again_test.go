package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func reportOf(t *testing.T, to *strings.Builder, events ...string) *report {
	t.Helper()
	r := newReport(to)
	if err := r.read(strings.NewReader(lines(events...))); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFewTestsThatFailedAreRunAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		want   []string
	}{
		{"none failed", []string{"run A", "pass A", "pass "}, nil},
		{"a test and a subtest", []string{"run A", "fail A", "run B", "run B/c", "fail B/c", "fail B", "output  FAIL", "fail "},
			[]string{"p A", "p B"}},
		{"too many", []string{"run A", "fail A", "run B", "fail B", "run C", "fail C", "output  FAIL", "fail "}, nil},
		{"one that says that nobody is harmed", []string{"run A", "fail A", "run NobodyIsHarmed", "fail NobodyIsHarmed", "output  FAIL", "fail "},
			[]string{"p A"}},
		{"a panic: the tests behind it did not run", []string{"run A", "fail A", "output  panic: nil map", "fail "}, nil},
		{"a job that crashed", []string{"run A", "output A a_test.go:7: the job: signal: segmentation fault", "fail A", "output  FAIL",
			"fail "}, nil},
		{"killed", []string{"run A", "fail A", "output  FAIL\tp\t0.1s", "fail "}, nil},
		{"a package that did not build", []string{"fail "}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := []string(nil)
			r := reportOf(t, &strings.Builder{}, c.events...)
			r.again = 2
			for _, n := range r.repeatable() {
				got = append(got, n.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v are run again, want %v", got, c.want)
			}
		})
	}
	got := onlyTest([]string{"-p", "1", "-count", "1", "./internal/testkit/e2e/...", "./bpf"}, name{"p", "A"})
	if want := []string{"-p", "1", "-count", "1", "-run", "^A$", "p"}; !slices.Equal(got, want) {
		t.Errorf("go test %q, want %q", got, want)
	}
}

func TestATestThatPassesByItselfIsNamed(t *testing.T) {
	for _, c := range []struct {
		second []string
		ok     bool
		totals string
	}{
		{[]string{"run A", "run A/b", "pass A/b", "pass A", "pass "}, true, "2 passed, 0 failed, 0 skipped, 1 passed at the second try"},
		{[]string{"run A", "run A/b", "fail A/b", "fail A", "fail "}, false, "1 passed, 1 failed, 0 skipped"},
		{[]string{"pass "}, false, "1 passed, 1 failed, 0 skipped"},
	} {
		var out strings.Builder
		r := reportOf(t, &out, "run A", "run A/b", "fail A/b", "fail A", "run C", "pass C", "output  FAIL", "fail ")
		r.repeated(name{"p", "A"}, reportOf(t, &strings.Builder{}, c.second...))
		ok := r.finish()
		if ok != c.ok || !strings.Contains(out.String(), "\n"+c.totals+"\n") {
			t.Errorf("well %v, want %v; printed:\n%swant %q", ok, c.ok, out.String(), c.totals)
		}
		if named := fmt.Sprint(strings.Contains(out.String(), "again p A: ")); named != fmt.Sprint(c.ok) {
			t.Errorf("named: %s", named)
		}
	}
}
