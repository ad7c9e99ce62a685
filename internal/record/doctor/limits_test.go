package doctor

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/record/mapfill"
)

func TestATableThatIsNearlyFullIsNotOK(t *testing.T) {
	for _, c := range []struct {
		used  int
		state string
	}{{0, stateOK}, {3600, stateOK}, {3700, stateDegraded}, {4096, stateDegraded}} {
		got := fillCheck(7, []mapfill.Fill{{Name: "waits", Used: 1, Most: 16384}, {Name: "scopes", Used: c.used, Most: 4096}})
		if got.State != c.state || got.Name != "recording 7" || !strings.Contains(got.Why, "of 4,096") {
			t.Errorf("%d of 4096: %+v, want %s", c.used, got, c.state)
		}
	}
}

func TestDoctorListsTheLimits(t *testing.T) {
	checks := limitChecks()
	if len(checks) == 0 || !strings.Contains(checks[0].Why, "stacks 2,097,152") {
		t.Errorf("%+v", checks)
	}
}
