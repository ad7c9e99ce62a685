// Package results turns the rows of a store into what people and machines read of a session of benchmarks: each
// benchmark's numbers over its runs, its references, what it ran on, and a verdict.
package results

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/inventory"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/numbers"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/reference"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/store"
)

// Verdict is what a benchmark's references say.
type Verdict string

// The verdicts, from good to bad.
const (
	NoReference  Verdict = "measured" // nothing to be held against
	Held         Verdict = "held"
	Expected     Verdict = "expected failure"
	Inconclusive Verdict = "inconclusive" // the interval reaches over a bound
	Missed       Verdict = "missed"       // or met though a miss was expected
	Failed       Verdict = "failed"       // a stage before performance
)

var severity = []Verdict{NoReference, Held, Expected, Inconclusive, Missed, Failed}

// Session is a session as it is shown.
type Session struct {
	ID         string       `json:"session"`
	BeginNS    int64        `json:"begin_ns"`
	EndNS      *int64       `json:"end_ns"`
	Host       string       `json:"host"`
	Command    string       `json:"command_line"`
	Store      string       `json:"store"`
	Verdict    Verdict      `json:"verdict"`
	Benchmarks []*Benchmark `json:"benchmarks"`
}

// Benchmark is a case with its runs.
type Benchmark struct {
	Name       string              `json:"name"`
	SysEnv     string              `json:"sysenv"`
	Command    string              `json:"command"`
	Verdict    Verdict             `json:"verdict"`
	Numbers    []numbers.Number    `json:"numbers"` // over the runs that count
	References []Reference         `json:"references"`
	Inventory  inventory.Inventory `json:"inventory"`
	Runs       []Run               `json:"runs"`
	// RunSpreadPercent is how much step times differ from run to run; nil of one run.
	RunSpreadPercent *float64 `json:"run_spread_percent"`
}

// Reference is what a number of a benchmark is held against.
type Reference struct {
	Name   string           `json:"name"`
	Value  *float64         `json:"value"`
	Ref    float64          `json:"reference"`
	Lower  *float64         `json:"lower_bound"` // null is none
	Upper  *float64         `json:"upper_bound"`
	Unit   string           `json:"unit"`
	Result reference.Result `json:"result"`
	// Certain: all of the interval gives this result.
	Certain bool `json:"certain"`
}

// Run is one of a benchmark's runs.
type Run struct {
	ID        string           `json:"run"`
	Repeat    int              `json:"repeat"`
	Attempt   int              `json:"attempt"`
	Seconds   float64          `json:"seconds"`
	Result    reference.Result `json:"result"`
	Stage     string           `json:"fail_stage,omitempty"`
	Reason    string           `json:"reason,omitempty"`
	Recording string           `json:"recording,omitempty"`
	Stages    []Stage          `json:"stages"`
	Numbers   []numbers.Number `json:"numbers"`

	periods []float64
}

// Stage is how long one took.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Of puts a session together from its rows.
func Of(s store.Session, runs []store.Run, of func(run string) []store.Number, root string) *Session {
	out := &Session{ID: s.ID, BeginNS: s.Begin, EndNS: s.End, Host: s.Host, Command: s.Command, Store: root, Verdict: NoReference}
	var order []string
	byKey := map[string][]store.Run{}
	for _, r := range runs {
		key := r.Name + "\x00" + SysEnv(r)
		if byKey[key] == nil {
			order = append(order, key)
		}
		byKey[key] = append(byKey[key], r)
	}
	for _, key := range order {
		b := benchmark(byKey[key], of)
		out.Benchmarks = append(out.Benchmarks, b)
		out.Verdict = worse(out.Verdict, b.Verdict)
	}
	return out
}

func worse(a, b Verdict) Verdict {
	if slices.Index(severity, b) > slices.Index(severity, a) {
		return b
	}
	return a
}

// SysEnv is where a run ran, in ReFrame's words.
func SysEnv(r store.Run) string { return r.System + ":" + r.Partition + "+" + r.Environ }

func benchmark(runs []store.Run, of func(run string) []store.Number) *Benchmark {
	b := &Benchmark{Name: runs[0].Name, SysEnv: SysEnv(runs[0]), Command: runs[0].Command, References: []Reference{}}
	slices.SortStableFunc(runs, func(x, y store.Run) int {
		return cmp.Or(cmp.Compare(x.Repeat, y.Repeat), cmp.Compare(x.Attempt, y.Attempt))
	})
	var counted [][]numbers.Number
	references := map[string]store.Number{}
	var names []string
	for i, row := range runs {
		rows := of(row.ID)
		r := Run{ID: row.ID, Repeat: int(row.Repeat), Attempt: int(row.Attempt), Seconds: float64(row.End-row.Begin) / 1e9,
			Result: reference.Result(row.Result), Stage: row.Stage, Reason: row.Reason, Recording: row.Recording, Numbers: numbersOf(rows)}
		_ = json.Unmarshal([]byte(row.Stages), &r.Stages)
		_ = json.Unmarshal([]byte(row.Periods), &r.periods)
		b.Runs = append(b.Runs, r)
		for _, n := range rows {
			if n.Ref == nil {
				continue
			}
			if _, ok := references[n.Name]; !ok {
				names = append(names, n.Name)
			}
			references[n.Name] = n
		}
		last := i+1 == len(runs) || runs[i+1].Repeat != row.Repeat // of its attempts
		if last && len(r.Numbers) > 0 {
			counted = append(counted, r.Numbers)
			_ = json.Unmarshal([]byte(row.Inventory), &b.Inventory)
		}
	}
	b.Numbers = numbers.OverRepeats(counted)
	if percent, ok := numbers.Spread(counted, numbers.StepTime); ok {
		b.RunSpreadPercent = &percent
	}
	for _, name := range names {
		b.References = append(b.References, b.held(references[name]))
	}
	b.Verdict = b.verdict()
	return b
}

func numbersOf(rows []store.Number) (all []numbers.Number) {
	for _, n := range rows {
		all = append(all, numbers.Number{Name: n.Name, Unit: n.Unit, Value: n.Value, Lo: n.Lo, Hi: n.Hi, Of: int(n.Of), From: n.From, Why: n.Why})
	}
	return all
}

// held holds the mean over the runs against the reference.
func (b *Benchmark) held(row store.Number) Reference {
	ref := reference.Reference{Value: *row.Ref, Lower: row.Lower, Upper: row.Upper}
	if row.Result == string(reference.XFail) || row.Result == string(reference.XPass) {
		ref.Expected = "expected"
	}
	out := Reference{Name: row.Name, Ref: *row.Ref, Unit: row.Unit, Result: reference.Fail, Certain: true}
	lower, upper, err := ref.Bounds()
	if err == nil && row.Lower != nil {
		out.Lower = &lower
	}
	if err == nil && row.Upper != nil {
		out.Upper = &upper
	}
	n, _ := numbers.Find(b.Numbers, row.Name)
	if n.Value == nil {
		return out
	}
	out.Value = n.Value
	out.Result, _ = ref.Check(*n.Value)
	out.Certain = n.Lo == nil || n.Hi == nil || ref.Certain(*n.Value, *n.Lo, *n.Hi)
	return out
}

// verdict is by the references of the mean over all runs; a run that failed before it was measured is a failure.
func (b *Benchmark) verdict() Verdict {
	v := NoReference
	for i, r := range b.Runs {
		last := i+1 == len(b.Runs) || b.Runs[i+1].Repeat != r.Repeat
		if !last || r.Stage == "" || r.Stage == "performance" && len(r.Numbers) > 0 {
			continue
		}
		switch r.Result {
		case reference.XFail:
			v = worse(v, Expected)
		case reference.XPass:
			v = worse(v, Missed)
		default:
			v = worse(v, Failed)
		}
	}
	for _, r := range b.References {
		switch {
		case !r.Certain:
			v = worse(v, Inconclusive)
		case r.Result == reference.Fail, r.Result == reference.XPass:
			v = worse(v, Missed)
		case r.Result == reference.XFail:
			v = worse(v, Expected)
		default:
			v = worse(v, Held)
		}
	}
	return v
}
