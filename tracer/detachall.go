package tracer

import (
	"time"
)

// detachPace is how often Options.Detaching is called.
const detachPace = 200 * time.Millisecond

// sayLeft does something that takes links out, and says meanwhile how many are left.
func (s *Session) sayLeft(do func()) {
	if s.options.Detaching == nil {
		do()
		return
	}
	out := make(chan struct{})
	go func() {
		do()
		close(out)
	}()
	pace := time.NewTicker(detachPace)
	defer pace.Stop()
	for {
		select {
		case <-out:
			return
		case <-pace.C:
			s.options.Detaching(s.kernel.LinksLeft())
		}
	}
}

// detachAll takes everything out of the job.
func (s *Session) detachAll() {
	s.job.Unhook()
	s.sayLeft(s.probes.Detach)
}
