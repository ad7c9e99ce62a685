package tracer

import (
	"errors"
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/features"
)

// attachFailed notes that a file's probes could not be put in for a process, or
// with pid 0 for all that map it: a file that was changed under its path, or no
// descriptor left. Nobody else's recording ends for it, and it is not tried again.
// What is returned is what no process can help: that the tracer may not attach.
func (s *Session) attachFailed(f *tracedFile, pid int, err error) error {
	if !s.running && errors.Is(err, features.ErrNotPermitted) {
		return err
	}
	whom := fmt.Sprintf("pid %d", pid)
	if pid == 0 {
		whom = "every process that maps it"
		clear(f.mapped)
	}
	delete(f.mapped, pid)
	s.warn(Warning{
		TSNS: time.Now().UnixNano(), Kind: "attach", Source: f.plan.Path, Count: 1,
		Detail: fmt.Sprintf("its calls are not recorded in %s from here on: %s", whom, err),
	})
	return nil
}
