package doctor

import (
	"strings"
	"testing"
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
