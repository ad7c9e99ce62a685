package cli

import (
	"errors"
	"fmt"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// usage is a mistake in the command line.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

func (u usage) ExitCode() int { return ExitUsage }

// Mistaken makes an error one of the command line.
func Mistaken(err error) error { return usage{err} }

// Usagef is a mistake in the command line, in a sentence that says what to do.
func Usagef(format string, args ...any) error { return usage{fmt.Errorf(format, args...)} }

// Failed is an error of anything but the command line, with no usage text before it.
func Failed(err error) error { return urfave.Exit(err, ExitFailed) }

// coded is an error with an exit code of its own, whatever it wraps.
type coded struct {
	error
	code int
}

func (e coded) Unwrap() error { return e.error }

// errSilent ends a command with an exit code and without a word.
var errSilent = errors.New("")

// WithCode gives an error an exit code that wins over those of what it wraps. Without an error the
// command ends with the code and prints nothing.
func WithCode(code int, err error) error {
	if err == nil {
		err = errSilent
	}
	return coded{err, code}
}

// UsageError rewords what package flag found wrong: flags are written with two dashes, and no Go
// function is named.
func UsageError(c *urfave.Context, err error, _ bool) error {
	command := c.App.Name
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != command {
		command += " " + c.Command.Name
	}
	message := err.Error()
	if name, ok := strings.CutPrefix(message, "flag provided but not defined: "); ok {
		return Usagef("unknown flag --%s: see %s --help", strings.TrimLeft(name, "-"), command)
	}
	if name, ok := strings.CutPrefix(message, "flag needs an argument: "); ok {
		return Usagef("--%s needs a value: see %s --help", strings.TrimLeft(name, "-"), command)
	}
	rest, ok := strings.CutPrefix(message, "invalid value ")
	if !ok {
		message = strings.Replace(message, " for -", " for flag -", 1)
		rest, ok = strings.CutPrefix(message, "invalid boolean value ")
	}
	if ok {
		value, name, _ := strings.Cut(rest, " for flag -")
		name, _, _ = strings.Cut(name, ":")
		return Usagef("--%s %s: %s", name, value, expected(c, name))
	}
	return usage{err}
}

// expected says what a flag's value should look like.
func expected(c *urfave.Context, name string) string {
	if c.Command != nil {
		for _, f := range c.Command.Flags {
			if !isNamed(f, name) {
				continue
			}
			switch f.(type) {
			case *urfave.IntFlag, *urfave.IntSliceFlag, *urfave.Float64Flag:
				return "give a number"
			case *urfave.DurationFlag:
				return "give a time with its unit, such as 30s or 5m"
			case *urfave.BoolFlag:
				return "it is a switch and takes no value"
			}
		}
	}
	return "invalid value"
}

func isNamed(f urfave.Flag, name string) bool {
	for _, n := range f.Names() {
		if n == name {
			return true
		}
	}
	return false
}

// unknownCommand names the command that was probably meant.
func unknownCommand(c *urfave.Context, name string) error {
	// The library answers with a sentence: Did you mean "attach"?
	if _, meant, _ := strings.Cut(urfave.SuggestCommand(c.App.Commands, name), `"`); len(meant) > 3 {
		meant, _, _ = strings.Cut(meant, `"`)
		return Usagef("unknown command %q: did you mean %s %s?", name, c.App.Name, meant)
	}
	return Usagef("unknown command %q: see %s --help", name, c.App.Name)
}

// NoArguments is for commands that take flags only.
func NoArguments(c *urfave.Context) error {
	if c.Args().Present() {
		return Usagef("unexpected argument %q: see %s %s --help", c.Args().First(), c.App.Name, c.Command.Name)
	}
	return nil
}

// FirstCause is the first of joined errors: the cause of the others.
func FirstCause(err error) error {
	for {
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok || len(joined.Unwrap()) == 0 || strings.Count(err.Error(), "\n") == 0 {
			return err
		}
		err = joined.Unwrap()[0]
	}
}
