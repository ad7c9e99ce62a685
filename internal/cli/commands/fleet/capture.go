package fleet

import (
	"errors"
	"fmt"
	"os"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/fleet/request"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

const captureDescription = `Requests a window from the agents that record a job; it begins at the same time on all workers. The request is a
small file in the store, signed with the fleet's key: agents accept no others, and respect their cool-down.

   ebpfprof fleet capture /shared/patterns --job llama --key-file /etc/ebpfprof/fleet.key
   ebpfprof fleet report /shared/patterns --job llama`

func captureCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "capture",
		Usage:       "request a window from the agents of a job",
		ArgsUsage:   "STORE",
		Description: captureDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "job", Usage: "the job's `NAME`"},
			&urfave.StringFlag{Name: "key-file", Value: "/etc/ebpfprof/fleet.key", Usage: "the fleet's key, a `FILE`"},
		},
		OnUsageError: func(_ *urfave.Context, err error, _ bool) error { return cli.Mistaken(err) },
		Action: func(c *urfave.Context) error {
			arguments, err := cli.Interspersed(c)
			switch {
			case err != nil:
				return cli.Mistaken(err)
			case len(arguments) != 1 || c.String("job") == "":
				return cli.Mistaken(errors.New("which job, in which store? ebpfprof fleet capture STORE --job NAME"))
			}
			s, err := store.Open(c.Context, arguments[0])
			if err != nil {
				return cli.Failed(err)
			}
			key, err := request.ReadKey(c.String("key-file"))
			if err != nil {
				return cli.Failed(fmt.Errorf("reading the fleet's key: %w", err))
			}
			host, err := os.Hostname()
			if err != nil {
				return cli.Failed(err)
			}
			start := request.AlignedStart(time.Now())
			// Not from a worker's host: its own requests are those that it has taken.
			if err := request.Put(c.Context, s, request.New(c.String("job"), "operator@"+host, "operator", start, key), key); err != nil {
				return cli.Failed(err)
			}
			fmt.Fprintf(c.App.Writer, "requested: the window of %s begins at %s; when it has ended, run ebpfprof fleet report %s --job %s\n",
				printable.Short(c.String("job")), start.UTC().Format("15:04:05Z"), arguments[0], printable.Short(c.String("job")))
			return nil
		},
	}
}
