// Package inference says what a loop that serves or generates does: tokens, requests and images a second, the times to
// the first and to each other token, the batch over time, and which steps prefill and which decode.
//
// Shapes and the job's own ranges tell these; what neither tells stays unknown.
package inference

import (
	"context"
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// The kinds of steps.
const (
	Prefill = "prefill"
	Decode  = "decode"
)

// Rate is what a loop does in a second. Members that nothing tells are nil.
type Rate struct {
	PID   int    `json:"pid"`
	TID   int    `json:"tid"`
	Unit  string `json:"unit"`
	Steps int    `json:"steps"`
	// Represented is for how many these stand: more where steps were recorded in slices and counted between them.
	Represented float64 `json:"represented_steps"`
	// Seconds are from the first step's begin to the last one's end; of recordings in slices the time that the slices stand
	// for, where steps are counted between them, too, else the time of the steps in them.
	Seconds   float64 `json:"seconds"`
	StepsPerS float64 `json:"steps_per_s"`
	Prefill   int     `json:"prefill_steps"`
	Decode    int     `json:"decode_steps"`

	Tokens       *float64 `json:"tokens"` // chosen, one for each sequence of a step's batch
	TokensPerS   *float64 `json:"tokens_per_s"`
	PromptTokens *float64 `json:"prompt_tokens"`
	Requests     *float64 `json:"requests"`
	RequestsPerS *float64 `json:"requests_per_s"`
	// FirstTokenMS is the mean of prefill steps, begin to the choice of the token; TokenMS of the periods of decoding steps.
	FirstTokenMS *float64 `json:"time_to_first_token_ms"`
	TokenMS      *float64 `json:"time_per_output_token_ms"`
	Batch        *Batch   `json:"batch"`
	// MillisecondCosts is how many tokens a second (else steps) one millisecond more in each step costs.
	MillisecondCosts float64 `json:"millisecond_costs_per_s"`
	// Assumed: no shape and no range tells the batch; one sequence a step is assumed.
	Assumed bool `json:"batch_assumed"`
	// Sliced: steps were recorded in slices alone. Counted: an operator's calls were counted between slices, which tells the
	// rates. AtLeast: they were not, so that the rates are what the job does at the least.
	Sliced  bool `json:"sliced"`
	Counted bool `json:"counted"`
	AtLeast bool `json:"at_least"`
	// StepMS is a step's share of the time, InSlicesMS how long those in slices are; 0 where they are not longer.
	StepMS     float64 `json:"step_ms"`
	InSlicesMS float64 `json:"step_in_slices_ms"`

	kinds     map[int64]string // by step
	prefillNS float64
	decodeNS  float64
}

// Batch is how many sequences, or samples, a step works on.
type Batch struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	// OverTime are the means of ten equal parts of the time; of a part without steps it is null.
	OverTime []*float64 `json:"over_time"`
}

// Kinds are the steps that prefill or decode, by step_id.
func (r *Rate) Kinds() map[int64]string { return r.kinds }

// PrefillShare is the part of the steps' time that prefills; not ok where nothing tells what steps do.
func (r *Rate) PrefillShare() (share float64, ok bool) {
	all := r.prefillNS + r.decodeNS
	return r.prefillNS / max(all, 1), all > 0
}

// Of reads what a loop does. It is nil of a loop that trains, and of one without two steps.
func Of(ctx context.Context, db *dataset.DB, t timeline.Thread) (*Rate, error) {
	if t.Trains {
		return nil, nil
	}
	var loop []timeline.Step
	for _, s := range t.Steps {
		if s.Kind != steps.Other && s.Kind != steps.Evaluate {
			loop = append(loop, s)
		}
	}
	if len(loop) < 2 {
		return nil, nil
	}
	told, err := read(ctx, db, t, loop)
	if err != nil {
		return nil, fmt.Errorf("reading what the steps work on: %w", err)
	}
	r := &Rate{PID: t.PID, TID: t.TID, Unit: t.Unit, Steps: len(loop), kinds: map[int64]string{}}
	r.Sliced = t.InSlices && loop[0].Method == steps.Period
	weights, err := r.weights(ctx, db, loop)
	if err != nil {
		return nil, err
	}
	r.time(loop, weights, t.Loop)
	r.count(loop, told, weights, t)
	r.shorten(loop, weights)
	return r, nil
}

func (r *Rate) time(loop []timeline.Step, weights []float64, l *steps.Loop) {
	last := loop[len(loop)-1]
	switch {
	case r.AtLeast:
		for _, s := range loop {
			r.Seconds += float64(max(s.Until(), s.End)-s.Begin) / 1e9
		}
	case !r.Counted:
		r.Seconds = float64(max(last.End, last.Until())-loop[0].Begin) / 1e9
	}
	n := r.standFor(weights, l)
	r.Represented, r.StepsPerS = n, n/max(r.Seconds, 1e-9)
	r.StepMS = 1e3 * r.Seconds / max(n, 1)
	r.MillisecondCosts = r.StepsPerS - n/(r.Seconds+n/1e3)
}

func (r *Rate) count(loop []timeline.Step, told []told, weights []float64, t timeline.Thread) {
	var tokens, prompts, requests float64
	var first, each []float64
	var batches []float64
	samples := t.Loop != nil && t.Loop.Samples
	for i, s := range loop {
		if !samples && told[i].said == "" {
			told[i].queries, told[i].tokens = 0, 0 // an encoder has queries, too, and a U-Net's attention
		}
		w := told[i]
		batch := w.batch
		if batch == 0 {
			batch = 1
		} else {
			batches = append(batches, batch)
		}
		tokens += weights[i] * batch
		kind := w.kind()
		if kind == "" {
			continue
		}
		r.kinds[s.ID] = kind
		if kind == Prefill {
			r.prefillNS += float64(s.Duration())
		} else {
			r.decodeNS += float64(s.Duration())
		}
		if kind == Prefill {
			r.Prefill++
			requests, prompts = requests+weights[i]*batch, prompts+weights[i]*max(w.tokens, w.queries*batch)
			first = append(first, float64(s.Duration())/1e6)
			continue
		}
		r.Decode++
		if i+1 < len(loop) && s.Period >= 0 && told[i+1].kind() == Decode {
			each = append(each, float64(s.Period)/1e6)
		}
	}
	mean := func(all []float64) *float64 {
		if len(all) == 0 {
			return nil
		}
		m := steps.Mean(all)
		return &m
	}
	perSecond := func(n float64) *float64 { v := n / max(r.Seconds, 1e-9); return &v }
	r.FirstTokenMS, r.TokenMS = mean(first), mean(each)
	generates := samples || r.Prefill+r.Decode > 0
	if generates {
		r.Tokens, r.TokensPerS, r.Assumed = &tokens, perSecond(tokens), len(batches) == 0
		r.MillisecondCosts = *r.TokensPerS - tokens/(r.Seconds+r.Represented/1e3)
		if r.TokenMS == nil && r.Prefill+r.Decode == 0 {
			r.TokenMS = mean(periods(loop))
		}
	}
	if r.Prefill > 0 {
		r.Requests, r.RequestsPerS, r.PromptTokens = &requests, perSecond(requests), &prompts
	} else if strings.HasPrefix(t.Unit, "request") {
		n := r.Represented
		r.Requests, r.RequestsPerS = &n, perSecond(n)
	}
	if len(batches) > 0 {
		r.Batch = batchOf(loop, told)
	}
}

func periods(loop []timeline.Step) (all []float64) {
	for _, s := range loop {
		if s.Period >= 0 && s.Kind != steps.Warmup {
			all = append(all, float64(s.Period)/1e6)
		}
	}
	return all
}

const parts = 10

func batchOf(loop []timeline.Step, told []told) *Batch {
	b := &Batch{OverTime: make([]*float64, parts)}
	begin, end := loop[0].Begin, loop[len(loop)-1].Begin+1
	var all []float64
	inside := make([][]float64, parts)
	for i, s := range loop {
		n := told[i].batch
		if n == 0 {
			continue
		}
		if len(all) == 0 {
			b.Min = n
		}
		b.Min, b.Max = min(b.Min, n), max(b.Max, n)
		all = append(all, n)
		part := int(float64(s.Begin-begin) / float64(end-begin) * parts)
		inside[part] = append(inside[part], n)
	}
	b.Mean = steps.Mean(all)
	for i := range inside {
		if len(inside[i]) > 0 {
			m := steps.Mean(inside[i])
			b.OverTime[i] = &m
		}
	}
	return b
}

// Sentences are the rate in words.
func (r *Rate) Sentences() (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	how := ""
	switch {
	case r.Counted:
		how = "about "
	case r.AtLeast:
		how = "at least "
	}
	if r.TokensPerS != nil {
		text := fmt.Sprintf("%s%.1f tokens/s: %.0f tokens in %.2f s", how, *r.TokensPerS, *r.Tokens, r.Seconds)
		if r.Assumed {
			text += " (one a step is assumed: no shapes and no ranges tell the batch)"
		}
		if r.RequestsPerS != nil {
			text += fmt.Sprintf("; %.2f requests/s (%.0f prefilled)", *r.RequestsPerS, *r.Requests)
		}
		all = append(all, text)
	} else if r.RequestsPerS != nil {
		say("%s%.2f requests/s: %.0f requests in %.2f s", how, *r.RequestsPerS, *r.Requests, r.Seconds)
	} else {
		say("%s%.2f %s a second", how, r.StepsPerS, timeline.Plural(r.Unit))
	}
	if r.FirstTokenMS != nil {
		say("time to first token %.2f ms: the mean of %d prefill steps, without waiting in a queue", *r.FirstTokenMS, r.Prefill)
	}
	if r.TokenMS != nil {
		say("time per output token %s%.2f ms", map[bool]string{true: "at most "}[r.AtLeast], *r.TokenMS)
	}
	if b := r.Batch; b != nil {
		var over []string
		for _, v := range b.OverTime {
			if v == nil {
				over = append(over, "–")
			} else {
				over = append(over, fmt.Sprintf("%.1f", *v))
			}
		}
		say("batch %.1f (%.0f to %.0f); in tenths of the time %s", b.Mean, b.Min, b.Max, strings.Join(over, " "))
	}
	what := "steps/s"
	if r.TokensPerS != nil {
		what = "tokens/s"
	}
	say("1 ms more in each step would cost %.1f %s", r.MillisecondCosts, what)
	if note := r.note(); note != "" {
		all = append(all, note)
	}
	return all
}
