package sampler

import (
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testkernel"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

func testSampler(t *testing.T) (*kernel.Programs, *Sampler) {
	t.Helper()
	testkernel.Need(t)
	k, err := kernel.Load(kernel.Sizes{Ring: 1 << 20}, features.Probe())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	options := Options{Frequency: 99, OffCPU: time.Millisecond, IO: true}
	spec, err := Spec(k, options)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSampler(spec, k.Replacements(spec), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return k, s
}

// What samples cache of walks ends with the generation that the loader raises:
// the sampler must see that very number.
func TestSamplesForgetWithTheCalls(t *testing.T) {
	k, s := testSampler(t)
	generation := func() (n uint32) {
		if err := s.collection.Variables["memo_generation"].Get(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := generation()
	k.Memo.Forget()
	if after := generation(); after == before {
		t.Errorf("the generation of the sampler stayed at %d", after)
	}
}

// A CPU without a place of its own for what its walks know would take no samples.
func TestEveryCPUHasItsOwnWalkCache(t *testing.T) {
	_, s := testSampler(t)
	const contexts = 2 // enum workspace of bpf/stacks.h
	if got, want := int(s.collection.Maps["walk_caches"].MaxEntries()), contexts*ebpf.MustPossibleCPU(); got != want {
		t.Errorf("%d places for what walks know, want %d", got, want)
	}
}

// The programs of calls are used while those of samples are loaded: the calibration does.
func TestTheProgramsOfCallsAreThereBeforeThoseOfSamples(t *testing.T) {
	testkernel.Need(t)
	for what, options := range map[string]Options{"samples": {Frequency: 99, OffCPU: time.Millisecond, IO: true},
		"reads and writes": {IO: true}} {
		called := 0
		k, s, refused, err := LoadBoth(kernel.Sizes{Ring: 1 << 20}, options, features.Probe(), func(k *kernel.Programs) {
			called++
			if _, err := kernel.MeasureReturn(k); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
		if err != nil || refused != nil {
			t.Fatal(what, err, refused)
		}
		if called != 1 {
			t.Errorf("%s: called %d times", what, called)
		}
		for _, program := range watching(options) {
			if s.collection.Programs[program] == nil {
				t.Errorf("%s: %s is not loaded", what, program)
			}
		}
		s.Close()
		k.Close()
	}
}
