package steps

import (
	"math"
	"slices"
)

// Kind is what a step was for.
type Kind string

// The kinds.
const (
	Train    Kind = "train"
	Evaluate Kind = "evaluate" // a batch was loaded and nothing learnt from it
	Warmup   Kind = "warmup"   // before the steps settled
	Other    Kind = "other"    // anchors that belong to no step
)

// Method is how a step is known.
type Method string

// The methods.
const (
	// Learnt: a sequence that was seen ten times.
	Learnt Method = "sequence"
	// Autocorrelated: the recording is too short for that; its period.
	Autocorrelated Method = "autocorrelation"
	// Closed: another sequence than the learnt one, but it ends like a step.
	Closed Method = "closed"
	// Reduced: the backward passes of a step, without its loads and optimizer steps.
	Reduced Method = "backward"
	// Annotated: the job's own marks say so.
	Annotated Method = "annotation"
	// Period: the outermost calls of the thread repeat.
	Period Method = "period"
	// Unmatched: no step.
	Unmatched Method = "unmatched"
)

// Step is one repetition of the loop.
type Step struct {
	Kind       Kind
	Number     int   // counts steps of its kind from 0; warm-up counts as training
	Begin, End int64 // first anchor's begin, last anchor's end
	Period     int64 // to the next one's begin; -1 for the last one
	Anchors    string
	Method     Method
}

// Duration is the time from the first anchor's begin to the last anchor's end.
func (s Step) Duration() int64 { return s.End - s.Begin }

// Find returns the steps of a thread, in order of time.
func Find(anchors []Anchor) []Step {
	anchors = Relevant(anchors)
	tokens := make([]token, len(anchors))
	for i, a := range anchors {
		tokens[i] = a.token()
	}
	found, method := learnAll(tokens)
	if len(found) == 0 {
		return nil
	}
	f := finder{anchors: anchors, tokens: tokens}
	next := 0
	for _, r := range found {
		f.unmatched(next, r.from)
		f.parse(r, method)
		next = r.to
	}
	f.unmatched(next, len(tokens))
	f.evaluations()
	f.periods()
	Settle(f.steps)
	return f.steps
}

// learnAll tries the strongest closing class first: an optimizer that steps once
// does not make steps of all the backward passes after it.
func learnAll(tokens []token) ([]regime, Method) {
	for _, c := range closings(tokens) {
		if found := regimes(tokens, c); len(found) > 0 {
			return found, Learnt
		}
	}
	if s := segmentation(tokens); s != nil {
		return []regime{{s, 0, len(tokens)}}, Learnt
	}
	for _, c := range closings(tokens) {
		if s := autocorrelation(tokens, c); s != nil {
			return []regime{{s, 0, len(tokens)}}, Autocorrelated
		}
	}
	return nil, Unmatched
}

type finder struct {
	anchors []Anchor
	tokens  []token
	steps   []Step
}

// parse finds the sequence in its stretch, from left to right.
func (f *finder) parse(r regime, method Method) {
	n := len(r.sequence)
	kind := Train
	if !r.sequence.has(Backward) && !r.sequence.has(Optimize) && !r.sequence.has(Execute) && r.sequence.has(Load) {
		kind = Evaluate
	}
	from := r.from
	for i := r.from; i+n <= r.to; {
		if !slices.Equal(f.tokens[i:i+n], r.sequence) {
			i++
			continue
		}
		f.between(from, i, r.sequence)
		f.add(kind, method, i, i+n)
		i += n
		from = i
	}
	f.between(from, r.to, r.sequence)
}

// between are anchors that the sequence does not fit. They are steps of their own
// where they end like one, for example the last, shorter accumulation of an epoch,
// and where the backward passes of a step are there without the rest of it: scopes
// may be recorded in slices, backward passes are not.
func (f *finder) between(from, to int, s sequence) {
	closing, passes := s.closing(), 0
	for _, t := range s {
		if t.class == Backward && closing == Optimize {
			passes++
		}
	}
	start, seen := from, 0
	for i := from; i < to; i++ {
		if f.tokens[i].class == Backward {
			seen++
		}
		closes := f.tokens[i].class == closing && closing != Load
		full := passes > 0 && seen == passes
		switch next := i + 1; {
		case !closes && !full, next < to && f.tokens[next].class == closing:
			continue
		case closes:
			f.closed(start, next, Closed)
		default:
			f.closed(start, next, Reduced)
		}
		start, seen = i+1, 0
	}
	f.unmatched(start, to)
}

// closed adds a step without the loads before its last one, which were not for it.
func (f *finder) closed(from, to int, method Method) {
	begin := from
	for begin+1 < to && f.tokens[begin].class == Load && f.tokens[begin+1].class == Load {
		begin++
	}
	f.unmatched(from, begin)
	f.add(Train, method, begin, to)
}

func (f *finder) unmatched(from, to int) {
	for i := from; i < to; i++ {
		f.add(Other, Unmatched, i, i+1)
	}
}

func (f *finder) add(kind Kind, method Method, from, to int) {
	s := Step{Kind: kind, Method: method, Begin: f.anchors[from].Begin, Period: -1}
	letters := make([]byte, 0, to-from)
	for i := from; i < to; i++ {
		s.End = max(s.End, f.anchors[i].End)
		letters = append(letters, byte(f.tokens[i].class))
	}
	s.Anchors = string(letters)
	f.steps = append(f.steps, s)
}

// evaluations makes steps of loads that nothing was learnt from. The first load
// after a training step and the last one before the next found their loaders at
// their end: they loaded nothing.
func (f *finder) evaluations() {
	for from := 0; from < len(f.steps); {
		if s := f.steps[from]; s.Kind != Other || s.Anchors != string(Load) {
			from++
			continue
		}
		to := from
		for to < len(f.steps) && f.steps[to].Kind == Other && f.steps[to].Anchors == string(Load) {
			to++
		}
		first, last := from, to
		if from > 0 {
			first++
		}
		last-- // also where the recording ends: nothing says that a batch came
		for i := first; i < last; i++ {
			f.steps[i].Kind = Evaluate
			f.steps[i].Method = Learnt
		}
		from = to
	}
}

// periods go to the next one's begin, whatever that is, and numbers count.
func (f *finder) periods() {
	numbers := map[Kind]int{}
	for i := range f.steps {
		s := &f.steps[i]
		if i+1 < len(f.steps) {
			s.Period = f.steps[i+1].Begin - s.Begin
		}
		s.Number = numbers[s.Kind]
		numbers[s.Kind]++
	}
}

// Settle marks as warm-up all training steps before the first three in a row
// whose periods are within 20 % of the median of all.
func Settle(all []Step) {
	var periods []int64
	var train []int
	for i, s := range all {
		if s.Kind == Train && s.Period >= 0 {
			periods, train = append(periods, s.Period), append(train, i)
		}
	}
	if len(periods) < 3 {
		return
	}
	median := Median(periods)
	settled := func(i int) bool { return math.Abs(float64(periods[i])-median) <= 0.2*median }
	for i := 0; i+3 <= len(periods); i++ {
		if settled(i) && settled(i+1) && settled(i+2) {
			for _, s := range train[:i] {
				all[s].Kind = Warmup
			}
			return
		}
	}
}

// Median of an even number is the mean of the two in the middle; 0 of none.
func Median[T int64 | float64](x []T) float64 {
	if len(x) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(x))
	return (float64(s[(len(s)-1)/2]) + float64(s[len(s)/2])) / 2
}
