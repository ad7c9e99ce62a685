package decode

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func group(pid, rank, ranks int32, name, description string) event.Communicator {
	return event.Communicator{PID: pid, Rank: &rank, Ranks: &ranks, Name: name, Description: description}
}

func TestRanksAreThoseOfTheGroupOfAll(t *testing.T) {
	size := func(n int32) *int32 { return &n }
	for name, c := range map[string]struct {
		worldSize *int32
		groups    []event.Communicator
		want      int32 // -1 is none
	}{
		"the default group":             {nil, []event.Communicator{group(7, 1, 2, "5", "tp"), group(7, 3, 8, "0", "default_pg")}, 3},
		"the group 0":                   {nil, []event.Communicator{group(7, 3, 8, "0", ""), group(7, 1, 2, "1", "")}, 3},
		"the only one":                  {nil, []event.Communicator{group(7, 1, 2, "", "")}, 1},
		"one of some ranks":             {nil, []event.Communicator{group(7, 1, 2, "5", "tp")}, -1},
		"of two, none is of all":        {nil, []event.Communicator{group(7, 1, 2, "", ""), group(7, 0, 4, "", "")}, -1},
		"the one of the job's size":     {size(4), []event.Communicator{group(7, 1, 2, "", ""), group(7, 0, 4, "", "")}, 0},
		"of another process":            {nil, []event.Communicator{group(8, 1, 2, "0", "")}, -1},
		"a rank that the group has not": {nil, []event.Communicator{group(7, 9, 2, "0", "")}, -1},
	} {
		r := newRanks()
		row := r.fill(event.Process{PID: 7, WorldSize: c.worldSize})
		if row.Rank != nil {
			t.Errorf("%s: rank %d before any group", name, *row.Rank)
		}
		news := r.learn(c.groups)
		if (len(news) == 1) != (c.want >= 0) || c.want >= 0 && *news[0].Rank != c.want {
			t.Errorf("%s: %+v, want rank %d", name, news, c.want)
		}
		if again := r.learn(c.groups); len(again) != 0 {
			t.Errorf("%s: told twice", name)
		}
		ended := int64(5)
		if row := r.fill(event.Process{PID: 7, EndedNS: &ended}); (row.Rank != nil) != (c.want >= 0) {
			t.Errorf("%s: at its end the rank is %v", name, row.Rank)
		}
	}
}

func TestARankOfTheEnvironmentStays(t *testing.T) {
	r, rank := newRanks(), int32(5)
	r.fill(event.Process{PID: 7, Rank: &rank})
	if news := r.learn([]event.Communicator{group(7, 1, 2, "0", "")}); len(news) != 0 {
		t.Errorf("%+v", news)
	}
}
