package kernel

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// young are the children that the kernel alone follows (bpf/young.h), and the sums of those
// that ended while they were that.
type young struct {
	call, life *ebpf.Collection
	shares     *shares
}

// Young is such a child.
type Young struct {
	PID int
	bpf.LifeYoung
}

// LifePrograms are the programs of processes by their names.
func (k *young) LifePrograms() map[string]*ebpf.Program { return k.life.Programs }

// LookAtOnce says whether a child is a target from its first moment, or young.
func (k *young) LookAtOnce(on bool) error {
	value := uint32(0)
	if on {
		value = 1
	}
	return k.call.Variables["look_at_once"].Set(value)
}

// Young lists those that live. Where there is none it has the kernel tell of the next.
func (k *young) Young() (list []Young, err error) {
	told := k.call.Variables["young_told"]
	// First this: one that begins after the look is reported.
	if err := told.Set(uint32(0)); err != nil {
		return nil, fmt.Errorf("waiting for young processes: %w", err)
	}
	k.each(func(pid uint32, of *bpf.LifeYoung) {
		if of.EndNs == 0 {
			of.StartTicks = localTicks(of.StartTicks)
			list = append(list, Young{int(pid), *of})
		}
	})
	if len(list) == 0 {
		return nil, nil
	}
	return list, told.Set(uint32(1))
}

func (k *young) each(visit func(pid uint32, of *bpf.LifeYoung)) {
	var pid uint32
	var of bpf.LifeYoung
	for it := k.life.Maps["young_ones"].Iterate(); it.Next(&pid, &of); {
		visit(pid, &of)
	}
}

// TakeEnded takes those out that have ended and of which the kernel has not let go yet: they
// are not in the sums.
func (k *young) TakeEnded() (list []Young) {
	k.each(func(pid uint32, of *bpf.LifeYoung) {
		if of.EndNs != 0 && k.take(pid, of) {
			list = append(list, Young{int(pid), *of})
		}
	})
	return list
}

// TookUp takes one off those, since it is a target now, or cannot be one.
func (k *young) TookUp(pid int) {
	var of bpf.LifeYoung
	if k.life.Maps["young_ones"].Lookup(uint32(pid), &of) == nil {
		k.take(uint32(pid), &of)
	}
}

func (k *young) take(pid uint32, of *bpf.LifeYoung) bool {
	if k.life.Maps["young_ones"].Delete(pid) != nil {
		return false
	}
	k.shares.change(of.User, bpf.CallShareSHARE_YOUNG, -1)
	return true
}

// ShortLives yields the sums so far. Those that forget returns true for are dropped: their
// parent has ended, and nothing is added any more.
func (k *young) ShortLives(each func(bpf.LifeShortKey, bpf.LifeShortSum) (forget bool)) {
	var key bpf.LifeShortKey
	var sum bpf.LifeShortSum
	var gone []bpf.LifeShortKey
	for it := k.life.Maps["short_lives"].Iterate(); it.Next(&key, &sum); {
		if each(key, sum) {
			gone = append(gone, key)
		}
	}
	for _, key := range gone {
		_ = k.life.Maps["short_lives"].Delete(key)
	}
}
