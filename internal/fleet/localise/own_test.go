package localise

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// loads makes the patterns of ranks that spend shares of their time in a loader, and the
// rest in an operator.
func loads(shares ...float64) (all []pattern.Pattern) {
	for rank, share := range shares {
		p := pattern.Pattern{Host: "a", PID: int32(100 + rank), Rank: int32(rank), ObservedNS: 20e9, Basis: pattern.Sampled, Resource: "cpu"}
		loader, compute := p, p
		loader.Function, loader.Class, loader.Name, loader.Wait, loader.Beta, loader.Mu = 1, pattern.Loader, "Data.__getitem__",
			"clock_nanosleep", share, 0.05
		compute.Function, compute.Class, compute.Name, compute.Beta, compute.Mu = 2, pattern.Compute, "aten::addmm", 0.9-share, 0.99
		for _, q := range []*pattern.Pattern{&loader, &compute} {
			q.BetaLo, q.BetaHi = q.Beta-.004, q.Beta+.004
		}
		all = append(all, loader, compute)
	}
	return all
}

func TestAWorkerIsComparedWithItsOwnNormalTime(t *testing.T) {
	for _, c := range []struct {
		name        string
		now, normal []float64
		workers     string // of the only finding
		says        string
	}{
		{"one worker, which nobody can tell from peers", []float64{0.4}, []float64{0.02}, "[rank 0]", "in its own normal time 2.0 %"},
		{"all of three", []float64{0.4, 0.41, 0.42}, []float64{0.02, 0.02, 0.03}, "[rank 0 rank 1 rank 2]", "3 of 3 workers"},
		{"one of three", []float64{0.02, 0.4, 0.02}, []float64{0.02, 0.02, 0.02}, "[rank 1]", "rank 1"},
		{"nothing has changed", []float64{0.4, 0.4}, []float64{0.4, 0.41}, "", ""},
		{"less than a hundredth of the time", []float64{0.019}, []float64{0.012}, "", ""},
		{"it was more before", []float64{0.02}, []float64{0.4}, "[rank 0]", "aten::addmm"},
		{"nothing is known of it", []float64{0.4, 0.4}, nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := CompareOwn(loads(c.now...), loads(c.normal...))
			if c.workers == "" {
				if len(found) != 0 {
					t.Errorf("%+v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Kind != Own {
				t.Fatalf("%d findings: %+v", len(found), found)
			}
			var names []string
			for _, w := range found[0].Workers {
				names = append(names, w.String())
			}
			if got := "[" + strings.Join(names, " ") + "]"; got != c.workers || !strings.Contains(found[0].Sentence, c.says) {
				t.Errorf("%s: %s", got, found[0].Sentence)
			}
		})
	}
}

// A device is told from itself by bounds that do not meet, where its normal time has launches:
// a recording without any does not say that the device had nothing to do.
func TestADeviceIsComparedWithItsOwnNormalTime(t *testing.T) {
	anchor := loads(0.1, 0.1)
	for i := range anchor { // a minute in which launches were not recorded
		anchor[i].Host, anchor[i].BeginNS, anchor[i].ObservedNS = "n", 100e9, 60e9
	}
	for _, c := range []struct {
		name        string
		now, normal []pattern.Pattern
		says        string
	}{
		{"twice as long", devices([2]float64{.65, .65}), devices([2]float64{.3, .3}), "the device of rank 0 needs 65 % of the time for gemm, " +
			"in its own normal time 30 % at the most: unknown: a lower clock, or more work than before; no counter of its GPU is known"},
		{"all of them", devices([2]float64{.6, .7}, [2]float64{.65, .7}), devices([2]float64{.1, .3}, [2]float64{.1, .2}),
			"the devices of 2 of 2 workers need 65 % to 70 % of the time for gemm, in their own normal time 20 % at the most: "},
		{"and minutes without launches", append(devices([2]float64{.65, .65}), anchor[0]), append(devices([2]float64{.3, .3}), anchor[0]),
			"the device of rank 0 needs 65 %"},
		{"bounds that meet", devices([2]float64{.55, .9}), devices([2]float64{.1, .5}), ""},
		{"less than before", devices([2]float64{.1, .1}), devices([2]float64{.6, .6}), ""},
		{"its normal time has no launches", devices([2]float64{.65, .65}), anchor, ""},
		{"it was not there", devices([2]float64{0, 0}, [2]float64{.65, .65}), devices([2]float64{.3, .3}), ""},
	} {
		found := CompareOwn(c.now, c.normal)
		if c.says == "" {
			if len(found) != 0 {
				t.Errorf("%s: %+v", c.name, found)
			}
			continue
		}
		if len(found) != 1 || !strings.Contains(found[0].Sentence, c.says) {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}

// A process that was started again under its rank is the same worker.
func TestARestartedRankIsTheSameWorker(t *testing.T) {
	now := loads(0.4)
	for i := range now {
		now[i].PID, now[i].Host = 9000, "b"
	}
	if found := CompareOwn(now, loads(0.02)); len(found) != 1 {
		t.Errorf("%+v", found)
	}
}
