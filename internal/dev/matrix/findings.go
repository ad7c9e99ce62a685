package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// findings are what one kernel showed. They are kept, so that the page can be written of
// kernels that were not all booted at once.
type findings struct {
	Kernel, Arch, Release, Date string
	Long                        bool
	Skipped                     string          // why it was not booted
	Features                    map[string]bool // by their keys
	Programs                    []loaded
	Tests                       map[string]tally  // by check
	Codes                       map[string]int    // exit codes, likewise
	Dates                       map[string]string `json:",omitempty"` // of checks that were done on another day than Date
	Counts                      []count
	Times                       []times
	Without                     []without
	Failures                    []string

	boot *boot
}

// loaded is one program, as one way of loading it asks.
type loaded struct {
	Name, Without string // all: nothing was left out
	Instructions  int
}

// count is what was recorded of what was there.
type count struct {
	Of             string
	Recorded, Made int
}

var counted = regexp.MustCompile(`: ([\w ]+): (\d+) of (\d+) `)

// times are what probes of one way took, in milliseconds each.
type times struct{ Way, Attach, Detach string }

// A line of a benchmark; the name ends before the number of CPUs, if that is not one.
var timed = regexp.MustCompile(`^BenchmarkSites/(.*?)(?:-\d+)?\s+\d+\s+(?:0 ns/op\s+)?([\d.]+) ms/attach\s+([\d.]+) ms/detach`)

// tally counts the tests of one check.
type tally struct{ Passed, Skipped, Failed int }

func newFindings(k kernel, long bool) *findings {
	return &findings{
		Kernel: k.name, Arch: k.arch, Date: time.Now().UTC().Format(time.DateOnly), Long: long,
		Features: map[string]bool{}, Tests: map[string]tally{}, Codes: map[string]int{}, Dates: map[string]string{},
	}
}

// foundDirectory has what each kernel showed: the page's source. It is in the tree, so
// that whoever boots one kernel writes a page of all.
const foundDirectory = "internal/dev/matrix/found"

// keep writes what was found to a file.
func (f *findings) keep(directory string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	contents, err := json.MarshalIndent(f, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, f.Kernel+".json"), append(contents, '\n'), 0o644)
}

// kept reads what the long form found last, in the order of kernels; of a kernel that
// it was never run on there is nothing.
func kept(directory string) (all []*findings, err error) {
	for _, k := range kernels {
		f, found, err := keptOf(directory, k)
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, f)
		}
	}
	return all, nil
}

// keptOf is kept of one kernel.
func keptOf(directory string, k kernel) (f *findings, found bool, err error) {
	contents, err := os.ReadFile(filepath.Join(directory, k.name+".json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	f = new(findings)
	if err := json.Unmarshal(contents, f); err != nil {
		return nil, false, fmt.Errorf("reading what %s showed: %w", k.name, err)
	}
	return f, true, nil
}

// inherit adds what checks that were not done now had found before.
func (f *findings) inherit(before *findings, done func(check string) bool) {
	if !done("programs") {
		f.Features, f.Programs = before.Features, before.Programs
	}
	if !done("probes") {
		f.Times = before.Times
	}
	for name, code := range before.Codes {
		if done(name) {
			continue
		}
		f.Codes[name] = code
		if date := cmp.Or(before.Dates[name], before.Date); date != f.Date {
			f.Dates[name] = date
		}
		if t, ok := before.Tests[name]; ok {
			f.Tests[name] = t
		}
		for _, failure := range before.Failures {
			if strings.HasPrefix(failure, name+": ") {
				f.Failures = append(f.Failures, failure)
			}
		}
	}
	for _, c := range before.Counts {
		if !slices.ContainsFunc(f.Counts, func(now count) bool { return now.Of == c.Of }) {
			f.Counts = append(f.Counts, c)
		}
	}
	for _, w := range before.Without {
		if !done("without " + w.Keys) {
			f.Without = append(f.Without, w)
		}
	}
}
