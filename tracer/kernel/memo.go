package kernel

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// verifyStacks is of how many memoised stacks one is walked to compare, if
// the options do not say.
const verifyStacks = 256

// Memo is the loader's side of the memoised stacks.
type memo struct {
	counts     *ebpf.Map
	generation *ebpf.Variable
	changes    atomic.Uint32
}

// MemoEvery is the kernel's constant for an option, a power of two.
func MemoEvery(verify int) uint32 {
	if verify <= 0 {
		verify = verifyStacks
	}
	return 1 << bits.Len32(uint32(min(verify, 1<<30)-1))
}

// adaptMemo sets how often the kernel compares; without memoisation it takes no room.
func adaptMemo(spec *ebpf.CollectionSpec, every uint32) error {
	if every == 0 {
		spec.Maps["memo_entries"].MaxEntries = 1
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	spec.Maps["memo_workspaces"].MaxEntries = uint32(cpus)
	return spec.Variables["memo_every"].Set(every)
}

func newMemo(c *ebpf.Collection) memo {
	return memo{counts: c.Maps["memo_counts"], generation: c.Variables["memo_generation"]}
}

// Forget is called after each change of what the walks in the kernel look up:
// stacks that were walked before it may be others now.
func (m *memo) Forget() {
	_ = m.generation.Set(1 + m.changes.Add(1))
}

// Totals reads the counts from the first-th on: those of calls' stacks are at 0, those of
// Python frames alone at MEMO_LINES (bpf/memo.h).
func (m *memo) Totals(first bpf.CallMemoCount) (t MemoTotals, err error) {
	for what, to := range map[bpf.CallMemoCount]*uint64{
		bpf.CallMemoCountMEMO_HIT: &t.Found, bpf.CallMemoCountMEMO_WALKED: &t.Walked, bpf.CallMemoCountMEMO_UNFIT: &t.Unfit,
		bpf.CallMemoCountMEMO_VERIFIED: &t.Verified, bpf.CallMemoCountMEMO_MISMATCHED: &t.Mismatched,
	} {
		var per []uint64
		if err := m.counts.Lookup(uint32(first+what), &per); err != nil {
			return t, fmt.Errorf("reading the counts of memoised stacks: %w", err)
		}
		for _, n := range per {
			*to += n
		}
	}
	return t, nil
}

// MemoTotals counts the stacks of calls that the kernel had memoised instead of
// walking them (bpf/memo.h). Of those found, some were walked as well, to compare.
type MemoTotals struct {
	Found      uint64
	Walked     uint64 // not found
	Unfit      uint64 // of those walked: they cannot be memoised
	Verified   uint64 // of those found: walked to compare
	Mismatched uint64 // of those verified: another stack
}

// Add adds another recording's.
func (m *MemoTotals) Add(more *MemoTotals) {
	m.Found += more.Found
	m.Walked += more.Walked
	m.Unfit += more.Unfit
	m.Verified += more.Verified
	m.Mismatched += more.Mismatched
}

// MismatchRate is the share of the verified ones that were another stack, 0
// where none was verified.
func (m *MemoTotals) MismatchRate() float64 {
	return float64(m.Mismatched) / float64(max(1, m.Verified))
}
