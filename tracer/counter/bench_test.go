package counter

import "testing"

// BenchmarkRead is what a reading of this machine costs, with one process in the
// job: the sampler's own time, sampler_cpu.
func BenchmarkRead(b *testing.B) {
	s := Open(Options{})
	defer s.Close()
	s.Follow(1)
	for b.Loop() {
		s.Read()
	}
}
