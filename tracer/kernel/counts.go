package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/ebpfprof/ebpfprof/bpf"
)

// counts are what the programs count: hits, by probe, and losses, by reason.
type counts struct{ call *ebpf.Collection }

// counts sums one probe's counters over the CPUs.
func (k *counts) Count(index uint32) (bpf.CallProbeCount, error) {
	var per []bpf.CallProbeCount
	if err := k.call.Maps["probe_counts"].Lookup(index, &per); err != nil {
		return bpf.CallProbeCount{}, err
	}
	return sumCounts(per), nil
}

// Calls is how often the entry of a probe was passed.
func (k *counts) Calls(index uint32) (uint64, bool) {
	c, err := k.Count(index)
	return c.Entries, err == nil
}

// clearCount forgets what a probe counted.
func (k *counts) clearCount(index uint32) error {
	n, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	return k.call.Maps["probe_counts"].Put(index, make([]bpf.CallProbeCount, n))
}

func sumCounts(per []bpf.CallProbeCount) (sum bpf.CallProbeCount) {
	for _, c := range per {
		sum.Entries += c.Entries
		sum.Exits += c.Exits
		sum.Lost += c.Lost
		sum.Passed += c.Passed
	}
	return sum
}

// Lost returns the counter of one reason.
func (k *counts) Lost(of Loss) (sum uint64, err error) {
	var per []uint64
	if err := k.call.Maps["losses"].Lookup(uint32(of), &per); err != nil {
		return 0, fmt.Errorf("reading the loss counters: %w", err)
	}
	for _, n := range per {
		sum += n
	}
	return sum, nil
}

// AllLost returns the counters by reason, in the order of Losses.
func (k *counts) AllLost() ([]uint64, error) {
	sums := make([]uint64, len(Losses))
	if k.lossesAtOnce(sums) {
		return sums, nil
	}
	for i, r := range Losses {
		var err error
		if sums[i], err = k.Lost(r.Loss); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// lossesAtOnce reads all counters in one system call, where the kernel can (since 5.13).
func (k *counts) lossesAtOnce(sums []uint64) bool {
	counters := k.call.Maps["losses"]
	entries, cpus := int(counters.MaxEntries()), ebpf.MustPossibleCPU()
	reasons, counts := make([]uint32, entries), make([]uint64, entries*cpus)
	n, err := counters.BatchLookup(new(ebpf.MapBatchCursor), reasons, counts, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) || n != entries { // that error says that these are all
		return false
	}
	byReason := make([]uint64, entries)
	for i, reason := range reasons {
		for _, count := range counts[i*cpus : (i+1)*cpus] {
			byReason[reason] += count
		}
	}
	for i, r := range Losses {
		sums[i] = byReason[r.Loss]
	}
	return true
}
