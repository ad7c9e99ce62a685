package fleet

import (
	"errors"
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/source"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/version"
)

const uploadDescription = `Computes the patterns of recordings and writes them into a store: a few numbers for each function of each worker, and
the times of its steps, but no events. A dataset holds one node's workers; give those of all nodes, together or one by
one. Existing files do not change.

   ebpfprof fleet upload --store /shared/patterns --job llama ebpfprof-*/`

func uploadCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "upload",
		Usage:       "write the patterns of recordings into a store",
		ArgsUsage:   "DATASET…",
		Description: uploadDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "store", Usage: "the store, a directory or s3://BUCKET/PREFIX: `STORE`"},
			&urfave.StringFlag{Name: "job", Usage: "the job's `NAME`", DefaultText: "the scheduler's, as recorded"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		},
		OnUsageError: func(_ *urfave.Context, err error, _ bool) error { return cli.Mistaken(err) },
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
		return cli.Mistaken(err)
	case len(datasets) == 0 || c.String("store") == "":
		return cli.Mistaken(errors.New("which recordings, and where to? ebpfprof fleet upload --store STORE DATASET…"))
	}
	s, err := store.Create(c.String("store"))
	if err != nil {
		return cli.Failed(err)
	}
	all := []uploaded{}
	for _, path := range datasets {
		one, err := upload(c, s, path)
		if err != nil {
			return cli.Failed(fmt.Errorf("%s: %w", path, err))
		}
		all = append(all, one)
		if !c.Bool("json") {
			fmt.Fprintf(c.App.Writer, "%s: job %s, %d patterns and %d steps in %s instead of %s: %.0f times less\n", one.Dataset,
				printable.Text(one.Job),
				one.Patterns, one.Steps, amount.Bytes(one.PatternBytes), amount.Bytes(one.EventBytes), one.Factor)
		}
	}
	if c.Bool("json") {
		return answer.JSON(c, all)
	}
	return nil
}

func upload(c *urfave.Context, s store.Store, path string) (uploaded, error) {
	db, err := dataset.Open(path)
	if err != nil {
		return uploaded{}, err
	}
	defer db.Close()
	answer.Warn(c, db.Warnings())
	u, err := source.Read(c.Context, db, c.String("job"))
	if err != nil {
		return uploaded{}, err
	}
	if u.Job == "" {
		return uploaded{}, errors.New("no scheduler named the job: name it with --job NAME")
	}
	batch := store.Batch{Session: u.Session, Job: u.Job, Host: u.Host, Tool: version.Version, Patterns: u.Patterns, Steps: u.Steps,
		Lost: u.Lost, EventBytes: u.EventBytes}
	n, err := store.Send(c.Context, s, batch)
	if err != nil {
		return uploaded{}, err
	}
	return uploaded{path, u.Job, u.Host, len(u.Patterns), len(u.Steps), u.EventBytes, n, float64(u.EventBytes) / float64(n)}, nil
}
