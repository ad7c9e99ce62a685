package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// failure is what a test said that failed.
type failure struct {
	seconds float64
	output  []string
}

// failures are the texts of the tests that failed, in the order in which they did. As long
// as each of them may have a second try, none is printed: who looks for the first FAIL of
// a run finds what failed it.
type failures struct {
	again int // how many top-level tests may have a second try
	texts map[name]failure
	held  []name // not printed yet
}

// failedNow takes a test that failed: its text is held back, or printed.
func (r *report) failedNow(n name, f failure) {
	r.texts[n] = f
	r.held = append(r.held, n)
	if r.mayPass() && hasSecondTry(n) {
		if !strings.Contains(n.test, "/") {
			fmt.Fprintf(r.to, "again? %s (%.1f s): what it said is held back until its second try is over\n", n, f.seconds)
		}
		return
	}
	r.release(func(held name) bool { return !r.mayPass() || !hasSecondTry(held) }, "FAIL ")
}

// mayPass reports whether tests that failed so far may pass at a second try, some of them.
func (r *report) mayPass() bool {
	return r.again > 0 && len(r.other) == 0 && !r.broke && !r.crashed && len(r.tops()) <= r.again
}

// tops are the top-level tests that failed, or that have subtests which did.
func (r *report) tops() map[name]bool {
	tops := map[name]bool{}
	for n := range r.failed {
		tops[n.top()] = true
	}
	return tops
}

func (n name) top() name {
	top, _, _ := strings.Cut(n.test, "/")
	return name{n.pkg, top}
}

// release prints the texts of those that are held back, if they are meant.
func (r *report) release(meant func(name) bool, as string) {
	r.held = slices.DeleteFunc(r.held, func(n name) bool {
		if !meant(n) {
			return false
		}
		fmt.Fprintf(r.to, "%s %s (%.1f s)\n", as, n, r.texts[n].seconds)
		r.print(r.texts[n].output)
		return true
	})
}

// printFailed ends a run with the names of what failed it, and what each said first.
func (r *report) printFailed() {
	if len(r.failed)+len(r.other) == 0 {
		return
	}
	fmt.Fprintln(r.to, "these tests failed:")
	for _, n := range slices.SortedFunc(maps.Keys(r.failed), byName) {
		fmt.Fprintf(r.to, "  %s\n      %s\n", n, firstLine(n.pkg, r.texts[n].output))
	}
	for _, pkg := range r.other {
		fmt.Fprintf(r.to, "  %s, outside of its tests\n", pkg)
	}
}

func byName(a, b name) int { return strings.Compare(a.String(), b.String()) }

// place is how testing begins what a test logs, and what it fails with.
var place = regexp.MustCompile(`^ *([^ /:]+\.go):([0-9]+): `)

// firstLine is the first of a test's output that it failed with. That is not told apart
// from what it logged but by the line of source that it comes from.
func firstLine(pkg string, output []string) string {
	first, said := "", ""
	for line := range strings.Lines(strings.Join(output, "")) {
		text := strings.TrimSpace(line)
		if text == "" || isFrame(text) {
			continue
		}
		if at := place.FindStringSubmatch(line); at != nil && fails(source(pkg, at[1], at[2])) ||
			strings.HasPrefix(text, "panic: ") {
			return text
		}
		if said == "" && place.MatchString(line) && !waitedFor.MatchString(line) {
			said = text
		}
		if first == "" {
			first = text
		}
	}
	switch {
	case said != "":
		return said
	case first != "":
		return first
	}
	return "it said nothing"
}

// fails reports whether a line of source makes a test fail.
func fails(line string) bool {
	return strings.Contains(line, ".Error") || strings.Contains(line, ".Fatal") || strings.Contains(line, ".Fail")
}

// source is a line of a package of this module, "" where it cannot be read.
func source(pkg, file, number string) string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	directory, ok := strings.CutPrefix(pkg, info.Main.Path+"/")
	if !ok {
		return ""
	}
	content, _ := os.ReadFile(filepath.Join(directory, file))
	lines := strings.Split(string(content), "\n")
	if n, err := strconv.Atoi(number); err == nil && n >= 1 && n <= len(lines) {
		return lines[n-1]
	}
	return ""
}
