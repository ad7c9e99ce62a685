package steps

import (
	"cmp"
	"slices"
	"strings"
)

const (
	// repeats and patience are a Detector's own, if nothing else is said.
	repeats  = 10
	patience = 200
	// mostSegments is how many stretches are counted at the same time.
	mostSegments = 1024
	// longest is the longest sequence that is looked for: gradients accumulated
	// over 120 micro-batches.
	longest = 256
)

// Detector learns the sequence while anchors arrive. The zero value is ready.
type Detector struct {
	// Repeats is how often a sequence has to be seen before it is a step (PerfTracker's M, 10 if 0),
	// Patience after how many anchors without a step the sequence is learnt again (its K, 200 if 0).
	Repeats, Patience int

	seen     sequence       // since it began to learn, no more than it needs
	runs     [longest]int   // runs[p-1]: how many of the last tokens are those p before
	learnt   sequence       // nil while it learns
	matched  int            // tokens of learnt that the last ones are
	missed   int            // tokens since the last step
	closing  Class          // the class that must be in a step: the strongest that was seen
	fixed    bool           // closing was set, and stays
	relearn  int            // how often it began again
	segment  sequence       // since the last optimizer step
	segments map[string]int // how often each segment was seen
}

// Push takes the next anchor of a live thread, and says whether it completed a step.
func (d *Detector) Push(a Anchor) (completed bool) {
	_, completed = d.push(a.token())
	return completed
}

// Sequence is what was learnt, in letters; empty while it learns.
func (d *Detector) Sequence() string { return d.learnt.String() }

// push takes the next token. It says whether a sequence was learnt with
// it, and whether a step was completed.
func (d *Detector) push(t token) (learnt, completed bool) {
	if s := (sequence{t}).closing(); !d.fixed && (d.closing == 0 || strength(s) > strength(d.closing)) {
		d.closing = s
		// What was learnt before the first optimizer's step is a part of a step.
		if d.learnt != nil && !d.learnt.has(s) {
			d.again()
		}
	}
	if d.learnt == nil {
		return d.learn(t), false
	}
	return false, d.match(t)
}

// strength orders closing classes.
func strength(c Class) int {
	return len(order) - slices.Index(order, c)
}

var order = []Class{Optimize, Backward, Execute, Collective, Scope, Load}

func (d *Detector) repeats() int { return cmp.Or(d.Repeats, repeats) }

func (d *Detector) again() {
	*d = Detector{Repeats: d.Repeats, Patience: d.Patience, closing: d.closing, fixed: d.fixed, relearn: d.relearn + 1}
}

func (d *Detector) learn(t token) bool {
	d.seen = append(d.seen, t)
	n := len(d.seen) - 1
	found := 0
	for p := 1; p <= min(longest, n); p++ {
		if d.seen[n-p] == t {
			d.runs[p-1]++
		} else {
			d.runs[p-1] = 0
		}
		if found == 0 && d.runs[p-1] >= (d.repeats()-1)*p && sequence(d.seen[n+1-p:]).has(d.closing) {
			found = p
		}
	}
	if found > 0 {
		last := sequence(slices.Clone(d.seen[n+1-found:]))
		rotated := last.rotate()
		d.learnt, d.missed = rotated, 0
		// The tokens at the end that already begin the next step.
		d.matched = 0
		for k := range found {
			if slices.Equal(slices.Concat(last[k:], last[:k]), rotated) {
				d.matched = (found - k) % found
				break
			}
		}
		d.seen = nil
		return true
	}
	if s := d.segmented(t); s != nil {
		d.learnt, d.missed, d.matched, d.seen = s, 0, 0, nil
		return true
	}
	if d.outdated() {
		d.again()
		d.closing = 0
		return false
	}
	if most := longest * d.repeats(); len(d.seen) > 2*most {
		d.seen = slices.Clone(d.seen[len(d.seen)-most:])
	}
	return false
}

// outdated reports whether the class that must be in a step has not come for so long that
// it no longer does: its calls may have gone into slices with one still under way.
func (d *Detector) outdated() bool {
	n := len(d.seen)
	return !d.fixed && n >= longest && !d.seen[n-longest:].has(d.closing)
}

// segmented is for steps that never come ten times in a row, because epochs are
// short or end with another one: the stretch from one optimizer step to the next
// that was seen twice as often.
func (d *Detector) segmented(t token) sequence {
	if d.segment = append(d.segment, t); t.class != Optimize {
		if len(d.segment) > longest {
			d.segment = d.segment[1:]
		}
		return nil
	}
	s := d.segment
	d.segment = nil
	if opening(s[0].class) < 0 {
		return nil
	}
	if d.segments == nil {
		d.segments = map[string]int{}
	}
	key := s.key()
	if _, known := d.segments[key]; !known && len(d.segments) >= mostSegments {
		clear(d.segments) // what comes often will be counted again
	}
	if d.segments[key]++; d.segments[key] < 2*d.repeats() {
		return nil
	}
	return s
}

// key tells sequences apart.
func (s sequence) key() string {
	var b strings.Builder
	for _, t := range s {
		b.WriteByte(byte(t.class))
		b.WriteString(t.name)
		b.WriteByte(0)
	}
	return b.String()
}

// segmentation is what the most segments of a whole recording are, if those are ten.
func segmentation(tokens []token) sequence {
	seen, best := map[string]int{}, sequence(nil)
	var segment sequence
	for _, t := range tokens {
		if segment = append(segment, t); t.class != Optimize {
			continue
		}
		key := segment.key()
		if seen[key]++; opening(segment[0].class) >= 0 && seen[key] >= repeats &&
			(best == nil || seen[key] > seen[best.key()]) {
			best = segment
		}
		segment = nil
	}
	return best
}

// match compares the next token with the sequence. After a token that does not
// fit, the longest beginning of a step that the last tokens are counts.
func (d *Detector) match(t token) (completed bool) {
	for d.matched > 0 && d.learnt[d.matched] != t {
		d.matched = d.border(d.matched)
	}
	if d.learnt[d.matched] == t {
		d.matched++
	}
	d.missed++
	if d.matched == len(d.learnt) {
		d.matched, d.missed = 0, 0
		return true
	}
	if d.missed >= cmp.Or(d.Patience, patience) {
		d.again()
	}
	return false
}

// border is the length of the longest beginning of the sequence that its first n
// tokens also end with.
func (d *Detector) border(n int) int {
	for k := n - 1; k > 0; k-- {
		if slices.Equal(d.learnt[:k], d.learnt[n-k:n]) {
			return k
		}
	}
	return 0
}

// regime is a stretch of a thread's anchors that one sequence holds for.
type regime struct {
	sequence sequence
	from, to int // anchors
}

// regimes learns the sequences of a whole recording, steps of which end with the
// closing class. A sequence also holds for what came before it was learnt.
func regimes(tokens []token, closing Class) (all []regime) {
	d := Detector{closing: closing, fixed: true}
	from, done, relearnt := 0, 0, 0
	for i, t := range tokens {
		learnt, completed := d.push(t)
		switch {
		case learnt:
			all = append(all, regime{d.learnt, from, len(tokens)})
			done = i + 1
		case completed:
			done = i + 1
		case d.relearn > relearnt:
			relearnt, from = d.relearn, done
			all[len(all)-1].to = done
		}
	}
	return all
}

// closings are the classes that may end a step, the strongest first.
func closings(tokens []token) (all []Class) {
	for _, c := range order {
		if sequence(tokens).has(c) {
			all = append(all, c)
		}
	}
	return all
}

// autocorrelation is the sequence of a recording too short to have seen it ten
// times: the smallest period that nine of ten tokens agree with.
func autocorrelation(tokens []token, closing Class) sequence {
	for p := 1; 2*p <= len(tokens); p++ {
		same := 0
		for i := p; i < len(tokens); i++ {
			if tokens[i] == tokens[i-p] {
				same++
			}
		}
		last := sequence(tokens[len(tokens)-p:])
		if 10*same >= 9*(len(tokens)-p) && last.has(closing) {
			return slices.Clone(last).rotate()
		}
	}
	return nil
}
