package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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

// foundFile has the findings of each kernel, by its name: the data that docs/kernels.md is
// made of. It is in the tree, so that whoever boots one kernel writes a page of all.
const foundFile = "docs/kernels.json"

// keep writes the findings into a file beside those of other kernels.
func (f *findings) keep(path string) error {
	all, err := readFound(path)
	if err != nil {
		return err
	}
	all[f.Kernel] = f
	contents, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(contents, '\n'), 0o644)
}

// kept reads the last findings of the long form, in the order of kernels.
func kept(path string) (all []*findings, err error) {
	found, err := readFound(path)
	if err != nil {
		return nil, err
	}
	for _, k := range kernels {
		if f := found[k.name]; f != nil {
			all = append(all, f)
		}
	}
	return all, nil
}

// readFound reads the findings of all kernels, by name; none if there is no file.
func readFound(path string) (map[string]*findings, error) {
	all := map[string]*findings{}
	contents, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(contents, &all); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return all, nil
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
