package rows

import (
	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// The Python line behind a row comes as the kernel's name of a stack (bpf/line.h).

// UnresolvedLine is the source of a row's line for as long as its PythonStackID is the
// kernel's name of a stack, with enum line_source in its lowest bits.
const UnresolvedLine event.LineSource = 1 << 7

// LineSourceBits are those of such a name (LINE_SOURCE, bpf/line.h).
const LineSourceBits = 3

// LineTotals counts rows by whose line they have; those without one are at 0.
type LineTotals struct {
	BySource   [int(bpf.CallLineSourceLINE_SOURCES)]uint64
	Unresolved uint64            // the frames of their line were lost on the way
	Memo       kernel.MemoTotals // of the lines that were taken
}

// resolveLines gives the rows of the batch the ids of the stacks behind them.
func (b *Batch) resolveLines() {
	var last, id int64
	resolve := func(line *int64, source *event.LineSource) {
		if *source != UnresolvedLine {
			return
		}
		raw := *line
		if raw&^LineSourceBits != last&^LineSourceBits {
			id = b.stacks.PythonOf(uint64(raw &^ LineSourceBits))
		}
		last = raw
		switch {
		case id != 0:
			*source = event.LineSource(raw & LineSourceBits)
		default:
			*source = event.LineAbsent
			if name := uint64(raw &^ LineSourceBits); name != 0 && !b.stacks.Knows(name) {
				b.totals.Lines.Unresolved++
			}
		}
		*line = id
		b.totals.Lines.BySource[*source]++
	}
	for i := range b.spans {
		resolve(&b.spans[i].PythonStackID, &b.spans[i].PythonStackSource)
	}
	for i := range b.memory {
		resolve(&b.memory[i].PythonStackID, &b.memory[i].PythonStackSource)
	}
}
