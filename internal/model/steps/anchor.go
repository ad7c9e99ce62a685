// Package steps finds the steps of a training or inference loop without help
// from the job: in the order of a few calls that every loop makes.
//
// It is pure Go over plain values and imports nothing of this project: a
// recorded dataset and a live worker feed it alike. The method is that of
// PerfTracker: the sequence of anchors that repeats is the step.
package steps

import "slices"

// Class is what kind of call an anchor is.
type Class byte

// The classes, by the letters that sequences are written with.
const (
	Load       Class = 'L' // the data loader's next
	Backward   Class = 'B' // a backward pass
	Optimize   Class = 'O' // an optimizer's step
	Execute    Class = 'X' // a compiled program's execution
	Collective Class = 'C' // counts only on threads that have none of the others
	Scope      Class = 'S' // a scope of the user's own; likewise, and without collectives
	Outer      Class = 'F' // an outermost call, where nothing has a name
)

// Anchor is one call. Times are nanoseconds since any epoch.
type Anchor struct {
	Class      Class
	Name       string // tells apart programs that a thread executes, collectives and scopes
	Begin, End int64
}

// token is an anchor as sequences compare it.
type token struct {
	class Class
	name  string
}

// token of an anchor: a loader's next, a backward pass and an optimizer's step
// are themselves whatever they are called.
func (a Anchor) token() token {
	switch a.Class {
	case Load, Backward, Optimize:
		return token{class: a.Class}
	case Scope:
		return token{a.Class, Template(a.Name)}
	}
	return token{a.Class, a.Name}
}

// sequence is a step's anchors.
type sequence []token

// String is the sequence in letters.
func (s sequence) String() string {
	letters := make([]byte, len(s))
	for i, t := range s {
		letters[i] = byte(t.class)
	}
	return string(letters)
}

func (s sequence) has(c Class) bool {
	return slices.ContainsFunc(s, func(t token) bool { return t.class == c })
}

// closing is the class that ends a step of the sequence: an optimizer's step,
// else a backward pass, else an execution; else whatever it is made of.
func (s sequence) closing() Class {
	for _, c := range []Class{Optimize, Backward, Execute, Collective, Scope} {
		if s.has(c) {
			return c
		}
	}
	return Load
}

// opening ranks what a step begins with.
func opening(c Class) int { return slices.Index([]Class{Load, Backward, Execute}, c) }

// rotate has the sequence begin where a step begins: at a load, else a backward
// pass, else an execution, that follows the closing class. It is as it was where
// nothing of the sort follows one.
func (s sequence) rotate() sequence {
	closing, best := s.closing(), -1
	for i, t := range s {
		before := s[(i+len(s)-1)%len(s)]
		if before.class != closing || opening(t.class) < 0 {
			continue
		}
		if best < 0 || opening(t.class) < opening(s[best].class) {
			best = i
		}
	}
	if best < 0 {
		return s
	}
	return slices.Concat(s[best:], s[:best])
}

// Relevant are the anchors that count on a thread, in order of time: those of the
// strongest kind that it has, and none that lies within another one.
func Relevant(anchors []Anchor) []Anchor {
	weak := Scope
	for _, a := range anchors {
		if a.Class != Collective && a.Class != Scope {
			weak = 0
			break
		}
		if a.Class == Collective {
			weak = Collective
		}
	}
	kept := slices.DeleteFunc(slices.Clone(anchors), func(a Anchor) bool {
		return (a.Class == Collective || a.Class == Scope) && a.Class != weak
	})
	slices.SortStableFunc(kept, func(a, b Anchor) int {
		switch {
		case a.Begin != b.Begin:
			return compare(a.Begin, b.Begin)
		default:
			return compare(b.End, a.End)
		}
	})
	var end int64
	outer := kept[:0]
	for i, a := range kept {
		if i > 0 && a.End <= end && a.Begin < end {
			continue // a backward pass within a backward pass: checkpoints do that
		}
		end = max(end, a.End)
		outer = append(outer, a)
	}
	return outer
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
