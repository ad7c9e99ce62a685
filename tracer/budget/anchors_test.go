package budget

import (
	"slices"
	"testing"
	"time"
)

func TestTheMostExpensiveAnchorGroupsAreDemotedUntilTheRestFits(t *testing.T) {
	for _, test := range []struct {
		name   string
		shares map[string]float64
		want   []string
	}{
		{"within half the budget", map[string]float64{"scope": 0.003, "backward": 0.002}, nil},
		{"one is enough", map[string]float64{"scope": 0.05, "backward": 0.002}, []string{"scope"}},
		{"the most expensive first", map[string]float64{"scope": 0.02, "backward": 0.006, "collective": 0.03}, []string{"collective", "scope", "backward"}},
		{"the cheapest stays where it fits by itself", map[string]float64{"scope": 0.02, "backward": 0.004, "collective": 0.03, "launch": 0}, []string{"collective", "scope"}},
		{"equal ones by name", map[string]float64{"b": 0.02, "a": 0.02, "c": 0}, []string{"a", "b"}},
		{"nothing seen", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := overBudget(test.shares, 0.01); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestRareHitsArePricedCold(t *testing.T) {
	seen := map[uint32]Hits{0: {Traps: 1000}}
	if cold := pace(seen, time.Second); cold != 1 {
		t.Errorf("a hit a millisecond: pace %v, want 1", cold)
	}
	if cold := pace(seen, time.Millisecond); cold != 0 {
		t.Errorf("a hit a microsecond: pace %v, want 0", cold)
	}
}
