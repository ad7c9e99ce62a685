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
	waits              []waiting
	begun              bool
}

// waiting is how long a function waited in a system call; most wait in one or two.
type waiting struct {
	name string
	time float64
}

func (s *sum) add(p *pattern.Pattern) {
	observed := float64(p.ObservedNS)
	time := p.Beta * observed
	if !s.begun {
		s.begun, s.first = true, *p
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
	if p.Wait == "" {
		return
	}
	for i := range s.waits {
		if s.waits[i].name == p.Wait {
			s.waits[i].time += time
			return
		}
	}
	s.waits = append(s.waits, waiting{p.Wait, time})
}

// mean is what it was of the time that the worker was observed. It is the sum's own.
func (s *sum) mean(observed float64) *pattern.Pattern {
	p := &s.first
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
	var most waiting
	for _, w := range s.waits {
		if most.name == "" || w.time > most.time || w.time == most.time && w.name < most.name {
			most = w
		}
	}
	p.Wait = most.name
	return p
}
