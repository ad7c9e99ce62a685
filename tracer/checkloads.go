package tracer

import "github.com/ebpfprof/ebpfprof/tracer/features"

// CheckLoads loads what Open would for these options, and takes it out again: the
// one test that the verifier and the memory limits cannot be argued with. Without
// the programs of calls nothing can be recorded; samples is why there would be no
// samples, without which the rest goes on.
func CheckLoads(f *features.Set, options Options) (calls, samples error) {
	k, s, samples, err := options.load(f)
	if err != nil {
		return err, nil
	}
	defer k.Close()
	if s != nil {
		s.Close()
	}
	return k.WaitLater(), samples
}
