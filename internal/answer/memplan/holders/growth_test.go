package holders

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
)

// TestASlopeOfLessThanAByteIsNoLeak: four bytes more in every tenth step are nothing that anyone looks for, in every
// step they are.
func TestASlopeOfLessThanAByteIsNoLeak(t *testing.T) {
	for every, want := range map[int64]int{10: 0, 1: 1} {
		var all []blocks.Block
		var instants []int64
		for step := range int64(40) {
			if step%every == 0 {
				all = append(all, blocks.Block{Bytes: 4, Born: step + 1, Died: blocks.Alive, BornNS: 1000 * step})
			}
			instants = append(instants, 1000*step+500)
		}
		found := (&Context{}).Growths(all, instants)
		if len(found) != want {
			t.Errorf("4 bytes every %d steps: %+v", every, found)
		}
	}
}
