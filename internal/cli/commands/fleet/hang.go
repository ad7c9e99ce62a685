package fleet

import (
	"errors"
	"fmt"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/exchange/flightrecorder"
	"github.com/ebpfprof/ebpfprof/internal/fleet/evidence"
)

const hangDescription = `Reports which ranks of a job wait in which collective of torch.distributed, since when and at which line, and which
rank is missing. The recording may be finished or still running (open calls are written within 2 s). Recordings of
several nodes are combined. Ranks that stand still are shown with their stacks, native and Python. If the job hung
before the recording began, it reports only that the job waits in a collective.
For a store it reports the hangs that agents detected, combined from all nodes.

   sudo ebpfprof attach --pid 4001 --pid 4002 -o rec &
   ebpfprof fleet hang rec
   ebpfprof fleet hang node1/rec node2/rec
   ebpfprof fleet hang /shared/patterns --job llama
   ebpfprof fleet hang rec --json | jq '.groups[].missing'
   ebpfprof fleet hang rec --dump dumps && python3 -m torch.distributed.flight_recorder.fr_trace dumps`

func hangCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "hang",
		Usage:       "report which rank is missing in a collective that others wait in",
		ArgsUsage:   "DATASET… | STORE",
		Description: hangDescription,
		Flags: []urfave.Flag{
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
			&urfave.StringFlag{Name: "dump", Usage: "also write what each rank did as a dump of PyTorch's flight recorder into `DIRECTORY`"},
			&urfave.StringFlag{Name: "job", Usage: "of a store: the job's `NAME`", DefaultText: "the one that was blocked last"},
			&urfave.DurationFlag{Name: "since", Value: 24 * time.Hour, Usage: "of a store: how much `TIME` before now"},
		},
		OnUsageError: func(_ *urfave.Context, err error, _ bool) error { return cli.Mistaken(err) },
		Action:       runHang,
	}
}

func runHang(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(arguments) == 0:
		return cli.Mistaken(errors.New("which dataset? ebpfprof fleet hang DATASET…"))
	case len(arguments) > 1 && c.String("dump") != "":
		return cli.Mistaken(errors.New("--dump writes the ranks of one dataset: run it for each dataset with the same directory"))
	}
	if len(arguments) == 1 && isStore(arguments[0]) {
		return runStoredHang(c, arguments[0])
	}
	if c.IsSet("job") || c.IsSet("since") {
		return cli.Mistaken(errors.New("--job and --since need a store"))
	}
	var dbs []*dataset.DB
	for _, path := range arguments {
		db, err := answer.Open(c, path)
		if err != nil {
			return err
		}
		defer db.Close()
		dbs = append(dbs, db)
	}
	report, err := evidence.Analyse(c.Context, dbs...)
	if err != nil {
		return cli.Failed(err)
	}
	var dumps *flightrecorder.Written
	if directory := c.String("dump"); directory != "" {
		if dumps, err = evidence.Dump(c.Context, dbs[0], directory); err != nil {
			return cli.Failed(err)
		}
	}
	if c.Bool("json") {
		err = answer.JSON(c, struct {
			*hang.Report
			Dumps *flightrecorder.Written `json:"dumps,omitempty"`
		}{report, dumps})
	} else if err = report.WriteText(c.App.Writer); err == nil && dumps != nil {
		err = dumps.WriteText(c.App.Writer)
	}
	if err != nil {
		return cli.Failed(fmt.Errorf("writing the answer: %w", err))
	}
	return nil
}
