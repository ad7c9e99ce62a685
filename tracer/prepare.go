package tracer

import "time"

// preparePace is how often Options.Preparing is called.
const preparePace = 100 * time.Millisecond

// prepareTables waits for the unwind tables of the code that is known so far, as
// long as the options say.
func (s *Session) prepareTables() {
	if s.walks == nil || s.options.Preparing == nil {
		return
	}
	ready := make(chan struct{})
	go func() {
		s.walks.Wait() // returns when the session is closed, too
		close(ready)
	}()
	pace := time.NewTicker(preparePace)
	defer pace.Stop()
	for {
		select {
		case <-ready:
			return
		case <-pace.C:
			if !s.options.Preparing(s.walks.Progress()) {
				return
			}
		}
	}
}
