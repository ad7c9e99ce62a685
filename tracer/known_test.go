package tracer

import (
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

// What samples remember of walks ends with the generation that the loader raises:
// the sampler must see that very number.
func TestSamplesForgetWithTheCalls(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("kernel: needs root, not in -short")
	}
	features := ProbeFeatures()
	k, err := loadKernel(kernelSizes{ring: 1 << 20}, features)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	s, err := loadSampler(k, features, 99, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	generation := func() (n uint32) {
		if err := s.collection.Variables["memo_generation"].Get(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := generation()
	k.memo.forget()
	if after := generation(); after == before {
		t.Errorf("the generation of the sampler stayed at %d", after)
	}
}

// A CPU without a place of its own for what its walks know would take no samples.
func TestEveryCPUHasItsOwnKnownRules(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("kernel: needs root, not in -short")
	}
	features := ProbeFeatures()
	k, err := loadKernel(kernelSizes{ring: 1 << 20}, features)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	s, err := loadSampler(k, features, 99, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	const contexts = 2 // enum workspace of bpf/stacks.h
	if got, want := int(s.collection.Maps["known_walks"].MaxEntries()), contexts*ebpf.MustPossibleCPU(); got != want {
		t.Errorf("%d places for what walks know, want %d", got, want)
	}
}
