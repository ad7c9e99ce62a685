package kernel

import (
	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// maxLimits is for how many limits there is room.
const maxLimits = 16

// limitUse is where others read how much of the limits is used; nil where the kernel
// refused it.
type limitUse struct{ *ebpf.Map }

// newLimitUse makes it. A recording goes on without one, and without a warning.
func newLimitUse() limitUse {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: bpf.LimitUseMap, Type: ebpf.Array, KeySize: 4, ValueSize: 32, MaxEntries: maxLimits})
	if err != nil {
		return limitUse{}
	}
	return limitUse{m}
}

// Tell has a recording's use of its limits read by others.
func (l limitUse) Tell(uses []bpf.LimitUse) error {
	if l.Map == nil {
		return nil
	}
	for i := range uses {
		if err := l.Put(uint32(i), &uses[i]); err != nil {
			return err
		}
	}
	return nil
}

func (l limitUse) close() {
	if l.Map != nil {
		l.Map.Close()
	}
}
