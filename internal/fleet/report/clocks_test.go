package report

import (
	"math"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// twoNodes is a job of four ranks on two hosts, of which the clock of b is ahead; each
// rank leaves the collective at the end of a step up to 0.4 ms after the first. Without
// exits nothing says how far the clocks are apart.
func twoNodes(t *testing.T, ahead int64, exits bool) *Report {
	t.Helper()
	root := t.TempDir()
	s, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	const begin = int64(1_700_000_000e9)
	for _, host := range []string{"a", "b"} {
		b := store.Batch{Session: "s-" + host, Job: "llama", Host: host}
		for rank := range int32(4) {
			if (rank < 2) != (host == "a") {
				continue
			}
			at, own := begin, int64(40e6)
			if host == "b" {
				at += ahead
			}
			if rank == 2 {
				own = 80e6
			}
			b.Patterns = append(b.Patterns, pattern.Pattern{Host: host, PID: 100 + rank, Rank: rank, BeginNS: at, EndNS: at + 20e9, ObservedNS: 20e9,
				Basis: pattern.Sampled, Resource: "cpu", Function: 1, Class: pattern.Compute, Name: "aten::addmm", Beta: 0.5, BetaLo: 0.49,
				BetaHi: 0.51})
			for n := range int64(40) {
				step := pattern.Step{PID: 100 + rank, Rank: rank, Number: n, BeginNS: at + n*100e6, PeriodNS: 100e6, WaitNS: 100e6 - own}
				if exits {
					late := (n*7 + int64(rank)*13) % 5 * 100e3
					step.Exit = &pattern.Exit{Communicator: 77, Number: 500 + n, NS: step.BeginNS + 99e6 + late}
				}
				b.Steps = append(b.Steps, step)
			}
		}
		if _, err := store.Send(t.Context(), s, b); err != nil {
			t.Fatal(err)
		}
	}
	r := built(t, root)
	return r
}

// Clocks that are seconds apart are found by the exits of collectives, and steps paired by
// them: what a slow worker costs is the same as with one clock.
func TestClocksAreComparedByTheExitsOfCollectives(t *testing.T) {
	for _, ahead := range []int64{0, 3_200e6, -12_345e6} {
		r := twoNodes(t, ahead, true)
		if len(r.Clocks) != 1 {
			t.Fatalf("%d clocks, %q", len(r.Clocks), r.Notes)
		}
		c := r.Clocks[0]
		if c.Host != "b" || math.Abs(c.OffsetMS-float64(ahead)/1e6) > 0.4 || c.ErrorMS > 0.4 || c.ErrorMS <= 0 || c.Collectives != 40 {
			t.Errorf("%d ms ahead: %+v", ahead/1e6, c)
		}
		if r.WhatIf == nil || math.Abs(r.WhatIf.S-100.0/70) > 1e-6 {
			t.Errorf("%d ms ahead: what if: %+v, %q", ahead/1e6, r.WhatIf, r.Notes)
		}
	}
}

func TestWithoutExitsNoClockIsCompared(t *testing.T) {
	if r := twoNodes(t, 0, false); len(r.Clocks) != 0 || r.WhatIf == nil {
		t.Errorf("%+v", r.Clocks)
	}
}
