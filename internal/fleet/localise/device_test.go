package localise

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// devices are workers whose device ran gemm for a share between two bounds.
func devices(bounds ...[2]float64) (all []pattern.Pattern) {
	for rank, b := range bounds {
		for window := range int64(2) {
			all = append(all, pattern.Pattern{Host: "n", PID: int32(100 + rank), Rank: int32(rank), BeginNS: window * 20e9,
				EndNS: window*20e9 + 20e9, ObservedNS: 20e9,
				Function: 9, Class: pattern.Kernel, Name: "gemm", Basis: pattern.Device, Resource: "device", Count: 100, Beta: b[0], BetaLo: b[0],
				BetaHi: b[1]})
		}
	}
	return all
}

// A worker's device is told from those of its peers where what it took at the least is more
// than what they took at the most.
func TestADeviceIsAccusedWhereItsBoundsAreBeyondThoseOfItsPeers(t *testing.T) {
	for _, c := range []struct {
		name   string
		bounds [][2]float64
		ranks  string
		says   string
	}{
		{"measured, twice as long", [][2]float64{{.3, .3}, {.3, .3}, {.65, .65}, {.31, .31}}, "2",
			"the device of rank 2 needs 65 % of the time for gemm, those of its peers 30 % at the most: unknown: slower hardware, or more work " +
				"than its peers have; no counter of its GPU is known"},
		{"bounds that are apart", [][2]float64{{.1, .3}, {0, .3}, {.55, .9}}, "2", "the device of rank 2 needs 55 % to 90 % of the time for " +
			"gemm, those of its peers 30 % at the most"},
		{"bounds that meet", [][2]float64{{.1, .5}, {0, .6}, {.55, .9}}, "", ""},
		{"hardly more", [][2]float64{{.5, .5}, {.5, .5}, {.6, .6}}, "", ""},
		{"hardly any", [][2]float64{{0, 0}, {0, 0}, {.009, .009}}, "", ""},
		{"the others do not have it", [][2]float64{{0, 0}, {0, 0}, {.2, .4}}, "2", "work that its peers do not have"},
		{"two of them", [][2]float64{{.1, .2}, {.9, 1}}, "", ""},
		{"most of them", [][2]float64{{.1, .1}, {.9, .9}, {.9, .9}, {.9, .9}}, "", ""},
	} {
		var ranks []string
		found := Compare(devices(c.bounds...))
		for _, f := range found.Findings {
			ranks = append(ranks, fmt.Sprint(f.Workers[0].Rank))
		}
		if got := strings.Join(ranks, " "); got != c.ranks {
			t.Errorf("%s: %q accused, want %q", c.name, got, c.ranks)
			continue
		}
		if c.ranks != "" && !strings.Contains(found.Findings[0].Sentence, c.says) {
			t.Errorf("%s: %s", c.name, found.Findings[0].Sentence)
		}
	}
}
