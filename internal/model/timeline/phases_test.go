package timeline

import "testing"

// TestALoaderReads: a read is a phase of its own, but where it is what a loader does.
func TestALoaderReads(t *testing.T) {
	s := phaseSweep{windows: []Stretch{{0, 100}}, took: []map[string]int64{{}}}
	s.open(0, 40, phaseOf("scope", "", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"))
	s.open(10, 30, phaseOf("io", "file", "read"))
	s.open(50, 90, phaseOf("autograd", "backward", "Engine"))
	s.open(60, 65, phaseOf("io", "file", "write"))
	s.advance(100)
	if took := s.took[0]; took[Loading] != 40 || took[IO] != 5 || took[Backward] != 35 || took[OtherPhase] != 20 {
		t.Errorf("%v", took)
	}
}
