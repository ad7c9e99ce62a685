package data

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/snapshot"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/exchange/importer"
	"github.com/ebpfprof/ebpfprof/internal/redact"
	"github.com/ebpfprof/ebpfprof/internal/version"
)

const importDescription = `Reads traces of torch.profiler (JSON of Kineto, also .gz), exports of Nsight Systems (nsys export --type sqlite),
traces of AMD's rocprofv3 (its database, .db, or --output-format json), traces of Perfetto (.pftrace) and memory
snapshots of PyTorch (pickle or JSON: nothing in a pickle is imported or called) into a dataset, which every command
reads like a recording. Several files are the ranks of one job.

   ebpfprof import trace.json.gz --output trace.dataset && ebpfprof report trace.dataset
   ebpfprof import rank*.json --output job.dataset`

// importMemory keeps the heap of an import, whose own state is a few tens of
// bytes a row, below what a laptop has to spare.
const importMemory = 800 << 20

// ImportCommand is `ebpfprof import`.
func ImportCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "import",
		Usage:       "convert traces of torch.profiler, Nsight Systems, rocprofv3 or Perfetto into a dataset",
		ArgsUsage:   "FILE…",
		Description: importDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the dataset into `DIRECTORY` (default: the first file's name " +
				"with .dataset)"},
			&urfave.BoolFlag{Name: "redact", DisableDefaultText: true, Usage: "omit command lines, directories and host names"},
			&urfave.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only errors"},
		},
		Action: runImport,
	}
}

func runImport(c *urfave.Context) error {
	files, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(files) == 0:
		return cli.Mistaken(errors.New("which file? ebpfprof import FILE… --output DATASET"))
	}
	dir := c.String("output")
	if dir == "" {
		dir = defaultDataset(files[0])
	}
	if snapshot.Is(files[0]) {
		if len(files) > 1 {
			return cli.Mistaken(errors.New("one memory snapshot at a time: each is a job of its own"))
		}
		return importSnapshot(c, files[0], dir)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(importMemory))
	// An import that is stopped takes back what it has written.
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	began, line := time.Now(), answer.NewProgress(c)
	summary, err := importer.Import(ctx, files, dir, importer.Options{
		ToolVersion: version.Version,
		CommandLine: importLine(c.Bool("redact")),
		Redact:      c.Bool("redact"),
		Progress: func(file string, part float64) {
			line.Say("reading %s: %d %%", filepath.Base(file), int(100*min(part, 1)))
		},
	})
	line.End()
	if ctx.Err() != nil {
		return cli.Failed(errors.New("stopped: nothing was imported"))
	}
	if err != nil {
		return cli.Failed(err)
	}
	if c.Bool("quiet") {
		return nil
	}
	for _, w := range summary.Warnings {
		answer.Warn(c, []string{w.Detail})
	}
	fmt.Fprintf(c.App.Writer, "%d spans (%d of them on devices), %d allocations and frees in %s: %s\n",
		summary.Spans, summary.DeviceRows, summary.MemoryRows, time.Since(began).Round(time.Millisecond), dir)
	return nil
}

func importLine(redacted bool) string {
	if redacted {
		return strings.Join(redact.CommandLine(os.Args), " ")
	}
	return strings.Join(os.Args, " ")
}

// defaultDataset is trace.dataset for trace.json.gz.
func defaultDataset(file string) string {
	name := filepath.Base(file)
	for _, ending := range []string{".gz", ".json", ".sqlite", ".pt.trace"} {
		if trimmed, ok := strings.CutSuffix(name, ending); ok {
			name = trimmed
		}
	}
	return name + ".dataset"
}

// importSnapshot is `ebpfprof import` of a memory snapshot of PyTorch.
func importSnapshot(c *urfave.Context, file, dir string) error {
	s, err := snapshot.ReadFile(file)
	if err != nil {
		return cli.Failed(fmt.Errorf("importing %s: %w", file, err))
	}
	rows, err := source.Import(s, file, dir, source.ImportOptions{ToolVersion: version.Version,
		CommandLine: importLine(c.Bool("redact")), Redact: c.Bool("redact")})
	if err != nil {
		return cli.Failed(fmt.Errorf("importing %s: %w", file, err))
	}
	if !c.Bool("quiet") {
		fmt.Fprintf(c.App.ErrWriter, "%d allocator events\n\ndataset: %s\nnext:\n  ebpfprof memory %s\n", rows, dir, dir)
	}
	return nil
}
