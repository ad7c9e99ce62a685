package data

import (
	"fmt"
	"io"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/model/stacks"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/symbolize"
)

const symbolizeDescription = `Names the native frames that had no symbol when they were recorded: the files of DIR are matched by build id, whether
they lie as below /usr/lib/debug (.build-id/ab/cdef….debug) or anyhow, with or without code. Only table stack is
rewritten, file by file, each whole or not at all; stack ids stay what they are. It needs neither root nor the machine
of the recording.

   apt-get install libc6-dbg && ebpfprof symbolize DATASET --debug-dir /usr/lib/debug`

// maxMissing is how many files without symbols are listed.
const maxMissing = 10

// SymbolizeCommand is `ebpfprof symbolize`.
func SymbolizeCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "symbolize",
		Usage:       "name a dataset's native frames from files of debug information",
		ArgsUsage:   "DATASET",
		Description: symbolizeDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "debug-dir", Usage: "look for ELF files below `DIR`"},
		},
		Action: runSymbolize,
	}
}

func runSymbolize(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(arguments) != 1:
		return cli.Usagef("which dataset? ebpfprof symbolize DATASET --debug-dir DIR")
	case c.String("debug-dir") == "":
		return cli.Usagef("where are the files? ebpfprof symbolize DATASET --debug-dir DIR")
	}
	dir, err := symbolize.OpenDebugDir(c.String("debug-dir"))
	if err != nil {
		return cli.Failed(err)
	}
	db, err := answer.OpenQuery(c, arguments[0])
	if err != nil {
		return err
	}
	defer db.Close()
	named, err := stacks.Symbolize(c.Context, db, dir)
	if err != nil {
		return cli.Failed(err)
	}
	printNamed(c.App.Writer, named)
	if named.Nameless > 0 && named.Named == 0 {
		return cli.Failed(fmt.Errorf("%s has no symbol for any of the %d nameless frames", c.String("debug-dir"), named.Nameless))
	}
	return nil
}

func printNamed(w io.Writer, n *stacks.Named) {
	if n.Nameless == 0 {
		fmt.Fprintln(w, "every native frame has its symbol, or is in a file without a build id")
		return
	}
	fmt.Fprintf(w, "%d of %d nameless frames are named now; files rewritten: %d\n", n.Named, n.Nameless, n.Rewritten)
	for i, m := range n.Missing {
		if i == maxMissing {
			fmt.Fprintf(w, "… and %d more files\n", len(n.Missing)-maxMissing)
			break
		}
		why := "no such file in the directory"
		if m.Found {
			why = "found, without symbols for them"
		}
		fmt.Fprintf(w, "  %6d frames left in %s, build id %s: %s\n", m.Frames, printable.Text(m.Module), printable.Text(m.BuildID), why)
	}
}
