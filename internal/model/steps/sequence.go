package steps

import (
	"cmp"
	"math"
	"slices"
)

// Call is one of a thread's outermost calls.
type Call struct {
	Name       string
	Begin, End int64
	// Alone: a single call may be a step: an execution of a compiled program, a graph, a scope.
	Alone bool
}

// Loop is a thread's loop as its calls show it.
type Loop struct {
	Steps []Step
	// Anchor is the call that begins a step, and Name what the loop's user calls one; "" where no name is known.
	Anchor, Name string
	// Fit is how much of what happens in the steps happens in the same number in each: 1 is all of it.
	Fit float64
	// Parts are how many repetitions of the anchor are one step, because they alternate.
	Parts int
	// Irregular: the periods follow no pattern.
	Irregular bool
	// Samples: each step chooses a token.
	Samples bool
	// Denoises: each step embeds its time and normalises groups, as models of diffusion do.
	Denoises bool

	// Beside is how often the anchor came on other threads of the process: a pool answers requests.
	Beside int

	numbers map[Kind]int
}

const (
	leastFit   = 0.85 // of a period: calls that come in equal numbers in each
	leastShare = 0.3  // of the thread's calls, or their time, that a loop has
	mostLearnt = 200_000
)

// chooses are calls that choose the next token, once in a decoding step. Nothing else in a model's forward pass does.
var chooses = map[string]bool{"aten::multinomial": true, "aten::argmax": true}

// candidate is a call that may begin each step.
type candidate struct {
	name     int
	n        int
	from, to int // its first and last call
	fit      float64
	share    float64
	kinds    int // how many names there are in its steps
}

// Repeating finds the loop in the outermost calls of a thread, in order of time, which have no marks of the job's. A call
// begins a step if the calls between two of it are the same in number from step to step; of those that hold, it is the
// one that comes most often, and one that chooses a token before all others. Not ok where nothing repeats.
func Repeating(calls []Call) (l Loop, ok bool) {
	learn := calls
	if len(learn) > mostLearnt {
		from := (len(calls) - mostLearnt) / 2
		learn = calls[from : from+mostLearnt]
	}
	s := newSequence(learn)
	best, ok := s.best()
	if !ok {
		return l, false
	}
	once := s.once(best)
	anchor := s.first(best, once)
	l = Loop{Anchor: s.names[anchor], Fit: best.fit, Parts: 1}
	if len(learn) < len(calls) {
		names := map[int]bool{}
		learnt := s
		s = newSequence(calls)
		for n := range once {
			names[s.numbers[learnt.names[n]]] = true
		}
		anchor, once = s.numbers[l.Anchor], names
	}
	l.cut(s, s.places(anchor), once)
	return l, len(l.Steps) > 1
}

// sequence is calls by the numbers of their names.
type sequenceOf struct {
	calls   []Call
	of      []int
	names   []string
	numbers map[string]int
	count   []int
	alone   []bool
	total   float64
}

func newSequence(calls []Call) *sequenceOf {
	s := &sequenceOf{calls: calls, of: make([]int, len(calls)), numbers: map[string]int{}}
	for i, c := range calls {
		n, known := s.numbers[c.Name]
		if !known {
			n = len(s.names)
			s.numbers[c.Name], s.names, s.count, s.alone = n, append(s.names, c.Name), append(s.count, 0), append(s.alone, c.Alone)
		}
		s.of[i] = n
		s.count[n]++
		s.total += float64(c.End - c.Begin)
	}
	return s
}

// places are the calls of a name.
func (s *sequenceOf) places(name int) (at []int) {
	for i, n := range s.of {
		if n == name {
			at = append(at, i)
		}
	}
	return at
}

// best is the candidate with the most repetitions of those that hold in the part of the recording with the most calls.
func (s *sequenceOf) best() (best candidate, ok bool) {
	var all []candidate
	for name, n := range s.count {
		if n < 2 {
			continue
		}
		c := s.candidate(name)
		least := leastFit
		if n == 2 {
			least = 0.97 // seen twice: they have to be alike
		}
		if c.fit >= least && c.share >= leastShare && (c.kinds > 1 || s.alone[name]) {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return best, false
	}
	widest := slices.MaxFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.share, b.share), cmp.Compare(b.name, a.name)) })
	for _, c := range all {
		inside := c.from <= widest.to && widest.from <= c.to && c.share >= 0.8*widest.share
		chooses, chose := chooses[s.names[c.name]], ok && chooses[s.names[best.name]]
		if !inside || ok && chose && !chooses {
			continue
		}
		if !ok || chooses && !chose || c.n > best.n || c.n == best.n && c.from < best.from {
			best, ok = c, true
		}
	}
	return best, ok
}

// candidate says how alike the stretches from one call of a name to the next are. Each name that occurs in them counts by
// the cube root of how often it does: the layers of a model, which repeat inside of a step, do not drown what comes once.
func (s *sequenceOf) candidate(name int) candidate {
	c := candidate{name: name, n: s.count[name], from: -1}
	now, before := make([]int, len(s.names)), make([]int, len(s.names))
	differ, inside := make([]int, len(s.names)), make([]int, len(s.names))
	var touched, seen []int
	stretches := 0
	end := func() {
		if stretches > 0 {
			for _, x := range touched {
				differ[x] += abs(now[x] - before[x])
			}
			for _, x := range seen {
				if now[x] == 0 {
					differ[x] += before[x]
				}
			}
		}
		for _, x := range seen {
			before[x] = 0
		}
		for _, x := range touched {
			before[x], now[x] = now[x], 0
			inside[x] += before[x]
		}
		seen, touched = touched, seen[:0]
		stretches++
	}
	last := len(s.of)
	if c.n > 2 {
		for last--; s.of[last] != name; last-- {
		}
	}
	busy := 0.0
	for i := 0; i < last; i++ {
		if s.of[i] == name {
			if c.from >= 0 {
				end()
			} else {
				c.from = i
			}
		}
		if c.from < 0 {
			continue
		}
		if x := s.of[i]; now[x] == 0 {
			touched = append(touched, x)
		}
		now[s.of[i]]++
		busy += float64(s.calls[i].End - s.calls[i].Begin)
	}
	end()
	c.to = last
	var fits, weights float64
	for x, n := range inside {
		if n == 0 {
			continue
		}
		c.kinds++
		mean := float64(n) / float64(stretches)
		fit := max(0, 1-float64(differ[x])/float64(max(stretches-1, 1))/(2*mean))
		w := math.Cbrt(float64(n))
		fits, weights = fits+w*fit, weights+w
	}
	c.fit = fits / max(weights, 1)
	// What follows the last call is a step, too.
	whole := float64(c.n) / float64(max(c.n-1, 1))
	if c.n == 2 {
		whole = 1
	}
	c.share = min(1, whole*max(busy/max(s.total, 1), float64(c.to-c.from)/float64(len(s.of))))
	return c
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// once are the names that come as often as the candidate, in the same part and once in each of its steps.
func (s *sequenceOf) once(best candidate) map[int]bool {
	once := map[int]bool{best.name: true}
	for name, n := range s.count {
		if n >= best.n-1-best.n/10 && n <= best.n+1+best.n/10 {
			if c := s.candidate(name); c.fit >= leastFit && c.from <= best.to && best.from <= c.to {
				once[name] = true
			}
		}
	}
	return once
}

// first is the call that a step begins with: what follows the choice of a token, else what came first.
func (s *sequenceOf) first(best candidate, once map[int]bool) int {
	after := map[int]int{}
	chosen := false
	for i := range s.of {
		if chosen && once[s.of[i]] && !chooses[s.names[s.of[i]]] {
			after[s.of[i]]++
			chosen = false
		}
		if chooses[s.names[s.of[i]]] {
			chosen = true
		}
	}
	most := best.name
	for name, n := range after {
		if n > after[most] || n == after[most] && name < most {
			most = name
		}
	}
	if after[most] > best.n/2 {
		return most
	}
	for _, name := range s.of[:min(best.from+1, len(s.of))] {
		if once[name] {
			return name
		}
	}
	return best.name
}

// Describe finds out what the steps do, from the thread's outermost calls: choose a token each, or take noise off.
func (l *Loop) Describe(calls []Call) {
	begin, end, n := int64(0), int64(0), 0
	for _, s := range l.Steps {
		if s.Kind == Other {
			continue
		}
		if n++; n == 1 {
			begin = s.Begin
		}
		end = max(end, s.End, s.Begin+s.Period)
	}
	if n == 0 {
		return
	}
	each := map[string]float64{}
	for _, c := range calls {
		if c.Begin >= begin && c.Begin < end {
			each[c.Name] += 1 / float64(n)
		}
	}
	for name := range chooses {
		l.Samples = l.Samples || each[name] >= 0.75 && each[name] <= 1.25*float64(l.Parts)
	}
	// The time of a step of diffusion is embedded as a sine and a cosine, and the model has normalised groups; a language
	// model with rotary positions has these functions, too, and looks tokens up.
	l.Denoises = !l.Samples && each["aten::sin"] >= 0.75 && each["aten::cos"] >= 0.75 && each["aten::group_norm"] >= 0.75
}

// cut makes steps that begin at the given calls, of which parts that alternate are one. What lacks half of the calls that
// come once in a step is none: the time between two requests.
func (l *Loop) cut(s *sequenceOf, at []int, once map[int]bool) {
	if first := s.before(at, once); first >= 0 {
		at = append([]int{first}, at...)
	}
	var real []bool
	for i, from := range at {
		real = append(real, s.distinct(from, s.end(at, i), once) > len(once)/2)
	}
	var times []float64
	for i := 1; i < len(at); i++ {
		if real[i-1] {
			times = append(times, float64(s.calls[at[i]].Begin-s.calls[at[i-1]].Begin))
		}
	}
	l.Parts, l.Irregular = Fold(times)
	for i := 0; i < len(at); {
		parts := 1
		for ; real[i] && parts < l.Parts && i+parts < len(at) && real[i+parts]; parts++ {
		}
		l.add(s.step(at[i], s.end(at, i+parts-1)), real[i])
		i += parts
	}
	Settle(l.Steps)
}

// end is the call after the last one of the step that begins at the i-th anchor. The last step has no more calls than the
// one before: what comes after the loop is no part of it.
func (s *sequenceOf) end(at []int, i int) int {
	switch {
	case i+1 < len(at):
		return at[i+1]
	case i > 0:
		return min(len(s.calls), at[i]+at[i]-at[i-1])
	}
	return len(s.calls)
}

// before is where the step before the first anchor begins, -1 without one: a step that ends with what the anchor follows.
func (s *sequenceOf) before(at []int, once map[int]bool) int {
	if len(at) < 2 {
		return -1
	}
	for i := max(0, at[0]-2*(at[1]-at[0])); i < at[0]; i++ {
		if once[s.of[i]] {
			if s.distinct(i, at[0], once) > len(once)/2 {
				return i
			}
			return -1
		}
	}
	return -1
}

// distinct is how many of the names come between two calls.
func (s *sequenceOf) distinct(from, to int, names map[int]bool) int {
	seen := map[int]bool{}
	for _, n := range s.of[from:to] {
		if names[n] {
			seen[n] = true
		}
	}
	return len(seen)
}

func (s *sequenceOf) step(from, to int) Step {
	step := Step{Kind: Train, Method: Period, Begin: s.calls[from].Begin, Period: -1, Anchors: string(Outer)}
	for _, c := range s.calls[from:to] {
		step.End = max(step.End, c.End)
	}
	return step
}

// add numbers the step; the one before it ends where it begins.
func (l *Loop) add(s Step, real bool) {
	if n := len(l.Steps); n > 0 {
		l.Steps[n-1].Period = s.Begin - l.Steps[n-1].Begin
	}
	if !real {
		s.Kind, s.Method = Other, Unmatched
	}
	if l.numbers == nil {
		l.numbers = map[Kind]int{}
	}
	s.Number = l.numbers[s.Kind]
	l.numbers[s.Kind]++
	l.Steps = append(l.Steps, s)
}
