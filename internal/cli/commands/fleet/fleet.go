// Package fleet is `ebpfprof fleet` and what is below it: a file a command, and in
// store.go how they open a store.
package fleet

import (
	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
)

// Command is `ebpfprof fleet`: analyse jobs with many workers.
func Command() *urfave.Command {
	return &urfave.Command{
		Name:            "fleet",
		Usage:           "analyse jobs with many workers",
		HideHelpCommand: true,
		Subcommands: []*urfave.Command{uploadCommand(), reportCommand(), compareCommand(), verdictCommand(), captureCommand(),
			registrarCommand(), hangCommand(), whatIfCommand()},
		OnUsageError: func(_ *urfave.Context, err error, _ bool) error { return cli.Mistaken(err) },
		Action: func(c *urfave.Context) error {
			if c.Args().Present() {
				return cli.Usagef("fleet has no command %q: ebpfprof fleet --help lists them", c.Args().First())
			}
			return urfave.ShowSubcommandHelp(c)
		},
	}
}
