package main

import (
	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
)

// memoryCommand is `ebpfprof memory` and what is below it.
func memoryCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "memory",
		Usage:       "say who holds memory, and plan it",
		Subcommands: []*urfave.Command{solveCommand()},
		Action: func(c *urfave.Context) error {
			return urfave.ShowSubcommandHelp(c)
		},
	}
}

func failed(err error) error { return urfave.Exit(err, cli.ExitFailed) }
