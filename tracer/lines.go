package tracer

import (
	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// The Python line behind every call: the kernel takes the Python frames of outermost
// calls alone and hands their name on to what happens in them (bpf/line.h).

// wantsLine reports whether a level asks for the Python code behind a function's
// calls: whatever becomes a row, or tells another row's.
func wantsLine(level Level, f *catalog.Function) bool {
	switch f.Action {
	case catalog.Span, catalog.Sequence:
		return level != LevelAnchor
	case catalog.Event:
		return level != LevelAnchor && f.Memory != nil
	}
	return false
}

// What taking the Python frames of an outermost call costs, nanoseconds, where they were
// remembered and where they were walked; and a call on average before much is known.
const (
	rememberedLinePrice = 800
	walkedLinePrice     = 5_000
	usualLinePrice      = 400
)

// lineCost is what the line behind a call has cost on average so far, nanoseconds: most
// calls inherit theirs.
func (s *Session) lineCost() float64 {
	if s.kernel == nil {
		return usualLinePrice
	}
	t, err := s.kernel.Memo.Totals(bpf.CallMemoCountMEMO_LINES)
	if err != nil {
		return usualLinePrice
	}
	rows := uint64(0)
	for _, n := range s.Stats().Lines.BySource {
		rows += n
	}
	return lineCostOf(&t, rows)
}

func lineCostOf(m *kernel.MemoTotals, rows uint64) float64 {
	if rows < typicalStacks {
		return usualLinePrice
	}
	return float64(m.Found*rememberedLinePrice+(m.Walked+m.Verified)*walkedLinePrice) / float64(rows)
}

// writeUnresolvedLines says how many rows have no line because its frames were lost.
func (s *Session) writeUnresolvedLines(now int64) error {
	n := s.decoder.Rows.Sums.Totals.Lines.Unresolved
	if n == 0 {
		return nil
	}
	return s.sink.Warning(Warning{
		TSNS: now, Kind: "incomplete", Source: "line_unresolved", Count: int64(n),
		Detail: "spans and allocations without a Python stack: its frames had not come, or were lost",
	})
}
