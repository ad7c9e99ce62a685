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

const exportDescription = `perfetto is for ui.perfetto.dev, kineto for what reads traces of torch.profiler (HTA, TraceLens, traceinsight), pprof for
go tool pprof, speedscope for speedscope.app, folded for flamegraph.pl, memory_viz for PyTorch's memory viewer, otlp
(in development) for collectors of OpenTelemetry's profiles. pprof, speedscope, folded and otlp add up: time on the device where there is any, else on the CPU; --group-by chooses. With
memory_viz each process's memory on each device is a device, host memory too; --at peak ends it there.
A name that ends in .gz is compressed. A name that ends in .tar has a Perfetto trace of each rank, and a manifest that puts their clocks together.

   ebpfprof export DATASET --format perfetto -o job.pftrace
   ebpfprof export DATASET --format perfetto -o ranks.tar
   ebpfprof export DATASET --format speedscope --group-by operator -o job.speedscope.json
   ebpfprof export DATASET --format memory_viz --at peak -o job.pickle`

// ExportCommand is `ebpfprof export`.
func ExportCommand() *urfave.Command {
	cli.CompleteValues("group-by", export.Groups)
	return &urfave.Command{
		Name:        "export",
		Usage:       "write a dataset for other tools: Perfetto, torch.profiler's readers, pprof, speedscope",
		ArgsUsage:   "DATASET",
		Description: exportDescription,
		Flags: append([]urfave.Flag{
			&urfave.StringFlag{Name: "format", Value: export.Formats()[0], Usage: strings.Join(exportFormats(), ", ")},
			&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`; - is standard output"},
			&urfave.StringFlag{Name: "group-by", Usage: "what to add up: " + strings.Join(export.Groups(), ", ")},
			&urfave.StringFlag{Name: "max-size", Usage: "leave out what makes it larger than `SIZE` (500MB), and say how much"},
			memory.VizAt(),
			&urfave.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say nothing but errors"},
		}, answer.PartFlags()...),
		Action: runExport,
	}
}

// memoryViz is the format that memory.ExportViz writes.
const memoryViz = "memory_viz"

func exportFormats() []string { return append(export.Formats(), memoryViz) }

func runExport(c *urfave.Context) error {
	path, err := answer.Path(c)
	if err != nil {
		return err
	}
	format := c.String("format")
	if !slices.Contains(exportFormats(), format) {
		return cli.Usagef("unknown format %q: one of %s", format, strings.Join(exportFormats(), ", "))
	}
	if c.String("output") == "" {
		return cli.Mistaken(errors.New("where to? -o FILE, or -o - for standard output"))
	}
	if format == memoryViz {
		if c.IsSet("rank") || c.IsSet("step") || c.IsSet("from") || c.IsSet("to") {
			return cli.Usagef("--rank, --step, --from and --to do not go with --format %s: it has all memory from the begin on", memoryViz)
		}
		return memory.ExportViz(c, path)
	}
	if c.IsSet("at") {
		return cli.Usagef("--at goes with --format %s alone: leave it out, or take that format", memoryViz)
	}
	if by := c.String("group-by"); by != "" && !slices.Contains(export.Groups(), by) {
		return cli.Usagef("cannot group by %q: one of %s", by, strings.Join(export.Groups(), ", "))
	}
	archive := strings.HasSuffix(c.String("output"), ".tar")
	if archive && format != "perfetto" {
		return cli.Usagef("a .tar is of --format perfetto, one trace of each rank; %s is one file", format)
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
		if strings.HasSuffix(c.String("output"), ".gz") && format != "pprof" { // which is always compressed
			z := gzip.NewWriter(w)
			result, err = export.Write(c.Context, db, z, format, options)
			return errors.Join(err, z.Close())
		}
		result, err = export.Write(c.Context, db, w, format, options)
		return err
	})
	line.End()
	if err != nil {
		return cli.Failed(fmt.Errorf("exporting %s: %w", path, err))
	}
	if !c.Bool("quiet") {
		if format == "perfetto" || format == "kineto" {
			fmt.Fprintf(os.Stderr, "%d slices of %d spans\n", result.Slices, result.Spans)
		}
		for _, left := range result.LeftOut {
			fmt.Fprintln(os.Stderr, left)
		}
	}
	return nil
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
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"B", 1}} {
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
