package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/memplan/holders"
	"github.com/ebpfprof/ebpfprof/internal/printable"
)

const memoryDescription = `Live bytes over time, their peak and who holds it: by line of your code, module, operator and phase (a guess, from who
made a block and who freed it); allocator calls a step; what a caching allocator holds beyond that, and which blocks pin
it; lines whose bytes grow from step to step. Live bytes count what was allocated while recording. Record with
--budget off: of slices only parts are seen. A memory snapshot of PyTorch (pickle or JSON) can stand for a dataset.

   ebpfprof memory DATASET
   ebpfprof memory DATASET --format html --output memory.html
   ebpfprof memory plan DATASET
   ebpfprof memory solve blocks.csv`

var memoryFormats = []string{"text", "json", "html", "svg", "png", "parquet"}

// memoryCommand is `ebpfprof memory` and what is below it.
func memoryCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "memory",
		Usage:       "say who holds memory, and plan it",
		ArgsUsage:   "DATASET | SNAPSHOT",
		Description: memoryDescription,
		Subcommands: []*urfave.Command{planCommand(), solveCommand(), memoryExportCommand()},
		Flags: []urfave.Flag{
			&urfave.IntFlag{Name: "pid", Usage: "only the process `PID`"},
			&urfave.IntFlag{Name: "top", Value: 10, Usage: "show `N` holders of each kind"},
			&urfave.StringFlag{Name: "format", Value: "text", Usage: "text, json, html, svg, png or parquet (its blocks)"},
			&urfave.StringFlag{Name: "output", Usage: "write to `FILE` instead of standard output"},
			&urfave.BoolFlag{Name: "json", Usage: "the same as --format json"},
		},
		Action: runMemory,
	}
}

func failed(err error) error { return urfave.Exit(err, cli.ExitFailed) }

func runMemory(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return usageError(err)
	case len(arguments) != 1:
		return usageError(errors.New("which dataset? ebpfprof memory DATASET"))
	case c.Int("top") <= 0:
		return usageError(fmt.Errorf("--top %d: give a positive number", c.Int("top")))
	}
	format, err := formatOf(c, memoryFormats)
	if err != nil {
		return err
	}
	m, err := analysis.Load(c.Context, arguments[0], int32(c.Int("pid")))
	if err != nil {
		return failed(fmt.Errorf("%s: %w", arguments[0], err))
	}
	defer m.Close()
	err = writeOutput(c, func(w io.Writer) error {
		switch format {
		case "json":
			return writeIndented(w, m)
		case "parquet":
			return m.WriteParquet(w)
		case "html":
			return m.WriteHTML(w)
		case "svg":
			return m.Arenas[0].Picture().WriteSVG(w)
		case "png":
			return m.Arenas[0].Picture().WritePNG(w)
		}
		return writeText(w, func(w io.Writer) { printMemory(w, m, c.Int("top")) })
	})
	if err != nil {
		return failed(err)
	}
	return nil
}

// formatOf is --format, or --json.
func formatOf(c *urfave.Context, formats []string) (string, error) {
	format := c.String("format")
	if c.Bool("json") {
		if c.IsSet("format") && format != "json" {
			return "", usageError(errors.New("one of --json and --format"))
		}
		format = "json"
	}
	if !known(formats, format) {
		return "", usageError(fmt.Errorf("unknown format %q: one of %v", format, formats))
	}
	return format, nil
}

// writeOutput writes to --output, or to standard output.
func writeOutput(c *urfave.Context, write func(io.Writer) error) (err error) {
	if !c.IsSet("output") {
		return write(c.App.Writer)
	}
	path := c.String("output")
	if path == "-" {
		return write(c.App.Writer)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	if err = errors.Join(write(file), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// writeText prints what people read, with the names of jobs in it, as no terminal
// obeys it.
func writeText(w io.Writer, print func(io.Writer)) error {
	var text strings.Builder
	print(&text)
	_, err := io.WriteString(w, printable.Lines(text.String()))
	return err
}

func writeIndented(w io.Writer, v any) error {
	encoder := json.NewEncoder(printable.JSON(w))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

func printMemory(w io.Writer, m *analysis.Memory, top int) {
	for _, warning := range m.Warnings {
		fmt.Fprintln(w, "warning:", warning)
	}
	for n, a := range m.Arenas {
		if n > 0 {
			fmt.Fprintln(w)
		}
		printArena(w, a, top)
	}
}

func printArena(w io.Writer, a *analysis.Arena, top int) {
	fmt.Fprintf(w, "%s\n", a.Name())
	fmt.Fprintf(w, "peak %s, %s after the recording began; %s at the end\n", exactBytes(a.PeakBytes), cli.Seconds(a.PeakNS-a.BeginNS),
		cli.Bytes(a.EndBytes))
	if a.BeforeBytes != nil && *a.BeforeBytes > 0 {
		fmt.Fprintf(w, "beside it %s were in use before the recording, as the allocator said\n", cli.Bytes(*a.BeforeBytes))
	}
	fmt.Fprintf(w, "%s allocations, %s frees", cli.Count(uint64(a.Allocations)), cli.Count(uint64(a.Frees)))
	if a.Steps > 0 {
		fmt.Fprintf(w, "; %d steps (from %s), %.1f allocations a step", a.Steps, a.StepsFrom, a.PerStep)
	}
	if a.AllocationUS != nil {
		fmt.Fprintf(w, ", %.1f µs in them", *a.AllocationUS)
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
	t := cli.PlainTable("bytes", "share", "blocks", title)
	cli.RightAlign(t, 1, 3)
	for _, s := range shares[:min(len(shares), top)] {
		t.AppendRow([]any{cli.Bytes(s.Bytes), fmt.Sprintf("%.1f %%", 100*s.Share), s.Blocks, s.Key})
	}
	cli.Render(w, t)
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
	t := cli.PlainTable("", "a step", "95 %", "confidence", "line whose bytes grow")
	cli.RightAlign(t, 2, 3)
	for _, g := range growth[:min(len(growth), top)] {
		t.AppendRow([]any{g.Kind, cli.Bytes(int64(g.BytesPerStep)),
			cli.Bytes(int64(g.BytesPerStepLo)) + " to " + cli.Bytes(int64(g.BytesPerStepHi)), g.Confidence, g.Line})
	}
	cli.Render(w, t)
}

func printFragmentation(w io.Writer, f *analysis.Fragmentation) {
	fmt.Fprintf(w, "\nPyTorch's caching allocator would hold %s for this (simulated)", cli.Bytes(f.SimulatedReserved))
	if f.RecordedReserved != nil {
		fmt.Fprintf(w, "; the job's own said %s", cli.Bytes(*f.RecordedReserved))
	}
	fmt.Fprintf(w, "\nat the end %s of it free and able to be given back, %s free but pinned", cli.Bytes(f.Soft), cli.Bytes(f.Hard))
	if f.Pinning > 0 {
		fmt.Fprintf(w, " by %d blocks; the oldest is %.1f s old, from %s", f.Pinning, f.OldestSeconds, f.OldestLine)
	}
	fmt.Fprintln(w)
}
