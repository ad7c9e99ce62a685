// Package cli is the command line that ebpfprof and ebpfprof-agent share:
// flags, wiring and printing. What a command does is in the packages below.
package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Version is the tool's version; the Makefile sets it from git.
var Version = "0.1.0-dev"

// Exit codes, the same for every command.
const (
	ExitOK           = 0
	ExitFailed       = 1
	ExitUsage        = 2
	ExitNotPermitted = 3
	ExitUnsupported  = 4
	ExitNothing      = 5 // the recording went well and captured nothing
)

const exitCodeHelp = "Exit codes: 0 ok, 1 failed, 2 usage, 3 not permitted, 4 kernel unsupported, 5 nothing captured."

// ErrNothingCaptured ends a recording that has no rows.
var ErrNothingCaptured = errors.New("nothing was captured")

// Main runs the command line and returns the exit code. more are the commands
// that only one of the two binaries has.
func Main(name string, args []string, more ...*urfave.Command) int {
	if len(args) > 1 && args[1] == gateCommand {
		return gate(args[2:])
	}
	app := newApp(name, more...)
	if len(args) > 1 && args[1] == completeCommand {
		for _, candidate := range complete(app, args[2:]) {
			fmt.Println(candidate)
		}
		return ExitOK
	}
	err := app.Run(args)
	if err == nil {
		return ExitOK
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", name, strings.TrimSpace(err.Error()))
	return exitCode(err)
}

func newApp(name string, more ...*urfave.Command) *urfave.App {
	app := &urfave.App{
		Name:            name,
		Usage:           "trace machine-learning jobs with eBPF, without changing the job",
		Version:         Version,
		HideHelpCommand: true,
		Commands: slices.Concat([]*urfave.Command{AttachCommand(), RunCommand(), TopCommand()}, more,
			[]*urfave.Command{ProbesCommand(), DoctorCommand(), SchemaCommand(), CompletionCommand()}),
		ExitErrHandler: func(*urfave.Context, error) {},
		OnUsageError:   usageError,
		Description:    exitCodeHelp,
		Action: func(c *urfave.Context) error {
			if c.Args().Present() {
				return unknownCommand(c, c.Args().First())
			}
			return urfave.ShowAppHelp(c)
		},
	}
	for _, c := range app.Commands {
		c.OnUsageError = usageError
	}
	return app
}

// exitCode is the documented code of an error.
func exitCode(err error) int {
	var coder urfave.ExitCoder
	switch {
	case errors.As(err, new(usage)), errors.Is(err, tracer.ErrUnknownGroup):
		return ExitUsage
	case errors.Is(err, tracer.ErrNotPermitted), errors.Is(err, process.ErrPermission):
		return ExitNotPermitted
	case errors.Is(err, tracer.ErrUnsupported):
		return ExitUnsupported
	case errors.Is(err, ErrNothingCaptured):
		return ExitNothing
	case errors.As(err, &coder):
		return coder.ExitCode()
	}
	return ExitFailed
}
