// Package cli is the command line that all binaries share: flags, usage, exit
// codes and printing. It knows neither the loader nor a dataset; commands come
// from internal/cli/commands and, those that trace, from internal/record/capture.
package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/version"
)

// Exit codes, the same for every command.
const (
	ExitOK           = 0
	ExitFailed       = 1
	ExitUsage        = 2
	ExitNotPermitted = 3
	ExitUnsupported  = 4
	ExitNothing      = 5 // the recording went well and captured nothing
)

// Exit codes of a command that starts another one and otherwise returns its code, as those of env,
// timeout and nohup are.
const (
	ExitNotStarted    = 125 // ebpfprof failed before it started the command
	ExitNotExecutable = 126
	ExitNotFound      = 127
)

const ExitCodeHelp = "Exit codes: 0 ok, 1 failed, 2 usage, 3 not permitted, 4 kernel unsupported, 5 nothing captured."

// codes are the exit codes of errors that packages below made.
var codes = []struct {
	err  error
	code int
}{}

// EndWith makes a code the exit code of whatever wraps one of the errors.
func EndWith(code int, errs ...error) {
	for _, err := range errs {
		codes = append(codes, struct {
			err  error
			code int
		}{err, code})
	}
}

// Main runs the command line and returns the exit code. Beside the commands, each
// binary describes the tables and completes what is typed.
func Main(name string, args []string, commands ...*urfave.Command) int {
	app := newApp(name, commands...)
	if len(args) > 1 && args[1] == completeCommand {
		for _, candidate := range complete(app, args[2:]) {
			fmt.Println(candidate)
		}
		return ExitOK
	}
	err := app.Run(args)
	if err == nil || errors.Is(err, errHelped) {
		return ExitOK
	}
	if message := strings.TrimSpace(err.Error()); message != "" {
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, printable.Lines(message))
	}
	return ExitCode(err)
}

func newApp(name string, commands ...*urfave.Command) *urfave.App {
	app := &urfave.App{
		Name:            name,
		Usage:           "trace machine-learning jobs with eBPF, without changing the job",
		Version:         version.Version,
		HideHelpCommand: true,
		Commands:        slices.Concat(commands, []*urfave.Command{SchemaCommand(), CompletionCommand()}),
		ExitErrHandler:  func(*urfave.Context, error) {},
		OnUsageError:    UsageError,
		Description:     ExitCodeHelp,
		Action: func(c *urfave.Context) error {
			if c.Args().Present() {
				return unknownCommand(c, c.Args().First())
			}
			return urfave.ShowAppHelp(c)
		},
	}
	for _, c := range app.Commands {
		if c.OnUsageError == nil {
			c.OnUsageError = UsageError
		}
	}
	return app
}

// ExitCode is the documented code of an error.
func ExitCode(err error) int {
	if own := (coded{}); errors.As(err, &own) {
		return own.code
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	var coder urfave.ExitCoder
	switch {
	case errors.As(err, &coder):
		return coder.ExitCode()
	}
	return ExitFailed
}
