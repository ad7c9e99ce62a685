package kernel

import (
	"sync/atomic"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// switches are what the programs look at when a probe is hit.
type switches struct {
	call *ebpf.Collection
	*slicing
}

// slicing is whether the detail groups record. It may be asked from anywhere.
type slicing struct {
	on    atomic.Bool
	begun chan struct{} // has room for one
}

func newSlicing() *slicing { return &slicing{begun: make(chan struct{}, 1)} }

// DetailOn reports whether they do.
func (s *slicing) DetailOn() bool { return s.on.Load() }

func (s *slicing) set(on bool) {
	s.on.Store(on)
	if on {
		select {
		case s.begun <- struct{}{}:
		default:
		}
	}
}

func (k *switches) SetSpec(index uint32, spec *bpf.CallProbeSpec) error {
	return k.call.Maps["probe_specs"].Put(index, spec)
}

// SetEpoch is called when probes are taken out: what is open has no visible end.
func (k *switches) SetEpoch(epoch uint32) error {
	return k.call.Variables["epoch"].Set(epoch)
}

// SetAnchorEpoch begins an epoch before which the end of nothing was seen, of
// what is in all the time either.
func (k *switches) SetAnchorEpoch(epoch uint32) error {
	if err := k.call.Variables["anchor_epoch"].Set(epoch); err != nil {
		return err
	}
	return k.SetEpoch(epoch)
}

// StopRecording lets nothing begin any more; what is open may still end.
func (k *switches) StopRecording() error { return k.call.Variables["recording"].Set(uint32(0)) }

// SetDetail makes the detail groups record, or pass by what they see.
func (k *switches) SetDetail(on bool) error {
	value := uint32(0)
	if on {
		value = 1
	}
	k.set(on)
	return k.call.Variables["detail_on"].Set(value)
}
