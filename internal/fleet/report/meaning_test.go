package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// mixed is a store with workers of one job, each of a version of the analysis; those of
// version 1 say that they were preempted for half of their time, which no other does.
func mixed(t *testing.T, versions ...string) string {
	t.Helper()
	root := t.TempDir()
	s, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	for i, version := range versions {
		rank, host := int32(i), fmt.Sprintf("host-%d", i)
		row := store.PatternRow{Session: "s", Job: "j", Host: host, PID: 100 + rank, Rank: &rank, Begin: firstBegin, End: firstBegin + 20e9,
			Observed: 20e9,
			Coverage: 0.97, Basis: "samples", AnalysisID: version}
		work, host1 := row, row
		work.Function, work.Class, work.Name, work.Beta = 1, "python", "f", 0.3
		work.BetaLo, work.BetaHi = 0.29, 0.31
		host1.Function, host1.Class, host1.Name = 2, "host", "preempted"
		if version == "1" {
			host1.Beta, host1.BetaLo, host1.BetaHi, host1.Preempted = 0.5, 0.49, 0.51, 1
		}
		content, err := store.Encode([]store.PatternRow{work, host1})
		if err != nil {
			t.Fatal(err)
		}
		key := store.Partition{Table: "pattern", Job: "j", Host: host, At: time.Unix(0, firstBegin)}.Key(content)
		if err := s.Put(t.Context(), key, content); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// A pattern means the same within one version of the analysis: workers of agents of
// several versions are not accused of what only the meaning differs by.
func TestOnlyPatternsOfOneVersionAreCompared(t *testing.T) {
	for _, c := range []struct {
		name     string
		versions []string
		ranks    []int32
		note     string
	}{
		{"all of one", []string{"2", "2", "2", "2"}, []int32{0, 1, 2, 3}, ""},
		{"most are new", []string{"2", "2", "1", "2"}, []int32{0, 1, 3}, "left out: 1 worker, of version 1, on host-2"},
		{"most are old", []string{"1", "2", "1", "1"}, []int32{0, 2, 3}, "left out: 1 worker, of version 2, on host-1"},
		{"as many of both: the later", []string{"1", "2", "2", "1"}, []int32{1, 2}, "left out: 2 workers, of version 1, on host-0, host-3"},
		{"ten is later than nine", []string{"10", "9", "10", "9"}, []int32{0, 2}, "left out: 2 workers, of version 9, on host-1, host-3"},
		{"without one", []string{"2", "", "2", "2"}, []int32{0, 2, 3}, "of version unknown, on host-1"},
	} {
		r := built(t, mixed(t, c.versions...))
		var ranks []int32
		for _, w := range r.Workers {
			ranks = append(ranks, w.Rank)
		}
		slices.Sort(ranks)
		notes := strings.Join(r.Notes, "\n")
		if !slices.Equal(ranks, c.ranks) || !strings.Contains(notes, c.note) || c.note == "" && strings.Contains(notes, "version") {
			t.Errorf("%s: ranks %v, %q", c.name, ranks, notes)
		}
		for _, f := range r.Findings {
			if f.Kind == "special" {
				t.Errorf("%s: accused for another meaning: %s", c.name, f.Sentence)
			}
		}
	}
	if notes := strings.Join(built(t, mixed(t, "3", "3", "3")).Notes, "\n"); !strings.Contains(notes, "this program knows version 2") {
		t.Errorf("a later version than is known here: %q", notes)
	}
}
