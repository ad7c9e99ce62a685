// Package testcommand runs one command of the binary, without the process around it.
package testcommand

import (
	"errors"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// Run runs one command as the binary does. An error without an exit code of its own
// has code -1.
func Run(command *urfave.Command, arguments ...string) (out, warnings string, code int, err error) {
	return RunWith("", command, arguments...)
}

// RunWith is Run with a standard input.
func RunWith(input string, command *urfave.Command, arguments ...string) (out, warnings string, code int, err error) {
	var stdout, stderr strings.Builder
	app := &urfave.App{
		Name: "ebpfprof", Commands: []*urfave.Command{command}, Reader: strings.NewReader(input),
		Writer: &stdout, ErrWriter: &stderr, ExitErrHandler: func(*urfave.Context, error) {},
	}
	err = app.Run(append([]string{"ebpfprof", command.Name}, arguments...))
	var exit urfave.ExitCoder
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		code = -1
	}
	return stdout.String(), stderr.String(), code, err
}
