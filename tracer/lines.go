package tracer

import (
	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/event"
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

// unresolvedLine is the source of a row's line for as long as its PythonStackID is the
// kernel's name of a stack, with enum line_source in its lowest bits.
const unresolvedLine event.LineSource = 1 << 7

// lineSourceBits are those of such a name (LINE_SOURCE, bpf/line.h).
const lineSourceBits = 3

// LineTotals counts rows by whose line they have; those without one are at 0.
type LineTotals struct {
	BySource   [int(bpf.CallLineSourceLINE_SOURCES)]uint64
	Unresolved uint64            // the frames of their line were lost on the way
	Memo       kernel.MemoTotals // of the lines that were taken
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

// resolveLines gives the rows of the batch the ids of the stacks behind them. The ring
// of samples has been read: what is not there now was lost.
func (d *decoder) resolveLines() {
	var last, id int64
	resolve := func(line *int64, source *event.LineSource) {
		if *source != unresolvedLine {
			return
		}
		raw := *line
		if raw&^lineSourceBits != last&^lineSourceBits {
			id = d.stacks.PythonOf(uint64(raw &^ lineSourceBits))
		}
		last = raw
		switch {
		case id != 0:
			*source = event.LineSource(raw & lineSourceBits)
		default:
			*source = event.LineAbsent
			if name := uint64(raw &^ lineSourceBits); name != 0 && !d.stacks.Knows(name) {
				d.totals.Lines.Unresolved++
			}
		}
		*line = id
		d.totals.Lines.BySource[*source]++
	}
	for i := range d.spans {
		resolve(&d.spans[i].PythonStackID, &d.spans[i].PythonStackSource)
	}
	for i := range d.memory {
		resolve(&d.memory[i].PythonStackID, &d.memory[i].PythonStackSource)
	}
}

// writeUnresolvedLines says how many rows have no line because its frames were lost.
func (s *Session) writeUnresolvedLines(now int64) error {
	n := s.decoder.totals.Lines.Unresolved
	if n == 0 {
		return nil
	}
	return s.sink.Warning(Warning{
		TSNS: now, Kind: "incomplete", Source: "line_unresolved", Count: int64(n),
		Detail: "spans and allocations without a Python stack: its frames had not come, or were lost",
	})
}
