package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/report"
	"github.com/ebpfprof/ebpfprof/internal/fleet/source"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/printable"
)

const uploadDescription = `Makes the patterns of recordings and puts them into a store: a few numbers for each function of each
worker, the times of its steps, and no events. A dataset holds one node's workers; give those of all nodes, together or
one by one. What is there already stays as it is.

   ebpfprof fleet upload --store /shared/patterns --job llama ebpfprof-*/`

func uploadCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "upload",
		Usage:       "put the patterns of recordings into a store",
		ArgsUsage:   "DATASET…",
		Description: uploadDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "store", Usage: "the store, a directory or s3://BUCKET/PREFIX: `STORE`"},
			&urfave.StringFlag{Name: "job", Usage: "the job's `NAME`", DefaultText: "the scheduler's, as recorded"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		},
		OnUsageError: func(_ *urfave.Context, err error, _ bool) error { return usageError(err) },
		Action:       runUpload,
	}
}

// uploaded is what an upload says of one dataset.
type uploaded struct {
	Dataset      string  `json:"dataset"`
	Job          string  `json:"job"`
	Host         string  `json:"host"`
	Patterns     int     `json:"patterns"`
	Steps        int     `json:"steps"`
	EventBytes   int64   `json:"event_bytes"`
	PatternBytes int64   `json:"pattern_bytes"`
	Factor       float64 `json:"factor"`
}

func runUpload(c *urfave.Context) error {
	datasets, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return usageError(err)
	case len(datasets) == 0 || c.String("store") == "":
		return usageError(errors.New("which recordings, and where to? ebpfprof fleet upload --store STORE DATASET…"))
	}
	s, err := store.Create(c.String("store"))
	if err != nil {
		return urfave.Exit(err, cli.ExitFailed)
	}
	all := []uploaded{}
	for _, path := range datasets {
		one, err := upload(c, s, path)
		if err != nil {
			return urfave.Exit(fmt.Errorf("%s: %w", path, err), cli.ExitFailed)
		}
		all = append(all, one)
		if !c.Bool("json") {
			fmt.Fprintf(c.App.Writer, "%s: job %s, %d patterns and %d steps in %s instead of %s: %.0f times less\n", one.Dataset, printable.Text(one.Job),
				one.Patterns, one.Steps, cli.Bytes(one.PatternBytes), cli.Bytes(one.EventBytes), one.Factor)
		}
	}
	if c.Bool("json") {
		return writeJSON(c, all)
	}
	return nil
}

func upload(c *urfave.Context, s store.Store, path string) (uploaded, error) {
	db, err := dataset.Open(path)
	if err != nil {
		return uploaded{}, err
	}
	defer db.Close()
	printWarnings(c, db.Warnings())
	u, err := source.Read(c.Context, db, c.String("job"))
	if err != nil {
		return uploaded{}, err
	}
	if u.Job == "" {
		return uploaded{}, errors.New("no scheduler named the job: name it with --job NAME")
	}
	batch := store.Batch{Session: u.Session, Job: u.Job, Host: u.Host, Tool: cli.Version, Patterns: u.Patterns, Steps: u.Steps,
		Lost: u.Lost, EventBytes: u.EventBytes}
	n, err := store.Send(c.Context, s, batch)
	if err != nil {
		return uploaded{}, err
	}
	return uploaded{path, u.Job, u.Host, len(u.Patterns), len(u.Steps), u.EventBytes, n, float64(u.EventBytes) / float64(n)}, nil
}

const fleetReportDescription = `Says which worker of a job is slow, in what function and why, and what all workers alike would bring.
Workers are compared by their patterns: with eight or more of them each against a sample of its peers, below that
against the median of the others. A common finding is what most workers spend more on than expected; a special one is
what tells a worker from its peers; symptoms, such as waiting for somebody, come last.

   ebpfprof fleet report /shared/patterns
   ebpfprof fleet report /shared/patterns --job llama --since 2h --format html -o slow.html
   ebpfprof fleet report s3://profiles/fleet?endpoint=https://storage.example.com
   ebpfprof fleet report /shared/patterns --json | jq '.findings[0]'`

func fleetReportCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "report",
		Usage:       "say which worker is slow, in what, and what fixing it would bring",
		ArgsUsage:   "STORE",
		Description: fleetReportDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "job", Usage: "the job's `NAME`", DefaultText: "the one seen last"},
			&urfave.DurationFlag{Name: "since", Usage: "how much `TIME` before the newest pattern", DefaultText: "1m"},
			&urfave.StringFlag{Name: "format", Value: "text", Usage: "text, json or html"},
			&urfave.BoolFlag{Name: "json", Usage: "the same as --format json"},
			&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`", DefaultText: "the terminal"},
		},
		OnUsageError: func(_ *urfave.Context, err error, _ bool) error { return usageError(err) },
		Action:       runFleetReport,
	}
}

// localStore is a directory that has what a report of a store needs: the store itself,
// or, of a bucket, a copy of the --job's files since so long before its newest, which
// remove takes away.
func localStore(c *urfave.Context, location string, since time.Duration) (directory string, remove func(), err error) {
	s, err := store.Open(c.Context, location)
	if err != nil {
		return "", nil, err
	}
	bucket, ok := s.(*store.Bucket)
	if !ok {
		return location, func() {}, nil
	}
	if directory, err = os.MkdirTemp("", "ebpfprof-store-"); err != nil {
		return "", nil, fmt.Errorf("making room for a copy of the store: %w", err)
	}
	remove = func() { os.RemoveAll(directory) }
	progress := newProgressLine(c)
	defer progress.end()
	err = store.Mirror(c.Context, bucket, c.String("job"), since, directory, func(done, of int) {
		progress.say("fetching %d of %d files", done, of)
	})
	if err != nil {
		remove()
		return "", nil, err
	}
	return directory, remove, nil
}

func runFleetReport(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return usageError(err)
	case len(arguments) != 1:
		return usageError(errors.New("which store? ebpfprof fleet report STORE"))
	}
	format := c.String("format")
	if c.Bool("json") {
		format = "json"
	}
	if !strings.Contains(" text json html ", " "+format+" ") {
		return usageError(fmt.Errorf("--format %q: choose text, json or html", format))
	}
	directory, remove, err := localStore(c, arguments[0], c.Duration("since"))
	if err != nil {
		return urfave.Exit(err, cli.ExitFailed)
	}
	defer remove()
	db, err := openAnalysis(c, filepath.Join(directory, store.Version))
	if err != nil {
		return err
	}
	defer db.Close()
	r, err := report.Build(c.Context, db, report.Question{Job: c.String("job"), Since: c.Duration("since")})
	if errors.Is(err, report.ErrNoJob) {
		jobs, _ := report.Jobs(c.Context, db)
		if len(jobs) > 0 {
			err = fmt.Errorf("%w; it has %s", err, printable.Text(strings.Join(jobs, ", ")))
		}
	}
	if err != nil {
		return urfave.Exit(fmt.Errorf("%s: %w", arguments[0], err), cli.ExitFailed)
	}
	return writeTo(c, func(w io.Writer) error {
		switch format {
		case "json":
			return encodeJSON(w, r)
		case "html":
			return r.WriteHTML(w)
		}
		return r.WriteText(w)
	})
}
