package hang

import (
	"fmt"
	"strings"
	"testing"
)

func at(pid, rank, number int64, call string) Member {
	m := Member{Group: 9, Name: "default_pg", PID: pid, Rank: rank, Ranks: 3, Collective: call}
	if number >= 0 {
		m.Number = &number
	}
	return m
}

func TestWhoHasNotComeIsMissing(t *testing.T) {
	const reduce, cast = "gloo::allreduce", "gloo::broadcast"
	gone := at(12, 2, 7, reduce)
	gone.Ended = true
	for _, c := range []struct {
		name    string
		ranks   []Member
		open    map[int64]int64 // by pid
		waiting string
		missing string
		says    string
	}{
		{"one is behind", []Member{at(10, 0, 7, reduce), at(11, 1, 6, cast), at(12, 2, 7, reduce)}, map[int64]int64{10: 7, 12: 7}, "0 2", "1",
			"rank 1 has not come"},
		{"one is in no recording", []Member{at(10, 0, 7, reduce), at(12, 2, 7, reduce)}, map[int64]int64{10: 7, 12: 7}, "0 2", "1",
			"rank 1 has not come"},
		{"one has died", []Member{at(10, 0, 7, reduce), at(11, 1, 7, reduce), gone}, map[int64]int64{10: 7, 11: 7}, "0 1", "2",
			"rank 2 has not come"},
		{"one has asked for nothing yet", []Member{at(10, 0, 0, reduce), at(11, 1, -1, ""), at(12, 2, 0, reduce)}, map[int64]int64{10: 0, 12: 0},
			"0 2", "1", "rank 1"},
		{"two are behind", []Member{at(10, 0, 7, reduce), at(11, 1, 6, cast), at(12, 2, 5, reduce)}, map[int64]int64{10: 7}, "0", "1 2",
			"2 ranks have not come"},
		{"asynchronous works: the first open one counts", []Member{at(10, 0, 9, reduce), at(11, 1, 6, cast), at(12, 2, 8, reduce)},
			map[int64]int64{10: 7, 12: 7}, "0 2", "1", "collective 7"},
		{"all are there", []Member{at(10, 0, 7, reduce), at(11, 1, 7, reduce), at(12, 2, 7, reduce)}, map[int64]int64{10: 7, 11: 7, 12: 7},
			"0 1 2", "", "every rank has come"},
		{"they do not agree", []Member{at(10, 0, 7, reduce), at(11, 1, 7, cast), at(12, 2, 7, reduce)}, map[int64]int64{10: 7, 11: 7, 12: 7},
			"0 1 2", "", "different collectives"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, ok := judge(c.ranks, func(k *Member) (Wait, bool) {
				n, ok := c.open[k.PID]
				return Wait{Number: n, Seconds: 2, Collective: callOf(c.ranks, k.PID)}, ok
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
	if _, ok := judge([]Member{at(10, 0, 7, reduce)}, func(*Member) (Wait, bool) { return Wait{}, false }); ok {
		t.Error("one waits where nothing is open")
	}
}

func callOf(ranks []Member, pid int64) string {
	for _, k := range ranks {
		if k.PID == pid {
			return k.Collective
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
