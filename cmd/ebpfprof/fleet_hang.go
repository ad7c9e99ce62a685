package main

import (
	"errors"
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/fleet/flightrecorder"
	"github.com/ebpfprof/ebpfprof/internal/fleet/hang"
)

const hangDescription = `Says which ranks of a job wait in which collective of torch.distributed, since when and at which line, and which
rank has not come to it: of a recording that has ended, or of one that goes on (what is open is written within 2 s).

   sudo ebpfprof attach --pid 4001 --pid 4002 -o rec &
   ebpfprof fleet hang rec
   ebpfprof fleet hang rec --json | jq '.groups[].missing'
   ebpfprof fleet hang rec --dump dumps && python3 -m torch.distributed.flight_recorder.fr_trace dumps`

func hangCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "hang",
		Usage:       "say which rank is missing in the collective that the others wait in",
		ArgsUsage:   "DATASET",
		Description: hangDescription,
		Flags: []urfave.Flag{
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
			&urfave.StringFlag{Name: "dump", Usage: "also write what each rank did as a dump of PyTorch's flight recorder into `DIRECTORY`"},
		},
		OnUsageError: func(_ *urfave.Context, err error, _ bool) error { return usageError(err) },
		Action:       runHang,
	}
}

func runHang(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return usageError(err)
	case len(arguments) != 1:
		return usageError(errors.New("which dataset? ebpfprof fleet hang DATASET"))
	}
	db, err := openAnalysis(c, arguments[0])
	if err != nil {
		return err
	}
	defer db.Close()
	report, err := hang.Analyse(c.Context, db)
	if err != nil {
		return urfave.Exit(err, cli.ExitFailed)
	}
	var dumps *flightrecorder.Written
	if directory := c.String("dump"); directory != "" {
		if dumps, err = flightrecorder.Write(c.Context, db, directory); err != nil {
			return urfave.Exit(err, cli.ExitFailed)
		}
	}
	if c.Bool("json") {
		err = writeJSON(c, struct {
			*hang.Report
			Dumps *flightrecorder.Written `json:"dumps,omitempty"`
		}{report, dumps})
	} else if err = report.WriteText(c.App.Writer); err == nil && dumps != nil {
		err = dumps.WriteText(c.App.Writer)
	}
	if err != nil {
		return urfave.Exit(fmt.Errorf("writing the answer: %w", err), cli.ExitFailed)
	}
	return nil
}
