package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// bearable is how often a test may pass at its second try, over all runs, before that
// fails a run.
const bearable = 2

// defect is a line of the list of tests that have passed at their second try:
//
//   - `internal/testkit/e2e TestX`, once: what is known of it
var defect = regexp.MustCompile("^- `([^ `]+) (Test[^ `]*)`, (once|twice|([0-9]+) times)\\b")

// knownDefects reads that list out of a document, by the tests' names.
func knownDefects(path string) map[string]int {
	text, _ := os.ReadFile(path)
	known := map[string]int{}
	for line := range strings.Lines(string(text)) {
		said := defect.FindStringSubmatch(line)
		if said == nil {
			continue
		}
		times := map[string]int{"once": 1, "twice": 2}[said[3]]
		if said[4] != "" {
			times, _ = strconv.Atoi(said[4])
		}
		known[said[1]+" "+said[2]] = times
	}
	return known
}

// defect says what is to be done about a test that passed at its second try, and whether
// the run may end well all the same.
func (r *report) defect(n name) (said string, ok bool) {
	times := 0
	listed := ""
	for entry, before := range r.known {
		if strings.HasSuffix(n.pkg, "/"+strings.Fields(entry)[0]) && strings.HasSuffix(entry, " "+n.test) || entry == n.String() {
			listed, times = entry, before
		}
	}
	switch {
	case listed == "":
		return "a defect: add it to the list in CONTRIBUTING.md (once), or mend it", true
	case times < bearable:
		return fmt.Sprintf("a defect that CONTRIBUTING.md lists (%d before): count this one there, or mend it", times), true
	}
	return fmt.Sprintf("a defect that CONTRIBUTING.md lists (%d before): mend it; at the third time a second try is no pass", times), false
}
