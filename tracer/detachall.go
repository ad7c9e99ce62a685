package tracer

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/kernel"
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
func (s *Session) detachAll() {
	for _, t := range s.processes {
		s.forgetPlugins(t)
		s.detaching.Close(t.linker)
		t.linker = nil
	}
	var tiers []map[int]*kernel.Links
	for _, f := range s.files {
		tiers = append(tiers, f.tiers()...)
	}
	s.sayLeft(func() {
		s.detaching.CloseTier(tiers...)
		s.detaching.Wait()
	})
}
