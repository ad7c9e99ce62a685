package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// once is in the names of tests that have one try: a process that was harmed once was
// harmed.
const once = "Harm"

// ranToTheEnd is what a test binary writes when all of its tests have run and some failed;
// after a panic, a signal or its timeout it does not.
const ranToTheEnd = "FAIL\n"

// diedBySignal is how os/exec begins to say of a process how it ended.
const diedBySignal = "signal: "

// repeatable are the top-level tests that failed, if they are so few as to be run again
// each by itself. None is where something failed outside of a test, or kept others from
// running, or where a process died: to harm a job once is too often.
func (r *report) repeatable() []name {
	if !r.mayPass() {
		return nil
	}
	tops := r.tops()
	maps.DeleteFunc(tops, func(n name, _ bool) bool { return !hasSecondTry(n) })
	return slices.SortedFunc(maps.Keys(tops), byName)
}

func hasSecondTry(n name) bool { return !strings.Contains(n.top().test, once) }

// onlyTest are the arguments of a run for one of its tests: the flags, and one package.
func onlyTest(args []string, n name) []string {
	flags := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "./") })
	return append(flags, "-run", "^"+n.test+"$", n.pkg)
}

// repeated takes what a test did by itself: if it passed it has not failed, and nor have
// its subtests, and its name is kept. What it said at its first try is printed now, and
// of one that failed again what it said then.
func (r *report) repeated(n name, by *report) {
	its := func(held name) bool { return held.top() == n }
	if len(by.failed)+len(by.other) > 0 || len(by.passed) == 0 {
		r.release(its, "FAIL ")
		if len(by.failed)+len(by.other) > 0 {
			fmt.Fprintf(r.to, "FAIL  %s: by itself, too\n", n)
		} else {
			fmt.Fprintf(r.to, "FAIL  %s: by itself it did not run\n", n)
		}
		for _, f := range by.held {
			fmt.Fprintf(r.to, "FAIL  %s, second try (%.1f s)\n", f, by.texts[f].seconds)
			r.print(by.texts[f].output)
		}
		by.held = nil
		return
	}
	r.release(its, "again")
	maps.DeleteFunc(r.failed, func(f name, _ bool) bool {
		return f.pkg == n.pkg && (f.test == n.test || strings.HasPrefix(f.test, n.test+"/"))
	})
	maps.Copy(r.passed, by.passed)
	maps.Copy(r.parents, by.parents)
	r.second = append(r.second, n)
}
