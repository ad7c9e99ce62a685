package data

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/memory"
	"github.com/ebpfprof/ebpfprof/internal/exchange/export"
)

// memoryViz is written by package memory.
var memoryViz = export.Format{
	Name: "memory_viz", Kind: export.Memory, Help: "pytorch.org/memory_viz; each process's memory on each device, host memory too",
}

func exportFormats() []export.Format { return append(export.Formats(), memoryViz) }

// exportDescription lists the formats.
func exportDescription() string {
	var b strings.Builder
	b.WriteString("Writes a dataset for other tools. The formats, and what reads them:\n\n")
	var sums []string
	for _, f := range exportFormats() {
		fmt.Fprintf(&b, "   %-10s  %s\n", f.Name, f.Help)
		if f.Kind == export.Sums {
			sums = append(sums, f.Name)
		}
	}
	fmt.Fprintf(&b, `
%s add up call stacks: by default the time on the device if it was recorded, else
the time on the CPU; --group-by chooses. memory_viz with --at peak ends at the peak. An output name that ends in .gz is
compressed. One that ends in .tar has a Perfetto trace of each rank and a manifest that aligns their clocks.

   ebpfprof export DATASET --format perfetto -o job.pftrace
   ebpfprof export DATASET --format perfetto -o ranks.tar
   ebpfprof export DATASET --format speedscope --group-by operator -o job.speedscope.json
   ebpfprof export DATASET --format memory_viz --at peak -o job.pickle`, strings.Join(sums, ", "))
	return b.String()
}

// ExportCommand is `ebpfprof export`.
func ExportCommand() *urfave.Command {
	cli.CompleteValues("group-by", export.Groups)
	formats := export.Names(exportFormats())
	return &urfave.Command{
		Name:        "export",
		Usage:       "write a dataset for other tools: Perfetto, torch.profiler's readers, pprof, speedscope",
		ArgsUsage:   "DATASET",
		Description: exportDescription(),
		Flags: append([]urfave.Flag{
			&urfave.StringFlag{Name: "format", Value: formats[0], Usage: strings.Join(formats, ", ")},
			&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`; - is standard output"},
			&urfave.StringFlag{Name: "group-by", Usage: "what to add up: " + strings.Join(export.Groups(), ", ")},
			&urfave.StringFlag{Name: "max-size", Usage: "drop what exceeds `SIZE` (500MB), and report how much"},
			memory.VizAt(),
			&urfave.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only errors"},
		}, answer.PartFlags()...),
		Action: runExport,
	}
}

func runExport(c *urfave.Context) error {
	path, err := answer.Path(c)
	if err != nil {
		return err
	}
	format, err := chosenFormat(c.String("format"))
	if err != nil {
		return err
	}
	if c.String("output") == "" {
		return cli.Mistaken(errors.New("where to? -o FILE, or -o - for standard output"))
	}
	if format.Kind == export.Memory {
		if c.IsSet("rank") || c.IsSet("step") || c.IsSet("from") || c.IsSet("to") {
			return cli.Usagef("--rank, --step, --from and --to do not go with --format %s: it has all memory from the start", format.Name)
		}
		return memory.ExportViz(c, path)
	}
	if c.IsSet("at") {
		return cli.Usagef("--at needs --format %s: omit it, or choose that format", memoryViz.Name)
	}
	if by := c.String("group-by"); by != "" && !slices.Contains(export.Groups(), by) {
		return cli.Usagef("cannot group by %q: choose one of %s", by, strings.Join(export.Groups(), ", "))
	}
	archive := strings.HasSuffix(c.String("output"), ".tar")
	if archive && format.Name != export.Archived {
		return cli.Usagef("a .tar needs --format %s: it has one trace of each rank, and %s is one file", export.Archived, format.Name)
	}
	options := export.Options{GroupBy: c.String("group-by")}
	if options.MaxBytes, err = byteSize(c.String("max-size")); err != nil {
		return cli.Mistaken(err)
	}
	if c.IsSet("rank") {
		options.Rank = new(c.Int("rank"))
	}
	db, err := answer.Open(c, path)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := answer.Restrict(c, db); err != nil {
		return cli.Failed(fmt.Errorf("exporting %s: %w", path, err))
	}
	line := answer.NewProgress(c)
	options.Progress = func(part float64) { line.Say("writing: %d %%", int(100*part)) }
	var result *export.Result
	err = answer.To(c, func(w io.Writer) error {
		if archive {
			result, err = export.WriteArchive(c.Context, db, w, options)
			return err
		}
		if strings.HasSuffix(c.String("output"), ".gz") && !format.Compressed {
			z := gzip.NewWriter(w)
			result, err = export.Write(c.Context, db, z, format.Name, options)
			return errors.Join(err, z.Close())
		}
		result, err = export.Write(c.Context, db, w, format.Name, options)
		return err
	})
	line.End()
	if err != nil {
		return cli.Failed(fmt.Errorf("exporting %s: %w", path, err))
	}
	if !c.Bool("quiet") {
		if format.Kind == export.Timeline {
			fmt.Fprintf(os.Stderr, "%d slices of %d spans\n", result.Slices, result.Spans)
		}
		for _, left := range result.LeftOut {
			fmt.Fprintln(os.Stderr, left)
		}
	}
	return nil
}

func chosenFormat(name string) (export.Format, error) {
	formats := exportFormats()
	i := slices.IndexFunc(formats, func(f export.Format) bool { return f.Name == name })
	if i < 0 {
		return export.Format{}, cli.Usagef("unknown format %q: choose one of %s", name, strings.Join(export.Names(formats), ", "))
	}
	return formats[i], nil
}

// byteSize reads 500MB, 2GiB or a number of bytes; nothing is 0.
func byteSize(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	factor := 1.0
	number := strings.TrimSpace(text)
	for _, unit := range []struct {
		name  string
		bytes float64
	}{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
		{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"B", 1},
	} {
		if cut, ok := strings.CutSuffix(strings.ToUpper(number), strings.ToUpper(unit.name)); ok {
			number, factor = strings.TrimSpace(cut), unit.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n <= 0 || math.IsInf(n*factor, 0) || n*factor > 1<<60 {
		return 0, fmt.Errorf("--max-size %q: give a size such as 500MB", text)
	}
	return int64(n * factor), nil
}
