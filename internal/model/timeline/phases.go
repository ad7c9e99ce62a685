package timeline

import (
	"context"
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// The phases of a step.
const (
	Loading       = "loading"
	Forward       = "forward"
	Backward      = "backward"
	Optimizer     = "optimizer"
	Communication = "communication"
	IO            = "io"
	Waiting       = "waiting for the device"
	OtherPhase    = "other"
	// Of inference.
	Prefill    = "prefill"
	Decode     = "decode"
	Sampling   = "sampling"
	Scheduling = "scheduling"
)

// phaseOf says which phase a span belongs to, "" where that of the span around
// it holds: by scope, autograd node, operator, in that order.
func phaseOf(layer, category, name string) string {
	switch layer {
	case "scope":
		switch {
		case strings.HasPrefix(name, "enumerate(DataLoader)"), strings.Contains(name, "DataLoader") && strings.Contains(name, "__next__"):
			return Loading
		case strings.HasPrefix(name, "Optimizer."):
			return Optimizer
		}
	case "autograd":
		return Backward
	case "collective":
		return Communication
	case "op":
		return Forward
	case "io":
		return IO
	case "runtime":
		if category == "sync" {
			return Waiting
		}
	}
	return ""
}

type openSpan struct {
	end   int64
	phase string
}

// inferencePhaseOf is phaseOf in a job that does not train: choosing a token is a phase, and so are the ranges that say
// that they schedule, sample or load.
func inferencePhaseOf(layer, category, name string) string {
	switch layer {
	case "scope":
		said := strings.ToLower(name)
		switch {
		case strings.Contains(said, "schedul"):
			return Scheduling
		case strings.Contains(said, "sampl") || strings.Contains(said, "logits"):
			return Sampling
		}
	case "op":
		switch name {
		case "aten::multinomial", "aten::argmax", "aten::topk", "aten::sort":
			return Sampling
		}
	}
	return phaseOf(layer, category, name)
}

// Stretch is a part of a recording's time.
type Stretch struct{ Begin, Until int64 }

// Phases gives each instant of a thread inside the stretches, which are in order, to
// the phase of the innermost span there that has one; in a backward pass operators
// belong to it. Without scopes the Python code that operators are called from says which
// are the optimizer's and the loader's, and what lies between those is theirs, too. One map
// of nanoseconds for each stretch. Part says which spans count. With inference, sampling and scheduling are phases, too.
func Phases(ctx context.Context, db *dataset.DB, part dataset.Scan, pid, tid int, stretches []Stretch, inference bool) ([]map[string]int64,
	error) {
	phaseOf, divides := phaseOf, divides
	if inference {
		phaseOf = inferencePhaseOf
		divides = func(layer, category, name string) bool {
			return layer == "scope" && inferencePhaseOf(layer, category, name) != "" || dividesTraining(layer, category, name)
		}
	}
	if len(stretches) == 0 {
		return nil, nil
	}
	begin, end := stretches[0].Begin, stretches[len(stretches)-1].Until
	sweep := phaseSweep{at: begin, windows: stretches, took: make([]map[string]int64, len(stretches))}
	for i := range sweep.took {
		sweep.took[i] = map[string]int64{}
	}
	code, err := phasesOfCode(ctx, db, pid)
	if err != nil {
		return nil, err
	}
	const time, duration, layer, category, name, process, thread, python, whole = 0, 1, 2, 3, 4, 5, 6, 7, 8
	part.Table, part.Columns = "span", []string{"ts_ns", "duration_ns", "layer", "category", "name", "pid", "tid"}
	if len(code) > 0 {
		part.Columns = append(part.Columns, "python_stack_id", "stack_id")
	}
	if part.Until == 0 || part.Until > end {
		part.Until = end
	}
	part.Before = func(b *dataset.Batch, i, k int) bool { return b.Columns[duration][i] > b.Columns[duration][k] }
	err = db.Scan(ctx, part, func(b *dataset.Batch) error {
		c := b.Columns
		for i := range b.Rows {
			took := c[duration][i]
			if c[process][i] != int64(pid) || took == dataset.Absent || c[time][i]+took <= begin {
				continue
			}
			in, kind := b.Text(c[layer][i]), b.Text(c[category][i])
			if c[thread][i] != int64(tid) {
				sweep.elsewhere.see(c[thread][i], in, kind, c[time][i], c[time][i]+took)
				continue
			}
			called := b.Text(c[name][i])
			if !divides(in, kind, called) {
				continue
			}
			from, until, phase := c[time][i], c[time][i]+took, phaseOf(in, kind, called)
			if phase == Forward && len(code) > 0 {
				stack := c[python][i]
				if stack == dataset.Absent {
					stack = c[whole][i]
				}
				if of, ok := code[stack]; ok {
					sweep.called(from, until, of)
					continue
				}
			}
			sweep.open(from, until, phase)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("dividing steps into phases: %w", err)
	}
	sweep.advance(end)
	return sweep.took, nil
}

func dividesTraining(layer, category, name string) bool { return divides(layer, category, name) }

// divides says of which spans a phase may come.
func divides(layer, category, name string) bool {
	switch layer {
	case "op", "autograd", "collective", "io":
		return true
	case "scope":
		return strings.Contains(name, "DataLoader") || strings.HasPrefix(name, "Optimizer.")
	case "runtime":
		return category == "sync"
	}
	return false
}

type phaseSweep struct {
	at      int64
	windows []Stretch // those that are not over, in order; what lies between them does not count
	over    int
	stack   []openSpan
	code    openSpan           // the last outermost call whose phase its code told, and nothing since
	took    []map[string]int64 // by stretch
	// elsewhere is the backward pass on another thread, which this one waits for.
	elsewhere backwardElsewhere
}

// open begins a span after closing those that ended before it.
func (s *phaseSweep) open(ts, end int64, phase string) {
	s.advance(ts)
	if n := len(s.stack); n > 0 {
		top := s.stack[n-1]
		end = min(end, top.end)
		// What a backward pass or an optimizer calls is theirs; only waiting, communication
		// and IO stand out of whatever they are in, IO not of a loader: it is what that does.
		inherits := top.phase == Backward || top.phase == Optimizer || top.phase == Loading || top.phase == Communication ||
			top.phase == Sampling || top.phase == Scheduling
		if phase == "" || inherits && phase == Forward || top.phase == Loading && phase == IO || top.phase == Communication {
			phase = top.phase
		}
	} else {
		s.code = openSpan{}
	}
	if phase == "" {
		phase = OtherPhase
	}
	s.stack = append(s.stack, openSpan{end, phase})
}

// close gives their time to the spans that end by t.
func (s *phaseSweep) close(t int64) {
	for len(s.stack) > 0 && s.stack[len(s.stack)-1].end <= t {
		top := s.stack[len(s.stack)-1]
		s.give(top.end, top.phase)
		s.stack = s.stack[:len(s.stack)-1]
	}
}

// advance gives the time up to t to what is open.
func (s *phaseSweep) advance(t int64) {
	s.close(t)
	phase := OtherPhase
	if n := len(s.stack); n > 0 {
		phase = s.stack[n-1].phase
	}
	if phase == OtherPhase {
		from, to := s.elsewhere.during(s.at, t)
		s.give(from, OtherPhase)
		s.give(to, Backward)
	}
	s.give(t, phase)
}

func (s *phaseSweep) give(until int64, phase string) {
	for until > s.at && len(s.windows) > 0 {
		w := s.windows[0]
		from, to := max(s.at, w.Begin), min(until, w.Until)
		if to > from {
			s.took[s.over][phase] += to - from
		}
		if until < w.Until {
			break
		}
		s.at, s.windows, s.over = w.Until, s.windows[1:], s.over+1
	}
	s.at = max(s.at, until)
}
