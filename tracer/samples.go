package tracer

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/python"
	"github.com/ebpfprof/ebpfprof/tracer/sampler"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// takesStacks reports whether anything is to have a call stack: samples, or at
// LevelDeep, every operator, whether or not there are samples too.
func (o *Options) takesStacks() bool {
	return o.Frequency > 0 || o.OffCPU > 0 || o.Level == LevelDeep
}

// sampled is what is to be sampled.
func (o *Options) sampled() sampler.Options {
	return sampler.Options{Frequency: o.Frequency, OffCPU: o.OffCPU}
}

// load loads the programs that the options ask for; those of samples may be refused.
func (o *Options) load(can *features.Set) (k *kernel.Programs, s *sampler.Sampler, refused, err error) {
	if o.takesStacks() {
		return sampler.LoadBoth(o.kernelSizes(), o.sampled(), can)
	}
	k, err = kernel.Load(o.kernelSizes(), can)
	return k, nil, nil, err
}

// openSampler takes over what was loaded. A kernel that refuses it costs the samples,
// not the recording.
func (s *Session) openSampler(loaded *sampler.Sampler, refused error) {
	if refused != nil {
		s.noSamples(refused)
	}
	if loaded == nil {
		return
	}
	s.sampler = loaded
	s.walks = stacks.NewWalks(stacks.Tables{
		Unwind: s.kernel.Unwind, UnwindBytes: s.options.limit("unwind-mib") << 20, Runtimes: s.kernel.Map("python_runtimes"),
		Changed: s.kernel.Memo.Forget,
	}, s.decoder.Rows.Stacks, s.warn)
}

func (s *Session) startSampler() {
	if s.sampler == nil {
		return
	}
	if err := s.sampler.Start(s.options.sampled()); err != nil {
		s.noSamples(err)
	}
}

func (s *Session) noSamples(err error) {
	s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "attach", Source: "samples", Count: 1, Detail: err.Error()})
}

// writeKnownCode says how many code objects that samples knew from the samples before
// (bpf/python_code.h) were compared, and how many of them were others.
func (s *Session) writeKnownCode(now int64) error {
	if s.sampler == nil {
		return nil
	}
	checked, err := s.sampler.PythonCount(python.CodeChecked)
	if err != nil {
		return err
	}
	differed, err := s.sampler.PythonCount(python.CodeDiffered)
	if err != nil || checked == 0 {
		return err
	}
	return s.sink.Warning(Warning{
		TSNS: now, Kind: "memoised", Source: "python_code", Count: int64(checked),
		Detail: fmt.Sprintf("code objects of Python frames that were known from the samples before, one in eight, were read again; %d of them were other code objects (%.3g %%): samples that met these before may name the one before",
			differed, 100*float64(differed)/float64(checked)),
	})
}
