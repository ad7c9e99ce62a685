package tracer

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// writeIncomplete says how many samples and spans have a stack that does not
// reach down to its thread's start, and why.
func (s *Session) writeIncomplete(now int64) error {
	totals := &s.decoder.Rows.Sums.Totals.Stacks
	for status, n := range totals.Incomplete {
		err := s.sink.Warning(Warning{TSNS: now, Kind: "incomplete", Source: status, Count: int64(n), Detail: stacks.StatusDetail(status)})
		if err != nil {
			return err
		}
	}
	if s.walks != nil {
		for reason, n := range s.walks.Unresolved() {
			err := s.sink.Warning(Warning{TSNS: now, Kind: "incomplete", Source: reason, Count: int64(n), Detail: "Python frames without a name"})
			if err != nil {
				return err
			}
		}
	}
	if totals.Refused > 0 {
		err := s.sink.Warning(Warning{
			TSNS: now, Kind: "incomplete", Source: "stack_quota", Count: int64(totals.Refused),
			Detail: fmt.Sprintf("samples and spans without a stack: the recording, their process or its user has had all of the different stacks that it may have (%d, a quarter of what was left, half of what was not others')", s.options.limit("stacks")),
		})
		if err != nil {
			return err
		}
	}
	if totals.Unresolved == 0 {
		return nil
	}
	return s.sink.Warning(Warning{
		TSNS: now, Kind: "incomplete", Source: stacks.StackUnresolved, Count: int64(totals.Unresolved),
		Detail: "samples and spans without a stack: its frames had not come, or were lost",
	})
}
