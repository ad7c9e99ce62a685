package profile

import (
	"cmp"
	"slices"
)

// Entry is a stack with its frames, as JSON.
type Entry struct {
	Group    string       `json:"group,omitempty"`
	WeightNS int64        `json:"weight_ns"`
	Samples  int64        `json:"samples"`
	Cut      string       `json:"cut,omitempty"` // why it does not reach its thread's start
	Frames   []FrameEntry `json:"frames"`
}

// FrameEntry is a frame as JSON; what is not known is null.
type FrameEntry struct {
	Kind     string  `json:"kind"`
	Function *string `json:"function"`
	File     *string `json:"file"`
	Line     *int32  `json:"line"`
	Module   *string `json:"module"`
	BuildID  *string `json:"build_id"`
	Offset   *int64  `json:"offset"`
}

// Entries are the count stacks with the most time.
func (p Profile) Entries(count int) []Entry {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[b].WeightNS, p[a].WeightNS) })
	entries := []Entry{}
	for _, i := range order[:min(count, len(order))] {
		s := &p[i]
		e := Entry{Group: s.Group, WeightNS: s.WeightNS, Samples: s.Samples, Cut: s.Cut, Frames: []FrameEntry{}}
		for _, f := range s.Frames {
			e.Frames = append(e.Frames, FrameEntry{
				Kind: string(f.Kind), Function: unless(f.Function, ""), File: unless(f.File, ""), Line: unless(f.Line, 0),
				Module: unless(f.Module, ""), BuildID: unless(f.BuildID, ""), Offset: unless(f.Offset, -1),
			})
		}
		entries = append(entries, e)
	}
	return entries
}

// unless is nil for the value that stands for "not known".
func unless[T comparable](value, absent T) *T {
	if value == absent {
		return nil
	}
	return &value
}
