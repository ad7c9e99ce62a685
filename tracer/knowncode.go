package tracer

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/tracer/python"
)

// pythonCount is one of the counters of enum python_outcome, all CPUs together.
func pythonCount(counts *ebpf.Map, what python.Outcome) (sum uint64, err error) {
	var per []uint64
	if err := counts.Lookup(uint32(what), &per); err != nil {
		return 0, fmt.Errorf("reading the count %s of the Python walks: %w", what.Name(), err)
	}
	for _, n := range per {
		sum += n
	}
	return sum, nil
}

// writeKnownCode says how many code objects that samples knew from the samples before
// (bpf/python_code.h) were compared, and how many of them were others.
func (s *Session) writeKnownCode(now int64) error {
	if s.sampler == nil {
		return nil
	}
	counts := s.sampler.collection.Maps["python_counts"]
	checked, err := pythonCount(counts, python.CodeChecked)
	if err != nil {
		return err
	}
	differed, err := pythonCount(counts, python.CodeDiffered)
	if err != nil || checked == 0 {
		return err
	}
	return s.sink.Warning(Warning{
		TSNS: now, Kind: "memoised", Source: "python_code", Count: int64(checked),
		Detail: fmt.Sprintf("code objects of Python frames that were known from the samples before, one in eight, were read again; %d of them were other code objects (%.3g %%): samples that met these before may name the one before",
			differed, 100*float64(differed)/float64(checked)),
	})
}
