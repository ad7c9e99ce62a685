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
		loader.Function, loader.Class, loader.Name, loader.Wait, loader.Beta, loader.Mu = 1, pattern.Loader, "Data.__getitem__", "clock_nanosleep", share, 0.05
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
