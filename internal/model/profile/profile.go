// Package profile adds up call stacks: by function, and into the tree of who
// called whom. It knows neither datasets nor the terminal it is shown on.
package profile

import (
	"cmp"
	"slices"

	"github.com/ebpfprof/ebpfprof/symbolize"
)

// Stack is one call stack and the time spent in it.
type Stack struct {
	// Group is what the stack is shown below, a process or thread; "" for none.
	Group    string
	Frames   []*Frame // leaf first
	WeightNS int64
	Samples  int64
	// Cut is why the stack does not reach down to the thread's start; "" when
	// it does.
	Cut string
}

// Titles are the labels above the stack's frames: its group, why it is cut.
func (s *Stack) Titles() (titles []string) {
	if s.Group != "" {
		titles = append(titles, s.Group)
	}
	if s.Cut != "" {
		titles = append(titles, CutLabel+s.Cut+"]")
	}
	return titles
}

// Profile is a set of stacks, all of whose frames are from one Frames.
type Profile []Stack

// WeightNS is the time spent in all stacks.
func (p Profile) WeightNS() (sum int64) {
	for i := range p {
		sum += p[i].WeightNS
	}
	return sum
}

// Samples is the number of samples behind it.
func (p Profile) Samples() (sum int64) {
	for i := range p {
		sum += p[i].Samples
	}
	return sum
}

// Function is the time spent in one function.
type Function struct {
	Label   string
	Kind    symbolize.Kind
	SelfNS  int64 // in it
	TotalNS int64 // in it and in what it called, once however often it is on a stack
}

// Functions lists the functions, those with the most time of their own first.
func (p Profile) Functions() []Function {
	type counted struct {
		Function
		last int // the last stack that it was counted in
	}
	found := map[*function]*counted{}
	for i := range p {
		for j, frame := range p[i].Frames {
			f := found[frame.function]
			if f == nil {
				f = &counted{Function: Function{Label: frame.function.label, Kind: frame.function.kind}, last: -1}
				found[frame.function] = f
			}
			if j == 0 {
				f.SelfNS += p[i].WeightNS
			}
			if f.last != i {
				f.TotalNS += p[i].WeightNS
				f.last = i
			}
		}
	}
	functions := make([]Function, 0, len(found))
	for _, f := range found {
		functions = append(functions, f.Function)
	}
	slices.SortFunc(functions, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.SelfNS, a.SelfNS), cmp.Compare(b.TotalNS, a.TotalNS),
			cmp.Compare(a.Label, b.Label), cmp.Compare(a.Kind, b.Kind))
	})
	return functions
}
