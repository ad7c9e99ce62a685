package kernel

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf"
)

// TestLossesReadAtOnceAreThoseReadOneByOne, each reason's own over all CPUs.
func TestLossesReadAtOnceAreThoseReadOneByOne(t *testing.T) {
	k := loaded(t)
	var want []uint64
	for i, r := range Losses {
		per := make([]uint64, ebpf.MustPossibleCPU())
		for cpu := range per {
			per[cpu] = uint64(1000*i + cpu)
		}
		if err := k.Map("losses").Put(uint32(r.Loss), per); err != nil {
			t.Fatal(err)
		}
		sum, err := k.Lost(r.Loss)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, sum)
	}
	got := make([]uint64, len(Losses))
	if !k.lossesAtOnce(got) {
		t.Log("this kernel has no batches of per-CPU arrays: one by one is what is used")
		return
	}
	if !slices.Equal(got, want) {
		t.Errorf("at once %v, one by one %v", got, want)
	}
}
