package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// result is one piece of work, as told and as recorded.
type result struct {
	Name     string            `json:"name"`
	Skipped  string            `json:"skipped,omitempty"` // why it did not run
	Failed   string            `json:"failed,omitempty"`
	Agrees   bool              `json:"agrees"`
	Differs  []string          `json:"differs,omitempty"` // in a sentence each
	Versions map[string]string `json:"versions,omitempty"`
	// Told is the work's own word, or torch.profiler's; Recorded is ebpfprof's.
	Told     *told `json:"told,omitempty"`
	Recorded *seen `json:"recorded,omitempty"`
	// NamesAgree is of how many launches the name is the same, too.
	NamesAgree int64 `json:"names_agree"`
	Launches   int64 `json:"launches"`
	// OverheadPercent is what tracing every call costs the job; nil where it was not measured.
	OverheadPercent *float64 `json:"overhead_percent,omitempty"`
}

// compare fills in whether the two agree: every count one for one, the names of
// kernels as far as both sides have them.
func (r *result) compare() {
	t, s := r.Told, r.Recorded
	r.Versions = t.Versions
	differs := func(what string, got, want int64) {
		if got != want {
			r.Differs = append(r.Differs, fmt.Sprintf("%s: recorded %d, told %d", what, got, want))
		}
	}
	r.Launches = sum(t.Launches)
	differs("launches", sum(s.Launches), r.Launches)
	differs("graph launches", s.GraphLaunches, t.GraphLaunches)
	for _, name := range slices.Sorted(maps.Keys(t.Collectives)) {
		differs(name, s.Collectives[name], t.Collectives[name])
	}
	for name, n := range t.Launches {
		r.NamesAgree += min(n, s.Launches[name])
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Lost)) {
		differs("lost, "+reason, s.Lost[reason], 0)
	}
	if r.Launches+t.GraphLaunches+sum(t.Collectives) == 0 {
		r.Differs = append(r.Differs, "the work launched nothing")
	}
	r.Agrees = len(r.Differs) == 0
}

func sum(counts map[string]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// line is the result for a person.
func (r *result) line() string {
	switch {
	case r.Skipped != "":
		return fmt.Sprintf("%-14s skipped: %s", r.Name, r.Skipped)
	case r.Failed != "":
		return fmt.Sprintf("%-14s failed: %s", r.Name, r.Failed)
	case !r.Agrees:
		return fmt.Sprintf("%-14s does not agree: %s", r.Name, r.Differs)
	}
	line := fmt.Sprintf("%-14s agrees: %d launches, %d of them by name, %d graph launches, %d collectives",
		r.Name, r.Launches, r.NamesAgree, r.Told.GraphLaunches, sum(r.Told.Collectives))
	if r.OverheadPercent != nil {
		line += fmt.Sprintf("; tracing costs %.1f %%", *r.OverheadPercent)
	}
	return line
}

// median of some numbers, not none.
func median[T cmp.Ordered](of []T) T {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
