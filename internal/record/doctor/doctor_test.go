package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/features"
)

func TestPreemptionModelIsReadFromTheBuildAndDebugfs(t *testing.T) {
	for _, c := range []struct{ build, chosen, want string }{
		{"#1 SMP PREEMPT_DYNAMIC @0", "none voluntary (full) lazy", "PREEMPT_DYNAMIC, set to full"},
		{"#1 SMP PREEMPT_DYNAMIC Debian 6.1", "", "PREEMPT_DYNAMIC; which"},
		{"#1 SMP PREEMPT_RT Debian", "", "PREEMPT_RT"},
		{"#1 SMP PREEMPT Tue", "", "PREEMPT"},
		{"#1 SMP Tue", "", "voluntary or none"},
	} {
		if got := preemption(c.build, c.chosen); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q, %q: %q", c.build, c.chosen, got)
		}
	}
}

func TestLockdownModes(t *testing.T) {
	for modes, want := range map[string]string{
		"": stateOK, "[none] integrity confidentiality": stateOK, "none [integrity] confidentiality": stateOK,
		"none integrity [confidentiality]": stateDegraded,
	} {
		if got := lockdownCheck(modes); got.State != want {
			t.Errorf("%q: %+v", modes, got)
		}
	}
}

func TestAKernelWithoutUprobeMultiSaysWhatABudgetLeavesOut(t *testing.T) {
	all := features.All()
	multi := slices.IndexFunc(all, func(f features.Feature) bool { return f.Key == "uprobe_multi" })
	all[multi].Err = errors.New("not there")
	k := featureChecks(&features.Set{List: all})[multi]
	if k.State != stateDegraded || !strings.Contains(k.Why, "within a budget operators, ") || !strings.Contains(k.Why, "--budget off") {
		t.Errorf("%+v", k)
	}
}
