package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/export"
)

const exportDescription = `perfetto is for ui.perfetto.dev, kineto for what reads traces of torch.profiler (HTA, TraceLens, traceinsight), pprof for
go tool pprof, speedscope for speedscope.app, folded for flamegraph.pl, memory_viz for PyTorch's memory viewer. pprof,
speedscope and folded add up: time on the device where there is any, else on the CPU; --group-by chooses. With
memory_viz each process's memory on each device is a device, host memory too; --at peak ends it there.
A name that ends in .gz is compressed. A name that ends in .tar has a Perfetto trace of each rank, and a manifest that puts their clocks together.

   ebpfprof export DATASET --format perfetto -o job.pftrace
   ebpfprof export DATASET --format perfetto -o ranks.tar
   ebpfprof export DATASET --format speedscope --group-by operator -o job.speedscope.json
   ebpfprof export DATASET --format memory_viz --at peak -o job.pickle`

// exportCommand is `ebpfprof export`.
func exportCommand() *urfave.Command {
	cli.CompleteValues("group-by", export.Groups)
	return &urfave.Command{
		Name:        "export",
		Usage:       "write a dataset for other tools: Perfetto, torch.profiler's readers, pprof, speedscope",
		ArgsUsage:   "DATASET",
		Description: exportDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "format", Value: export.Formats()[0], Usage: strings.Join(exportFormats(), ", ")},
			&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`; - is standard output"},
			&urfave.StringFlag{Name: "group-by", Usage: "what to add up: " + strings.Join(export.Groups(), ", ")},
			&urfave.StringFlag{Name: "max-size", Usage: "leave out what makes it larger than `SIZE` (500MB), and say how much"},
			&urfave.IntFlag{Name: "rank", Usage: "only the process of `RANK`"},
			memoryVizAt(),
			&urfave.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say nothing but errors"},
		},
		Action: runExport,
	}
}

// memoryViz is the format that exportMemoryViz writes.
const memoryViz = "memory_viz"

func exportFormats() []string { return append(export.Formats(), memoryViz) }

func runExport(c *urfave.Context) error {
	path, err := oneDataset(c)
	if err != nil {
		return err
	}
	format := c.String("format")
	if !known(exportFormats(), format) {
		return usageError(fmt.Errorf("unknown format %q: one of %s", format, strings.Join(exportFormats(), ", ")))
	}
	if c.String("output") == "" {
		return usageError(errors.New("where to? -o FILE, or -o - for standard output"))
	}
	if format == memoryViz {
		return exportMemoryViz(c, path)
	}
	if c.IsSet("at") {
		return usageError(fmt.Errorf("--at goes with --format %s alone: leave it out, or take that format", memoryViz))
	}
	if by := c.String("group-by"); by != "" && !known(export.Groups(), by) {
		return usageError(fmt.Errorf("cannot group by %q: one of %s", by, strings.Join(export.Groups(), ", ")))
	}
	archive := strings.HasSuffix(c.String("output"), ".tar")
	if archive && format != "perfetto" {
		return usageError(fmt.Errorf("a .tar is of --format perfetto, one trace of each rank; %s is one file", format))
	}
	options := export.Options{GroupBy: c.String("group-by")}
	if options.MaxBytes, err = byteSize(c.String("max-size")); err != nil {
		return usageError(err)
	}
	if c.IsSet("rank") {
		options.Rank = pointer(c.Int("rank"))
	}
	db, err := openAnalysis(c, path)
	if err != nil {
		return err
	}
	defer db.Close()
	line := newProgressLine(c)
	options.Progress = func(part float64) { line.say("writing: %d %%", int(100*part)) }
	var result *export.Result
	err = writeTo(c, func(w io.Writer) error {
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
	line.end()
	if err != nil {
		return urfave.Exit(fmt.Errorf("exporting %s: %w", path, err), cli.ExitFailed)
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
