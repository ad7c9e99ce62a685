package kernel

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// TestCallsOfASliceThatIsOverAreNotOpen: nobody sees them end.
func TestCallsOfASliceThatIsOverAreNotOpen(t *testing.T) {
	const detail = uint16(bpf.CallSpecFlagSPEC_DETAIL)
	for _, c := range []struct {
		name               string
		flags              uint16
		epoch, all, sliced uint32
		want               bool
	}{
		{"recorded all the time", 0, 3, 0, 9, true},
		{"of this slice", detail, 9, 5, 9, true},
		{"of a slice before", detail, 8, 5, 9, false},
		{"from before its group went into slices", 0, 4, 5, 9, false},
	} {
		if got := endSeen(c.flags, c.epoch, c.all, c.sliced); got != c.want {
			t.Errorf("a call %s: its end is seen: %v", c.name, got)
		}
	}
}
