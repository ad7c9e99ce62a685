// Package thresholds are the numbers that the rules of findings compare with.
package thresholds

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Threshold is a number that a rule compares with. Percentages are of the steps' mean period.
type Threshold struct {
	Name    string // in the file of --thresholds
	Default float64
	Whole   bool   // a count
	Why     string // a comment in the file: what it limits; "" if the one before explains it
}

// Set are the thresholds of one run: the defaults, and what a user's file overrides.
type Set struct {
	values map[string]float64
	// LibraryPaths are regular expressions of files that are not the user's, beside those
	// that usercode knows.
	LibraryPaths []string
}

// libraryPaths is the name of LibraryPaths in the file.
const libraryPaths = "library_paths"

// ErrBad is returned for a file with an unknown name or an invalid value.
var ErrBad = errors.New("bad thresholds")

// Default is the Set without a user's file.
func Default() Set { return Set{} }

// Of is the value of a threshold.
func (s Set) Of(t Threshold) float64 {
	if value, ok := s.values[t.Name]; ok {
		return value
	}
	return t.Default
}

// Count is the value of a threshold that is Whole.
func (s Set) Count(t Threshold) int { return int(s.Of(t)) }

// Read reads a user's file over the defaults of the known thresholds. An error names its line.
func Read(path string, known []Threshold) (Set, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Set{}, fmt.Errorf("reading thresholds: %w", err)
	}
	s, err := parse(text, known)
	if err != nil {
		// The library puts each mistake on a line of its own.
		sentence := strings.Join(strings.Fields(err.Error()), " ")
		return Set{}, fmt.Errorf("reading thresholds %s: %w: %s", path, ErrBad, sentence)
	}
	return s, nil
}

func parse(text []byte, known []Threshold) (Set, error) {
	s := Set{values: map[string]float64{}}
	var nodes map[string]yaml.Node
	if err := yaml.Unmarshal(text, &nodes); err != nil {
		return s, err
	}
	for name, node := range nodes {
		i := slices.IndexFunc(known, func(t Threshold) bool { return t.Name == name })
		switch {
		case name == libraryPaths:
			if err := node.Decode(&s.LibraryPaths); err != nil {
				return s, err
			}
			continue
		case i < 0:
			return s, fmt.Errorf("line %d: unknown threshold %q: --print-thresholds lists them", node.Line, name)
		}
		var value float64
		if err := node.Decode(&value); err != nil {
			return s, err
		}
		if known[i].Whole && value != math.Trunc(value) {
			return s, fmt.Errorf("line %d: %s is a count, not %v", node.Line, name, value)
		}
		s.values[name] = value
	}
	return s, nil
}

// Write writes the defaults as a file that Read takes.
func Write(w io.Writer, known []Threshold) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "# The thresholds of `ebpfprof findings`. A file of --thresholds overrides those that it names.")
	fmt.Fprintln(out, "# Percentages are of the steps' mean period.")
	for _, t := range known {
		if t.Why != "" {
			fmt.Fprintf(out, "\n# %s\n", t.Why)
		}
		fmt.Fprintf(out, "%s: %s\n", t.Name, strconv.FormatFloat(t.Default, 'f', -1, 64))
	}
	fmt.Fprintln(out, "\n# More files that are not the user's, as regular expressions: the place of a finding is the innermost frame")
	fmt.Fprintln(out, "# outside of them and of Python, its packages and frameworks, which need not be listed.")
	fmt.Fprintf(out, "%s: []\n", libraryPaths)
	return out.Flush()
}
