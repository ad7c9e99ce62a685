package recorder

import (
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
		UsageText: "ebpfprof attach --pid PID [--duration 30s] [--output DIR]",
		Flags: append([]urfave.Flag{
			&urfave.IntSliceFlag{Name: "pid", Aliases: []string{"p"}, Usage: "the `PID` of the process to record; several --pid are one recording"},
		}, recordFlags()...),
		Action: func(c *urfave.Context) error {
			if c.Args().Present() {
				return cli.Usagef("unexpected argument %q: attach takes the process as --pid PID", c.Args().First())
			}
			options, err := recordOptions(c)
			if err != nil {
				return err
			}
			if options.PIDs = c.IntSlice("pid"); len(options.PIDs) == 0 {
				return cli.Usagef("give the process to record: ebpfprof attach --pid PID")
			}
			for _, pid := range options.PIDs {
				if pid <= 0 {
					return cli.Usagef("--pid %d: a pid is a positive number", pid)
				}
			}
			r, err := newRecorder(c, options, reading)
			if err != nil {
				return err
			}
			if r.output == "" {
				r.output = defaultOutput(strconv.Itoa(options.PIDs[0]), time.Now())
			}
			return r.record(c.Context, nil)
		},
		Description: "Records until the job exits, --duration passes or Ctrl-C, and changes nothing in the job.\n" + cli.ExitCodeHelp,
	}
}
