package tracer

import (
	"context"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/footprint"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/sampler"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// takesStacks reports whether anything is to have a call stack: samples, or at
// LevelDeep, every operator, whether or not there are samples too.
func (o *Options) takesStacks() bool {
	return o.Frequency > 0 || o.OffCPU > 0 || o.Level == LevelDeep
}

// measuresIO reports whether reads and writes are measured.
func (o *Options) measuresIO() bool { return !o.NoIO && o.Filter.IO() }

// sampled is what is to be sampled.
func (o *Options) sampled() sampler.Options {
	return sampler.Options{Frequency: o.Frequency, OffCPU: o.OffCPU, Stacks: o.takesStacks(), IO: o.measuresIO(), Paths: o.Paths,
		IOBudget: o.Budget}
}

// load loads the programs that the options ask for; those of samples may be refused.
// meanwhile is called with those of calls, while those of samples may still be under way.
func (o *Options) load(can *features.Set, meanwhile func(*kernel.Programs)) (k *kernel.Programs, s *sampler.Sampler, refused, err error) {
	if o.takesStacks() || o.measuresIO() {
		return sampler.LoadBoth(o.kernelSizes(), o.sampled(), can, meanwhile)
	}
	if k, err = kernel.Load(o.kernelSizes(), can); err == nil {
		meanwhile(k)
	}
	return k, nil, nil, err
}

// sampling is what takes stacks: of samples, and of calls.
type sampling struct {
	sampler *sampler.Sampler // nil: no samples, and no reads and writes
	walks   *stacks.Walks    // nil: nothing takes stacks
}

// newSampling takes over what was loaded. A kernel that refuses it costs the samples,
// not the recording.
func newSampling(o *Options, k *kernel.Programs, loaded *sampler.Sampler, refused error, table *stacks.Table,
	warn func(Warning)) (made sampling) {
	if refused != nil {
		noSamples(refused, warn)
	}
	if loaded == nil {
		return made
	}
	if !o.takesStacks() {
		return sampling{sampler: loaded}
	}
	return sampling{loaded, stacks.NewWalks(stacks.Tables{
		Unwind: k.Unwind, UnwindBytes: o.limit("unwind-mib") << 20, Runtimes: k.Map("python_runtimes"),
		Changed: k.Memo.Forget, Kept: footprint.New(o.limit("process-mib")<<20, process.User),
	}, table, warn)}
}

// start takes samples from now on, when the tables are there, and reports whether it does.
func (p sampling) start(ctx context.Context, o *Options, warn func(Warning)) bool {
	if p.sampler == nil {
		return false
	}
	if p.walks != nil {
		p.prepareTables(ctx, o.Preparing)
	}
	if err := p.sampler.Start(o.sampled()); err != nil {
		noSamples(err, warn)
		return false
	}
	return true
}

func noSamples(err error, warn func(Warning)) {
	warn(Warning{TSNS: time.Now().UnixNano(), Kind: "attach", Source: "samples", Count: 1, Detail: err.Error()})
}

func (p sampling) close() {
	if p.sampler != nil {
		p.sampler.Close()
	}
	if p.walks != nil {
		p.walks.Close() // it looks into the kernel's maps until then
	}
}

// preparePace is how often Options.Preparing is called.
const preparePace = 100 * time.Millisecond

// prepareTables waits for the unwind tables of the code that is known so far, as
// long as the options say.
func (p sampling) prepareTables(ctx context.Context, said func(done, of int) (goOn bool)) {
	if said == nil {
		return
	}
	ready := make(chan struct{})
	go func() {
		p.walks.Wait() // returns when the session is closed, too
		close(ready)
	}()
	pace := time.NewTicker(preparePace)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ready:
			return
		case <-pace.C:
			if !said(p.walks.Progress()) {
				return
			}
		}
	}
}

// CheckLoads loads what Open would for these options, and takes it out again: the
// one test that the verifier and the memory limits cannot be argued with. Without
// the programs of calls nothing can be recorded; samples is why there would be no
// samples, without which the rest goes on.
func CheckLoads(f *features.Set, options Options) (calls, samples error) {
	k, s, samples, err := options.load(f, func(*kernel.Programs) {})
	if err != nil {
		return err, nil
	}
	defer k.Close()
	if s != nil {
		s.Close()
	}
	return k.WaitLater(), samples
}
