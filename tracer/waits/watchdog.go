package waits

import "github.com/ebpfprof/ebpfprof/tracer/event"

// What NCCL runs ends on the device. A thread of its group, the watchdog, looks whether
// it has: at copies of the works, since the job may let go of a work at once, and the
// next one then has its address.

// Copy: a work that was just queued has a copy.
func (s *State) Copy(pid int32, address uint64, c Call) {
	w := s.works[workKey{pid, c.Work}]
	if w == nil || w.finished || address == 0 {
		return
	}
	if len(s.copies) >= mostWorks {
		clear(s.copies) // whose end was never seen
	}
	s.copies[workKey{pid, address}] = w
}

// Fail takes a call by which a work failed, when that has ended.
func (s *State) Fail(span *event.Span, c Call) {
	key := workKey{span.PID, c.Work}
	w := s.copies[key]
	if w == nil {
		w = s.works[key] // by a thread that waits for it itself
	}
	if w == nil {
		return
	}
	w.failed = true
	w.describe(span)
}

// begun are the works that have begun and not ended, as far as their end would be seen:
// of NCCL where a copy has ended before. What began before the epochs is forgotten.
func begun(s *State, since Epochs) map[*work]bool {
	works := map[*work]bool{}
	for key, w := range s.works {
		switch {
		case since.passed(w):
			s.works.forget(s.of, key)
		case w.group == nil || w.group.Runtime == "nccl":
		default:
			works[w] = true
		}
	}
	for key, w := range s.copies {
		switch {
		case since.passed(w):
			delete(s.copies, key)
		case w.group != nil && s.of.process(key.pid).watched:
			works[w] = true
		}
	}
	return works
}
