package paired

import "time"

// Stretch is a long time of a job and its twin, in windows one after the other.
type Stretch struct{ windows []window }

// Stretch lets the job run for so long, in windows, and calls look after each.
func (j *Job) Stretch(length, each time.Duration, look func() error) (s Stretch, err error) {
	for range max(2, int(length/each)) {
		var w window
		if err := w.open(j, each); err != nil {
			return s, err
		}
		s.windows = append(s.windows, w)
		if err := look(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Ratios are, of each window, how many of the twin's steps one of the job's took, without
// what each waited for the core.
func (a Against) Ratios(s Stretch) (ratios []float64) {
	for _, w := range s.windows {
		ratios = append(ratios, a.mean(w))
	}
	return ratios
}

// Both are, of each window, how long a step of the job and one of its twin took together,
// nanoseconds, without what each waited for the core. What the kernel does for a tracer when
// it takes the job off the core is in the time of who comes next, the twin: it is in here.
func (a Against) Both(s Stretch) (together []float64) {
	for _, w := range s.windows {
		together = append(together, a.Own.net(w, w.waited[0])+a.twin.net(w, w.waited[1]))
	}
	return together
}

// TwinEnds are when the twin's steps ended in a stretch, in nanoseconds.
func (a Against) TwinEnds(s Stretch) (ends []int64) {
	for _, step := range a.twin.In(s.windows[0].from, s.windows[len(s.windows)-1].to) {
		ends = append(ends, step.End())
	}
	return ends
}
