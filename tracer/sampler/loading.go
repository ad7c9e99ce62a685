package sampler

import (
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// Most of the time until a job is recorded is the verifier's, which looks at one
// program on one CPU. So the programs of calls and those of samples are loaded beside
// each other; the maps that both have are made before.

// Options say what is sampled.
type Options struct {
	Frequency int           // looks at each CPU a second; 0: none
	OffCPU    time.Duration // how long a wait is at least that is recorded; 0: none is
	Stacks    bool          // calls have their stacks taken, if nothing has a sample
	IO        bool          // reads and writes are measured
	Paths     bool          // and told apart by file
	// IOBudget is the share of a thread's time that measuring its reads and writes may take;
	// 0 or less: all that it takes.
	IOBudget float64
}

// onlyIO reports whether there are no walks to load.
func (o *Options) onlyIO() bool { return o.Frequency <= 0 && o.OffCPU <= 0 && !o.Stacks }

// LoadBoth loads the programs of calls, and those of samples beside them; meanwhile is
// called once the first are there, which are a fifth of the work. Why there are no samples
// is refused: the recording does without.
func LoadBoth(sizes kernel.Sizes, options Options, can *features.Set, meanwhile func(*kernel.Programs)) (k *kernel.Programs, s *Sampler,
	refused, err error) {
	symbols := make(chan struct{})
	go func() {
		findKernelText() // for samplerSpec, which comes after all that is done until then
		close(symbols)
	}()
	defer func() { <-symbols }()
	if err := kernel.RaiseLimits(); err != nil {
		return nil, nil, nil, err
	}
	if k, err = kernel.New(sizes, can); err != nil {
		return nil, nil, nil, err
	}
	callSpec, lifeSpec, err := k.Specs()
	if err != nil {
		k.Close()
		return nil, nil, nil, err
	}
	sampleSpec, refused := Spec(k, options)
	if refused != nil {
		if err := k.LoadSpecs(callSpec, lifeSpec, nil); err != nil {
			return nil, nil, nil, err
		}
		meanwhile(k)
		return k, nil, refused, nil
	}
	common, err := k.MakeCommon(sampleSpec, callSpec, lifeSpec)
	if err != nil {
		k.Close()
		return nil, nil, nil, err
	}
	defer kernel.CloseMaps(common)
	shared := k.Among(sampleSpec, common)
	var beside sync.WaitGroup
	beside.Go(func() { s, refused = newSampler(sampleSpec, shared, options) })
	if err = k.LoadSpecs(callSpec, lifeSpec, common); err == nil {
		meanwhile(k)
	}
	beside.Wait()
	if err != nil {
		if s != nil {
			s.Close()
		}
		return nil, nil, nil, err
	}
	return k, s, refused, nil
}
