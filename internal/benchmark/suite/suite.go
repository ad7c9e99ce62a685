// Package suite reads a file of benchmarks: what runs, with which parameters, on which systems, what tells that it
// worked, and what its numbers should be. The words are those of ReFrame where it has one.
package suite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Suite is such a file.
type Suite struct {
	Systems    []System    `yaml:"systems"`
	Environs   []Environ   `yaml:"environs"`
	Benchmarks []Benchmark `yaml:"benchmarks"`

	dir string // the file's: commands run there
}

// System is a machine, or several of a kind.
type System struct {
	Name       string      `yaml:"name"`
	Hosts      []string    `yaml:"hosts"` // regular expressions of host names
	Partitions []Partition `yaml:"partitions"`
}

// Partition is a part of a system: with and without devices, say.
type Partition struct {
	Name        string            `yaml:"name"`
	Features    []string          `yaml:"features"`
	Environs    []string          `yaml:"environs"` // all without any
	Environment map[string]string `yaml:"environment"`
	TimeLimit   Duration          `yaml:"time_limit"`
}

// Environ is a set of variables, such as those that choose a Python. {python} and its like in commands are its Values.
type Environ struct {
	Name        string            `yaml:"name"`
	Features    []string          `yaml:"features"`
	Environment map[string]string `yaml:"environment"`
	Values      map[string]string `yaml:"values"`
}

// Benchmark is one entry; what it does not say, the one that it extends does.
type Benchmark struct {
	Name          string                          `yaml:"name"`
	Extends       string                          `yaml:"extends"`
	Abstract      bool                            `yaml:"abstract"` // is only extended
	Command       Words                           `yaml:"command"`
	Directory     string                          `yaml:"directory"` // below the file's
	Parameters    map[string][]string             `yaml:"parameters"`
	Environment   map[string]string               `yaml:"environment"`
	Setup         []string                        `yaml:"setup"`
	Build         []string                        `yaml:"build"`
	Cleanup       []string                        `yaml:"cleanup"`
	TimeLimit     Duration                        `yaml:"time_limit"`
	ValidSystems  []string                        `yaml:"valid_systems"`
	ValidEnvirons []string                        `yaml:"valid_environs"`
	Batch         string                          `yaml:"batch"` // a number, or a parameter: {batch}
	StepsPerEpoch string                          `yaml:"steps_per_epoch"`
	Loss          string                          `yaml:"loss"`
	Sanity        Sanity                          `yaml:"sanity"`
	Variables     map[string]Variable             `yaml:"variables"`
	References    map[string]map[string]Reference `yaml:"references"` // by SYSTEM:PARTITION, SYSTEM or *
}

// Sanity is what tells that a run did what it should.
type Sanity struct {
	Find     []string `yaml:"find"`
	Absent   []string `yaml:"absent"`
	ExitCode *int     `yaml:"exit_code"`
	XFail    string   `yaml:"xfail"`
}

// Variable is a number by a regular expression on the output, or by SQL over the recording.
type Variable struct {
	Regex string `yaml:"regex"`
	SQL   string `yaml:"sql"`
	Unit  string `yaml:"unit"`
	Take  string `yaml:"take"`
}

// Words are a command line: a list, or a text that is split at white space outside of quotes.
type Words []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *Words) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		var list []string
		if err := node.Decode(&list); err != nil {
			return err
		}
		*w = list
		return nil
	}
	list, err := split(node.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	*w = list
	return nil
}

// split divides a text as a shell does, without anything but quotes.
func split(text string) (words []string, err error) {
	var word strings.Builder
	quote, open := rune(0), false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case strings.ContainsRune(" \t\n", r):
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed in the command")
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}

// Duration is a time as YAML has it, such as 5m.
type Duration time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *Duration) UnmarshalYAML(node *yaml.Node) error {
	v, err := time.ParseDuration(node.Value)
	if err != nil || v <= 0 {
		return fmt.Errorf("line %d: %q is not a time: give one such as 90s or 10m", node.Line, node.Value)
	}
	*d = Duration(v)
	return nil
}

// Reference is [VALUE, LOWER, UPPER, UNIT], or [$xfail, REASON, [VALUE, LOWER, UPPER, UNIT]]; thresholds may be null.
type Reference struct {
	Value        float64
	Lower, Upper *float64
	Unit         string
	XFail        string
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (r *Reference) UnmarshalYAML(node *yaml.Node) error {
	usage := fmt.Errorf("line %d: a reference is [VALUE, LOWER, UPPER, UNIT], or [$xfail, REASON, [VALUE, LOWER, UPPER, UNIT]]", node.Line)
	if node.Kind != yaml.SequenceNode || len(node.Content) < 3 {
		return usage
	}
	if node.Content[0].Value == "$xfail" {
		if len(node.Content) != 3 || node.Content[1].Value == "" {
			return usage
		}
		reason := node.Content[1].Value
		if err := r.UnmarshalYAML(node.Content[2]); err != nil {
			return err
		}
		r.XFail = reason
		return nil
	}
	if len(node.Content) > 4 || node.Content[0].Decode(&r.Value) != nil || node.Content[1].Decode(&r.Lower) != nil ||
		node.Content[2].Decode(&r.Upper) != nil {
		return usage
	}
	if len(node.Content) == 4 {
		r.Unit = node.Content[3].Value
	}
	return nil
}

// mostBytes is how large a suite may be.
const mostBytes = 4 << 20

// Read reads a suite. An error names the line, or the benchmark, and what is wrong with it.
func Read(path string) (*Suite, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the suite: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the suite: %w", err)
	}
	if len(text) > mostBytes {
		return nil, fmt.Errorf("reading the suite %s: it is larger than %d MiB", path, mostBytes>>20)
	}
	s, err := parse(text)
	if err != nil {
		// The library puts each mistake on a line of its own.
		return nil, fmt.Errorf("reading the suite %s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	if s.dir, err = filepath.Abs(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return s, nil
}

func parse(text []byte) (*Suite, error) {
	s := &Suite{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(s); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(s.Benchmarks) == 0 {
		return nil, errors.New("it has no benchmarks: the key benchmarks lists them")
	}
	return s, s.check()
}

var named = regexp.MustCompile(`^[A-Za-z0-9_.+-]+$`)

// check finds what no benchmark can run with.
func (s *Suite) check() error {
	seen := map[string]bool{}
	for i := range s.Benchmarks {
		b := &s.Benchmarks[i]
		switch {
		case !named.MatchString(b.Name):
			return fmt.Errorf("benchmark %d is called %q: give each a name of letters, digits, and _.+-", i+1, b.Name)
		case seen[b.Name]:
			return fmt.Errorf("two benchmarks are called %s", b.Name)
		}
		seen[b.Name] = true
	}
	for _, sys := range s.Systems {
		if !named.MatchString(sys.Name) {
			return fmt.Errorf("a system is called %q: give each a name of letters, digits, and _.+-", sys.Name)
		}
		if len(sys.Partitions) == 0 {
			return fmt.Errorf("system %s has no partitions: give it one at least", sys.Name)
		}
		for _, pattern := range sys.Hosts {
			if _, err := regexp.Compile(pattern); err != nil {
				return fmt.Errorf("hosts of system %s: %w", sys.Name, err)
			}
		}
	}
	return nil
}
