// Package text prints what the memory commands found, for people.
package text

import (
	"fmt"
	"io"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/holders"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

// Memory prints who holds memory, top holders of each kind.
func Memory(w io.Writer, m *analysis.Memory, top int) {
	for _, warning := range m.Warnings {
		fmt.Fprintln(w, "warning:", warning)
	}
	printShortages(w, m)
	for n, a := range m.Arenas {
		if n > 0 || len(m.OutOfMemory) > 0 {
			fmt.Fprintln(w)
		}
		printArena(w, a, top)
	}
}

// mostShortages are printed.
const mostShortages = 5

// printShortages begins with what whoever asks about memory wants to know first.
func printShortages(w io.Writer, m *analysis.Memory) {
	for _, s := range m.OutOfMemory[:min(len(m.OutOfMemory), mostShortages)] {
		fmt.Fprintln(w, "out of memory:", s.Sentence())
		for _, detail := range s.Details() {
			fmt.Fprintln(w, "  "+detail)
		}
	}
	if more := len(m.OutOfMemory) - mostShortages; more > 0 {
		fmt.Fprintf(w, "… and before that in %d more places\n", more)
	}
	if len(m.Arenas) == 0 {
		fmt.Fprintln(w, "\nno allocation was recorded: record with --probe memory, or at level window, to see what was live and who held it")
	}
}

func printArena(w io.Writer, a *analysis.Arena, top int) {
	fmt.Fprintf(w, "%s\n", a.Name())
	fmt.Fprintf(w, "peak %s, %s after the first allocation that was seen; %s at the end\n", exactBytes(a.PeakBytes),
		amount.Seconds(a.PeakNS-a.BeginNS),
		amount.Bytes(a.EndBytes))
	if a.BeforeBytes != nil && *a.BeforeBytes > 0 {
		fmt.Fprintf(w, "beside it %s were in use before the recording, as the allocator said\n", amount.Bytes(*a.BeforeBytes))
	}
	fmt.Fprintf(w, "%s allocations, %s frees", amount.Count(uint64(a.Allocations)), amount.Count(uint64(a.Frees)))
	if a.Steps > 0 {
		fmt.Fprintf(w, "; %d steps (from %s), %.1f allocations a step", a.Steps, a.StepsFrom, a.PerStep)
	}
	if a.AllocationUS != nil {
		fmt.Fprintf(w, ", %.1f µs in them", *a.AllocationUS)
	}
	if a.FreeUS != nil {
		fmt.Fprintf(w, ", %.1f µs a step in frees", *a.FreeUS)
	}
	fmt.Fprintln(w)
	for _, problem := range arenaProblems(a) {
		fmt.Fprintln(w, "warning:", problem)
	}
	for _, t := range []struct {
		title  string
		shares []holders.Share
	}{{"by line", a.Holders.ByLine}, {"by module", a.Holders.ByModule}, {"by operator", a.Holders.ByOperator},
		{"by phase (a guess)", a.Holders.ByPhase}} {
		printShares(w, "holds the peak, "+t.title, t.shares, top)
	}
	printGrowth(w, a.Growth, top)
	printFragmentation(w, &a.Fragmentation)
}

func arenaProblems(a *analysis.Arena) (problems []string) {
	if a.SlicedEvents > 0 {
		problems = append(problems, fmt.Sprintf("%d events are of slices: record with --budget off to see whole steps", a.SlicedEvents))
	}
	if a.Reused > 0 {
		problems = append(problems, fmt.Sprintf("%d addresses were given out twice: their frees were lost", a.Reused))
	}
	if a.Unsized > 0 {
		problems = append(problems, fmt.Sprintf("%d allocations have no size", a.Unsized))
	}
	if a.FreedUnknown > 0 {
		problems = append(problems, fmt.Sprintf("%d frees are of blocks that were there before the recording", a.FreedUnknown))
	}
	if a.OutOfMemory > 0 {
		problems = append(problems, fmt.Sprintf("memory ran out %d times", a.OutOfMemory))
	}
	return problems
}

func printShares(w io.Writer, title string, shares []holders.Share, top int) {
	fmt.Fprintln(w)
	t := terminal.PlainTable("bytes", "share", "blocks", title)
	terminal.RightAlign(t, 1, 3)
	for _, s := range shares[:min(len(shares), top)] {
		t.AppendRow([]any{amount.Bytes(s.Bytes), fmt.Sprintf("%.1f %%", 100*s.Share), s.Blocks, s.Key})
	}
	terminal.Render(w, t)
	if more := len(shares) - top; more > 0 {
		fmt.Fprintf(w, "… and %d more\n", more)
	}
}

func printGrowth(w io.Writer, growth []holders.Growth, top int) {
	fmt.Fprintln(w)
	if len(growth) == 0 {
		fmt.Fprintln(w, "no line's bytes grow from step to step")
		return
	}
	t := terminal.PlainTable("", "a step", "95 %", "confidence", "line whose bytes grow")
	terminal.RightAlign(t, 2, 3)
	for _, g := range growth[:min(len(growth), top)] {
		t.AppendRow([]any{g.Kind, amount.Bytes(int64(g.BytesPerStep)),
			amount.Bytes(int64(g.BytesPerStepLo)) + " to " + amount.Bytes(int64(g.BytesPerStepHi)), g.Confidence, g.Line})
	}
	terminal.Render(w, t)
}

func printFragmentation(w io.Writer, f *analysis.Fragmentation) {
	fmt.Fprintf(w, "\nPyTorch's caching allocator would hold %s for this (simulated)", amount.Bytes(f.SimulatedReserved))
	if f.RecordedReserved != nil {
		fmt.Fprintf(w, "; the job's own said %s", amount.Bytes(*f.RecordedReserved))
	}
	fmt.Fprintf(w, "\nat the end %s of it free and able to be given back, %s free but pinned", amount.Bytes(f.Soft), amount.Bytes(f.Hard))
	if f.Pinning > 0 {
		fmt.Fprintf(w, " by %d blocks; the oldest is %.1f s old, from %s", f.Pinning, f.OldestSeconds, f.OldestLine)
	}
	fmt.Fprintln(w)
}
