package localise

import (
	"math"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// sum adds up one function's windows on one worker. Shares are weighed by how long
// the worker was observed, what is of the function's own time by that time.
type sum struct {
	first              pattern.Pattern
	longestShare       float64
	time               float64 // ns of the function
	error              float64 // Σ of the squared half intervals: windows err independently
	least, most        float64 // ns, likewise, where shares are bounds
	mu, square         float64
	preempted, stopped float64
	count              int64
	durations, p99     float64
	longest            int64
	waits              map[string]float64
}

func (s *sum) add(p *pattern.Pattern) {
	observed := float64(p.ObservedNS)
	time := p.Beta * observed
	if s.waits == nil {
		s.waits = map[string]float64{}
		s.first = *p
	}
	if time > s.longestShare {
		s.longestShare, s.first.Line, s.first.File, s.first.Stack = time, p.Line, p.File, p.Stack
	}
	s.first.BeginNS, s.first.EndNS = min(s.first.BeginNS, p.BeginNS), max(s.first.EndNS, p.EndNS)
	s.time += time
	s.least, s.most = s.least+p.BetaLo*observed, s.most+p.BetaHi*observed
	half := (p.BetaHi - p.BetaLo) / 2 * observed
	s.error += half * half
	s.mu += p.Mu * time
	s.square += (p.Sigma*p.Sigma + p.Mu*p.Mu) * time
	s.preempted += p.Preempted * time
	s.stopped += p.Stopped * time
	s.count += p.Count
	s.durations += float64(p.MeanNS) * float64(p.Count)
	s.p99 = max(s.p99, float64(p.P99NS))
	s.longest = max(s.longest, p.LongestNS)
	s.waits[p.Wait] += time
}

func (s *sum) mean(observed float64) *pattern.Pattern {
	p := s.first
	p.ObservedNS = int64(observed)
	p.Beta = s.time / max(observed, 1)
	half := math.Sqrt(s.error) / max(observed, 1)
	p.BetaLo, p.BetaHi = max(0, p.Beta-half), min(1, p.Beta+half)
	if p.Basis == pattern.Device { // bounds, and no interval of samples
		p.BetaLo, p.BetaHi = s.least/max(observed, 1), min(1, s.most/max(observed, 1))
	}
	if s.time > 0 {
		p.Mu = s.mu / s.time
		p.Sigma = math.Sqrt(max(0, s.square/s.time-p.Mu*p.Mu))
		p.Preempted, p.Stopped = s.preempted/s.time, s.stopped/s.time
	}
	p.Count = s.count
	if s.count > 0 {
		p.MeanNS = int64(s.durations / float64(s.count))
	}
	p.P99NS, p.LongestNS = int64(s.p99), s.longest
	p.Wait = ""
	for name, time := range s.waits {
		if best := s.waits[p.Wait]; name != "" && (p.Wait == "" || time > best || time == best && name < p.Wait) {
			p.Wait = name
		}
	}
	return &p
}
