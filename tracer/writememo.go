package tracer

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// writeMemo says how many stacks were remembered and how often that was wrong.
func (s *Session) writeMemo(now int64) error {
	for _, of := range []struct {
		first  bpf.CallMemoCount
		totals *kernel.MemoTotals
		source string
		what   string
	}{
		{0, &s.decoder.Rows.Sums.Totals.Memo, "stack", "stacks of calls"},
		{bpf.CallMemoCountMEMO_LINES, &s.decoder.Rows.Sums.Totals.Lines.Memo, "python_stack", "Python frames behind calls"},
	} {
		t, err := s.kernel.Memo.Totals(of.first)
		if err != nil {
			return err
		}
		*of.totals = t
		if t.Found == 0 {
			continue
		}
		err = s.sink.Warning(Warning{
			TSNS: now, Kind: "memoised", Source: of.source, Count: int64(t.Found),
			Detail: fmt.Sprintf("%s that were remembered instead of walked; %d were walked to compare, and %d of them were other stacks (%.3g %%)",
				of.what, t.Verified, t.Mismatched, 100*t.MismatchRate()),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
