package decode

import "testing"

// As linux/sched.h numbers them: a stop can be killed, and one of the kernel's own threads
// counts as no load.
func TestWhyAThreadDoesNotRun(t *testing.T) {
	for state, want := range map[uint32]string{0x1: "sleeping", 0x2: "uninterruptible", 0x102: "uninterruptible", 0x104: "stopped",
		0x8: "traced", 0x2001: "sleeping", 0x80: ""} {
		if got := threadState(state); got != want {
			t.Errorf("%#x is %q, want %q", state, got, want)
		}
	}
}
