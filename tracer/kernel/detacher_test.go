package kernel

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// What the job passes most often goes first, and two sites of one probe stay in order.
func TestBusiestProbesAreTakenOutFirst(t *testing.T) {
	k := loaded(t)
	per := make([]bpf.CallProbeCount, ebpf.MustPossibleCPU())
	for spec, passed := range map[uint32]uint64{1: 5, 2: 0, 3: 900} {
		per[0] = bpf.CallProbeCount{Entries: 1, Exits: 1, Passed: passed}
		if err := k.call.Maps["probe_counts"].Put(spec, per); err != nil {
			t.Fatal(err)
		}
	}
	var entry, exit []link.Link
	for _, spec := range []uint32{2, 1, 3} {
		entry = append(entry, countedLink{spec: spec})
		exit = append(exit, countedLink{spec: spec}, countedLink{spec: spec})
	}
	busiestFirst(&k.counts, entry, exit)
	for want, links := range map[string][]link.Link{"3 1 2": entry, "3 3 1 1 2 2": exit} {
		var order []byte
		for _, l := range links {
			order = append(order, byte('0'+l.(countedLink).spec), ' ')
		}
		if got := string(slices.Delete(order, len(order)-1, len(order))); got != want {
			t.Errorf("order %s, want %s", got, want)
		}
	}
}
