package diff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/holders"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// Memory is how the bytes of two recordings differ.
type Memory struct {
	Rows []MemoryRow `json:"rows"`
	// Untold says why there are no rows, or what they are worth; "" if there is nothing
	// to say.
	Untold string `json:"untold"`
}

// MemoryRow is one holder of bytes, or the peak of all.
type MemoryRow struct {
	Kind        string   `json:"kind"` // peak, phase, module, line or operator: what holds the peak
	Key         string   `json:"key"`
	Before      float64  `json:"before_bytes"`
	After       float64  `json:"after_bytes"`
	Percent     *float64 `json:"change_percent"` // nil where it was not there before
	Significant bool     `json:"significant"`
}

// significantBytes is the share of the peak that a row has to move by to count. Where
// requests recur from step to step they do so to the byte.
const significantBytes = 0.01

// held are the bytes of a recording by what holds them at the peak, and the peaks.
type held struct {
	bytes  map[Key]float64
	sliced bool // only parts of the run were seen
	none   bool
}

func (s *Side) memory(ctx context.Context, db *dataset.DB) error {
	s.held = held{bytes: map[Key]float64{}}
	m, err := analysis.Of(ctx, db, func(blocks.Arena) bool { return true })
	if errors.Is(err, source.ErrNoEvents) || errors.Is(err, analysis.ErrNoSuchArena) {
		s.held.none = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("comparing memory: %w", err)
	}
	s.held.none = len(m.Arenas) == 0 // memory ran out, and that is all that was seen
	for _, a := range m.Arenas {
		s.held.sliced = s.held.sliced || a.SlicedEvents > 0
		where := a.Space
		if a.Device != nil && a.Space != "host" {
			where = fmt.Sprintf("%s %d", a.Space, *a.Device)
		}
		s.held.bytes[Key{"peak", where}] += float64(a.PeakBytes)
		for kind, shares := range map[string][]holders.Share{"line": a.Holders.ByLine, "module": a.Holders.ByModule,
			"operator": a.Holders.ByOperator, "phase": a.Holders.ByPhase} {
			for _, share := range shares {
				if share.Key != "" {
					s.held.bytes[Key{kind, share.Key}] += float64(share.Bytes)
				}
			}
		}
	}
	return nil
}

// join is the mean of several recordings.
func (h held) join(other held, n int) held {
	for k, v := range other.bytes {
		h.bytes[k] += v / float64(n)
	}
	h.sliced, h.none = h.sliced || other.sliced, h.none || other.none
	return h
}

func compareMemory(before, after *Side) Memory {
	m := Memory{Rows: []MemoryRow{}}
	a, b := before.held, after.held
	switch {
	case a.none && b.none:
		m.Untold = "neither recording has allocator events"
	case a.none || b.none:
		m.Untold = "only one of the recordings has allocator events"
	case a.sliced || b.sliced:
		m.Untold = "only slices of a run were recorded: peaks are of what was seen; record with --budget off"
	}
	if a.none || b.none {
		return m
	}
	keys, peak := map[Key]bool{}, 1.0
	for _, h := range []held{a, b} {
		for k, v := range h.bytes {
			if keys[k] = true; k.Kind == "peak" {
				peak = max(peak, v)
			}
		}
	}
	for k := range keys {
		r := MemoryRow{Kind: k.Kind, Key: k.Name, Before: a.bytes[k], After: b.bytes[k]}
		if r.Before > 0 {
			p := 100 * (r.After - r.Before) / r.Before
			r.Percent = &p
		}
		r.Significant = math.Abs(r.After-r.Before) > significantBytes*peak && !a.sliced && !b.sliced
		m.Rows = append(m.Rows, r)
	}
	slices.SortFunc(m.Rows, func(x, y MemoryRow) int {
		if (x.Kind == "peak") != (y.Kind == "peak") {
			return map[bool]int{true: -1, false: 1}[x.Kind == "peak"]
		}
		return cmp.Or(cmp.Compare(math.Abs(y.After-y.Before), math.Abs(x.After-x.Before)), strings.Compare(x.Kind, y.Kind), strings.Compare(x.Key,
			y.Key))
	})
	return m
}

// write prints the peaks, and what moved most of what holds them.
func (m Memory) write(out io.Writer, top int) {
	if len(m.Rows) == 0 {
		return
	}
	fmt.Fprintf(out, "\n    %10s %10s %9s  %-9s who holds the peak of memory\n", "before", "after", "change", "kind")
	for n, r := range m.Rows {
		if n == top || r.Kind != "peak" && r.Before == r.After {
			break
		}
		change, mark := "new", " "
		if r.Percent != nil {
			change = fmt.Sprintf("%+.1f %%", *r.Percent)
		}
		if r.Significant {
			mark = "*"
		}
		fmt.Fprintf(out, "  %s %10s %10s %9s  %-9s %s\n", mark, amount.Bytes(int64(r.Before)), amount.Bytes(int64(r.After)), change, r.Kind,
			cut(printable.Text(r.Key), 90))
	}
	fmt.Fprintf(out, "\n  * more than a percent of the peak\n")
	if m.Untold != "" {
		fmt.Fprintf(out, "  %s\n", m.Untold)
	}
}
