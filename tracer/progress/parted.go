package progress

// parted cuts a step that took long where something else lay in it: at the longest time
// between two calls of the optimizer, or before the next step, as far as it is longer than
// in a step like the others. What a step does in such a time otherwise is taken to come
// after what else there was. Where there is no such time, the step itself took so long.
//
// Scripts make the gradients zero behind the optimizer's step or before the forward pass,
// and evaluate, or save a checkpoint, in between.
func (s *step) parted(like step, next, usual, head, tail int64) (before, behind lap, ok bool) {
	if len(s.marks) <= 1 { // what the optimizer does is not known
		ended := s.begin + min(s.behind(like, tail), next-s.begin-head)
		return lap{*s, ended + head, s.begin, ended}, headOf(like, next, usual, head), true
	}
	last := len(s.marks) - 1
	at, longest := last, next-head-s.marks[last]
	if len(s.marks) == len(like.marks) {
		// Behind the backward pass the marks are the beginning and the end of a call each.
		for k := 2; k < last; k += 2 {
			usually := like.marks[k+1] - like.marks[k]
			if more := s.marks[k+1] - s.marks[k] - usually; more > max(longest, int64(gapSteps*float64(usual)), LeastStall) {
				at, longest = k, more
			}
		}
	}
	if longest <= 0 {
		return before, behind, false
	}
	ended := s.marks[at]
	if at == last {
		return lap{*s, ended + head, s.begin, ended}, headOf(like, next, usual, head), true
	}
	rest := like.moved(ended - like.marks[at])
	first := step{s.begin, append(s.marks[:at+1:at+1], rest.marks[at+1:]...)}
	from := ended + longest
	again := like.moved(from - like.marks[at])
	copy(again.marks[at+1:], s.marks[at+1:])
	return lap{first, rest.begin + usual, s.begin, ended}, lap{again, next, from, next}, true
}
