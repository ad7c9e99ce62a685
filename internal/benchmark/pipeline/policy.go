package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/reference"
)

// Policy says how often the cases run.
type Policy struct {
	Warmup      int           // runs before the first, which count for nothing
	Repeat      int           // runs of each case, at least one
	Reruns      int           // how often all of them run again
	Duration    time.Duration // all of them run again until this has passed
	MaxRetries  int           // further attempts of a run that fails
	MaxFailures int           // after so many failures nothing more is started; 0 is no limit
}

// Sink takes the outcomes, one after the other.
type Sink func(*Outcome) error

// Place makes the directory for a run.
type Place func(run string) (string, error)

// ErrTooManyFailures ends a session early.
var ErrTooManyFailures = fmt.Errorf("%w: as many runs failed as --max-failures allows", ErrAborted)

// All runs the cases. One after the other: two on one machine would measure each other.
func (r *Runner) All(ctx context.Context, cases []*Case, p Policy, place Place, sink Sink) error {
	s := session{runner: r, policy: p, place: place, sink: sink}
	for _, c := range cases {
		if err := s.warmUp(ctx, c); err != nil {
			return err
		}
	}
	began := time.Now()
	for round := 0; ; round++ {
		for _, c := range cases {
			for range max(p.Repeat, 1) {
				if err := s.repeat(ctx, c); err != nil {
					return err
				}
			}
		}
		again := round < p.Reruns
		if p.Duration > 0 {
			again = time.Since(began) < p.Duration
		}
		if !again {
			return nil
		}
	}
}

type session struct {
	runner   *Runner
	policy   Policy
	place    Place
	sink     Sink
	ran      int
	failures int
	repeats  map[*Case]int
}

// runName is a run's name in its session.
func (s *session) runName() string {
	s.ran++
	return fmt.Sprintf("%04d", s.ran)
}

func (s *session) warmUp(ctx context.Context, c *Case) error {
	for i := range s.policy.Warmup {
		s.tell("%s, warm-up %d of %d", c.Name, i+1, s.policy.Warmup)
		place, err := s.place(s.runName())
		if err != nil {
			return err
		}
		if o, err := s.runner.Run(ctx, c, place, -1, 1); err != nil {
			return err
		} else if o.Result == reference.Fail && o.Stage != "performance" {
			return fmt.Errorf("the warm-up of %s failed in stage %s: %s", c.Name, o.Stage, o.Reason)
		}
	}
	return nil
}

// repeat runs a case once, and again while it fails and may be tried.
func (s *session) repeat(ctx context.Context, c *Case) error {
	if s.repeats == nil {
		s.repeats = map[*Case]int{}
	}
	repeat := s.repeats[c]
	s.repeats[c]++
	for attempt := 1; ; attempt++ {
		s.tell("%s, run %d", c.Name, repeat+1)
		place, err := s.place(s.runName())
		if err != nil {
			return err
		}
		o, err := s.runner.Run(ctx, c, place, repeat, attempt)
		if err != nil {
			return err
		}
		if err := s.sink(o); err != nil {
			return err
		}
		bad := o.Result == reference.Fail || o.Result == reference.XPass
		if bad && attempt <= s.policy.MaxRetries {
			continue
		}
		if bad {
			if s.failures++; s.policy.MaxFailures > 0 && s.failures >= s.policy.MaxFailures {
				return ErrTooManyFailures
			}
		}
		return nil
	}
}

func (s *session) tell(format string, args ...any) {
	if s.runner.Say != nil {
		s.runner.Say(format, args...)
	}
}
