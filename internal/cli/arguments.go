package cli

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// errHelped is returned where help was requested, and written, in the place of an answer.
var errHelped = errors.New("help was requested")

// Interspersed returns the command's arguments and sets the flags found among
// them: `query DATASET SQL --format json`. The library itself stops at the
// first argument. After "--" everything is an argument, and so is what begins
// with a dash and has white space in it: SQL that starts with a comment.
func Interspersed(c *urfave.Context) ([]string, error) {
	set := flag.NewFlagSet(c.Command.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, f := range c.Command.Flags {
		if err := f.Apply(set); err != nil {
			return nil, err
		}
	}
	var arguments []string
	rest := c.Args().Slice()
	for len(rest) > 0 {
		switch first := rest[0]; {
		case first == "--":
			return append(arguments, rest[1:]...), copyFlags(c, set)
		case first == "-" || !strings.HasPrefix(first, "-") || strings.ContainsAny(first, " \t\r\n") && !isAssignment(first):
			arguments = append(arguments, first)
			rest = rest[1:]
		default:
			err := set.Parse(rest)
			if asked := set.Lookup("help"); errors.Is(err, flag.ErrHelp) || asked != nil && asked.Value.String() == "true" {
				return nil, errors.Join(urfave.ShowSubcommandHelp(c), errHelped)
			}
			if err != nil {
				return nil, UsageError(c, err, true)
			}
			if n := len(rest) - set.NArg(); n > 0 && rest[n-1] == "--" {
				rest = append([]string{"--"}, set.Args()...)
			} else {
				rest = set.Args()
			}
		}
	}
	return arguments, copyFlags(c, set)
}

// isAssignment says whether an argument is a flag with its value: --file='a b'.
func isAssignment(argument string) bool {
	name, _, ok := strings.Cut(argument, "=")
	return ok && !strings.ContainsAny(name, " \t\r\n")
}

func copyFlags(c *urfave.Context, set *flag.FlagSet) (err error) {
	set.Visit(func(f *flag.Flag) {
		value := f.Value.String()
		if list, ok := f.Value.(urfave.Serializer); ok {
			value = list.Serialize()
		}
		for _, name := range allNames(c, f.Name) {
			if e := c.Set(name, value); e != nil && err == nil {
				err = e
			}
		}
	})
	return err
}

// allNames are a flag's name and its aliases: -o is --output.
func allNames(c *urfave.Context, name string) []string {
	for _, f := range c.Command.Flags {
		if slices.Contains(f.Names(), name) {
			return f.Names()
		}
	}
	return []string{name}
}
