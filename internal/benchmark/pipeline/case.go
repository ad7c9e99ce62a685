// Package pipeline runs a benchmark through its stages: setup, build, run (which is recorded), sanity, performance and
// cleanup. Each stage is timed; what the commands print is kept in files.
package pipeline

import (
	"regexp"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/numbers"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/reference"
)

// Case is one benchmark with one set of parameters on one partition of a system.
type Case struct {
	Name       string            `json:"name"`     // with parameters
	Base       string            `json:"basename"` // without
	Parameters map[string]string `json:"parameters,omitempty"`
	System     string            `json:"system"`
	Partition  string            `json:"partition"`
	Environ    string            `json:"environ"`

	Command []string          `json:"command"`
	Dir     string            `json:"directory,omitempty"`
	Env     map[string]string `json:"environment,omitempty"`
	Setup   []string          `json:"setup,omitempty"`
	Build   []string          `json:"build,omitempty"`
	Cleanup []string          `json:"cleanup,omitempty"`

	// TimeLimit is how long a run may take; 0 is as long as it wants.
	TimeLimit time.Duration `json:"-"`
	Sanity    Sanity        `json:"-"`
	Variables []Variable    `json:"-"`
	// References are what numbers and variables should be, by name.
	References map[string]reference.Reference `json:"-"`
	Numbers    numbers.Options                `json:"-"`
}

// Sanity is what tells that a run did what it should.
type Sanity struct {
	Find     []*regexp.Regexp // each is in the job's output
	Absent   []*regexp.Regexp // none is
	ExitCode *int             // nil: 0
	Expected string           // why it is expected to fail; "" where it is not
}

// Variable is a number that a suite asks for beside those that each recording gives: by a pattern on the job's output,
// whose last group is the number, or by SQL over the recording, whose first value is.
type Variable struct {
	Name, Unit string
	Pattern    *regexp.Regexp
	SQL        string
	// Take says which of several matches counts: last, first, min, max, mean or sum.
	Take string
}

// SysEnv is where the case runs, in ReFrame's words.
func (c Case) SysEnv() string { return c.System + ":" + c.Partition + "+" + c.Environ }

// Stages in the order in which they run.
var stageNames = []string{"setup", "build", "run", "sanity", "performance", "cleanup"}

// Stages are the names of the stages.
func Stages() []string { return stageNames }

// Stage is how long one took.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Outcome is what a run gave.
type Outcome struct {
	Case      *Case
	Repeat    int
	Attempt   int
	Begin     time.Time
	End       time.Time
	Result    reference.Result
	Stage     string // that failed; "" if none did
	Reason    string // one sentence; "" for a pass
	ExitCode  *int
	Stages    []Stage
	Place     string // directory of logs and recording
	Recording string // "" where none was kept
	Numbers   []numbers.Number
	Inventory []InventoryItem
	Periods   []float64
	Checked   map[string]Checked // by name, of numbers that have a reference
}

// Checked is a number held against its reference.
type Checked struct {
	Reference reference.Reference
	Result    reference.Result
	// Certain: the number's whole interval gives this result.
	Certain bool
}
