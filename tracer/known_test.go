package tracer

import (
	"os"
	"testing"
	"time"
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
