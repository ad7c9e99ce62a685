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

// On an accelerator the backward pass runs on a thread of autograd's own while the training thread waits for
// it: that time is the pass's, its gaps included, and what the training thread does meanwhile is not.
func TestABackwardPassOnAnotherThreadIsBackward(t *testing.T) {
	s := phaseSweep{windows: []Stretch{{0, 100}, {100, 200}}, took: []map[string]int64{{}, {}}}
	for _, begin := range []int64{0, 100} {
		s.open(begin, begin+20, phaseOf("op", "", "aten::linear"))
		s.elsewhere.see(7, "op", "", begin+5, begin+10) // a thread with operators of its own
		s.elsewhere.see(7, "autograd", "node", begin+21, begin+99)
		s.elsewhere.see(9, "autograd", "node", begin+30, begin+40)
		s.elsewhere.see(9, "op", "", begin+32, begin+38)
		s.elsewhere.see(9, "autograd", "node", begin+45, begin+70)
		s.open(begin+60, begin+65, phaseOf("runtime", "sync", "cudaStreamSynchronize"))
		s.open(begin+80, begin+90, phaseOf("scope", "", "Optimizer.step#SGD.step"))
	}
	s.advance(200)
	for i, took := range s.took {
		// 30 to 60 with the gap, and 65 to 70.
		if took[Backward] != 35 || took[Forward] != 20 || took[Waiting] != 5 || took[Optimizer] != 10 || took[OtherPhase] != 30 {
			t.Errorf("step %d: %v", i, took)
		}
	}
}
