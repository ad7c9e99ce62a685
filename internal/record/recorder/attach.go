package recorder

import (
	"slices"
	"strconv"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
)

// AttachCommand is `ebpfprof attach`; it ends with what a build that reads datasets adds.
func AttachCommand(reading Reading) *urfave.Command {
	return &urfave.Command{
		Name:      "attach",
		Usage:     "record a running job",
		UsageText: "ebpfprof attach --pid PID | --command PATTERN [--wait] | --container ID [--duration 30s] [--output DIR]",
		Flags: slices.Concat([]urfave.Flag{
			&urfave.IntSliceFlag{Name: "pid", Aliases: []string{"p"}, Usage: "the `PID` of the process to record; several --pid are one recording"},
		}, findFlags(), recordFlags(""), []urfave.Flag{
			&urfave.BoolFlag{Name: "serve", DisableDefaultText: true, Usage: "show the recording in a browser while it is made, as serve " +
				"shows a dataset; the page stays until a second Ctrl-C"},
		}),
		Action: func(c *urfave.Context) error {
			if c.Args().Present() {
				return cli.Usagef("unexpected argument %q: attach takes the process as --pid PID", c.Args().First())
			}
			options, err := recordOptions(c)
			if err != nil {
				return err
			}
			if options.PIDs, err = processes(c); err != nil {
				return err
			}
			r, err := newRecorder(c, options, reading, false)
			if err != nil {
				return err
			}
			if r.output == "" {
				r.output = defaultOutput(strconv.Itoa(options.PIDs[0]), time.Now())
			}
			if err := r.serveIf(c.Bool("serve"), c.IsSet("rotate")); err != nil {
				return err
			}
			err = r.record(c.Context, nil)
			if err == nil {
				r.page.stay()
			}
			r.page.end()
			return err
		},
		Description: "Records until the job exits, --duration passes or Ctrl-C, and changes nothing in the job.\n" + cli.ExitCodeHelp,
	}
}
