package hang

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
)

func at(pid, rank, number int64, call string) known {
	return known{group: 9, name: "default_pg", pid: pid, rank: rank, ranks: 3, number: sql.NullInt64{Int64: number, Valid: number >= 0}, call: call}
}

func TestWhoHasNotComeIsMissing(t *testing.T) {
	const reduce, cast = "gloo::allreduce", "gloo::broadcast"
	gone := at(12, 2, 7, reduce)
	gone.ended = true
	for _, c := range []struct {
		name    string
		ranks   []known
		open    map[int64]int64 // by pid
		waiting string
		missing string
		says    string
	}{
		{"one is behind", []known{at(10, 0, 7, reduce), at(11, 1, 6, cast), at(12, 2, 7, reduce)}, map[int64]int64{10: 7, 12: 7}, "0 2", "1", "rank 1 has not come"},
		{"one is in no recording", []known{at(10, 0, 7, reduce), at(12, 2, 7, reduce)}, map[int64]int64{10: 7, 12: 7}, "0 2", "1", "rank 1 has not come"},
		{"one has died", []known{at(10, 0, 7, reduce), at(11, 1, 7, reduce), gone}, map[int64]int64{10: 7, 11: 7}, "0 1", "2", "rank 2 has not come"},
		{"one has asked for nothing yet", []known{at(10, 0, 0, reduce), at(11, 1, -1, ""), at(12, 2, 0, reduce)}, map[int64]int64{10: 0, 12: 0}, "0 2", "1", "rank 1"},
		{"two are behind", []known{at(10, 0, 7, reduce), at(11, 1, 6, cast), at(12, 2, 5, reduce)}, map[int64]int64{10: 7}, "0", "1 2", "2 ranks have not come"},
		{"asynchronous works: the first open one counts", []known{at(10, 0, 9, reduce), at(11, 1, 6, cast), at(12, 2, 8, reduce)}, map[int64]int64{10: 7, 12: 7}, "0 2", "1", "collective 7"},
		{"all are there", []known{at(10, 0, 7, reduce), at(11, 1, 7, reduce), at(12, 2, 7, reduce)}, map[int64]int64{10: 7, 11: 7, 12: 7}, "0 1 2", "", "every rank has come"},
		{"they do not agree", []known{at(10, 0, 7, reduce), at(11, 1, 7, cast), at(12, 2, 7, reduce)}, map[int64]int64{10: 7, 11: 7, 12: 7}, "0 1 2", "", "different collectives"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, ok := judge(c.ranks, func(k *known) (open, bool) {
				n, ok := c.open[k.pid]
				return open{number: n, seconds: 2, name: callOf(c.ranks, k.pid)}, ok
			})
			if !ok {
				t.Fatal("no rank waits")
			}
			if got := ranksOf(g.Waiting); got != c.waiting {
				t.Errorf("waiting %s, want %s", got, c.waiting)
			}
			if got := ranksOf(g.Missing); got != c.missing {
				t.Errorf("missing %s, want %s", got, c.missing)
			}
			var text strings.Builder
			if err := (&Report{Groups: []Group{*g}}).WriteText(&text); err != nil || !strings.Contains(text.String(), c.says) {
				t.Errorf("%v: %s\nwant %q", err, text.String(), c.says)
			}
		})
	}
	if _, ok := judge([]known{at(10, 0, 7, reduce)}, func(*known) (open, bool) { return open{}, false }); ok {
		t.Error("one waits where nothing is open")
	}
}

func callOf(ranks []known, pid int64) string {
	for _, k := range ranks {
		if k.pid == pid {
			return k.call
		}
	}
	return ""
}

func ranksOf(ranks []Rank) string {
	var all []string
	for _, r := range ranks {
		all = append(all, fmt.Sprint(r.Rank))
	}
	return strings.Join(all, " ")
}
