package sampler

import (
	"fmt"
	"iter"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// What the job reads and writes is measured at every system call that does (bpf/io.h).

const (
	// ioPrice is what measuring one takes of the job's time, nanoseconds (docs/overhead-appendix.md).
	ioPrice = 200
	// ioPassedPrice is that of one that is only counted.
	ioPassedPrice = 60
	// ioPathPrice is that of a file whose path is sent, once for each time that it gets a
	// place.
	ioPathPrice = 3000
	// ioShare is the part of the budget that this may take: the probes have the rest.
	ioShare = 0.5
)

// setIO says in the programs whether and how reads and writes are measured.
func setIO(spec *ebpf.CollectionSpec, options Options) error {
	for name, value := range map[string]any{
		"take_io": flag(options.IO), "take_waits": flag(options.OffCPU > 0), "io_price_ns": uint64(ioPrice), "io_share": share(options.IOBudget),
		"io_passed_ns": uint64(ioPassedPrice), "io_path_ns": uint64(ioPathPrice), "take_paths": flag(options.Paths),
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	return nil
}

func flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

// share is a budget as the programs take it, in 1,024ths; 0: there is none.
func share(budget float64) uint64 {
	if budget <= 0 {
		return 0
	}
	return max(1, uint64(ioShare*budget*1024))
}

// HeldIO yields the kernel's table of the threads that read and write. The value is used
// again.
func (s *Sampler) HeldIO() iter.Seq2[uint32, *bpf.SampleIoThread] {
	return func(yield func(uint32, *bpf.SampleIoThread) bool) {
		var tid uint32
		var of bpf.SampleIoThread
		for it := s.Map("io_threads").Iterate(); it.Next(&tid, &of); {
			if !yield(tid, &of) {
				return
			}
		}
	}
}

// GiveUpIO asks for an end of the measuring of reads and writes; whoever watches the cost
// takes the programs out. It may be called from any goroutine.
func (s *Sampler) GiveUpIO() { s.giveUp.Store(true) }

// GaveUpIO reports whether that was asked for.
func (s *Sampler) GaveUpIO() bool { return s.giveUp.Load() }
