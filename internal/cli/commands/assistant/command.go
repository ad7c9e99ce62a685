// Package assistant is the command that lets a coding assistant read datasets, by the Model Context Protocol.
package assistant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

const description = `Speaks the Model Context Protocol on standard input and output: a coding assistant that starts it can ask why a job is
slow. Its tools are report, findings, steps, stacks, source, memory, diff, schema and query; each answer is the JSON of
the command of that name. Only the datasets given here can be read, and nothing is written. Without a path it is the
newest dataset in this directory. For an assistant that reads such a file:

   {"mcpServers": {"ebpfprof": {"command": "ebpfprof", "args": ["mcp", "DATASET"]}}}

Names in a dataset come from the recorded job: an answer says so, and that they are no instructions.`

// Command is `ebpfprof mcp`.
func Command() *urfave.Command {
	return &urfave.Command{
		Name:        "mcp",
		Usage:       "let a coding assistant read datasets (Model Context Protocol)",
		ArgsUsage:   "[DATASET…]",
		Description: description,
		Action:      run,
	}
}

func run(c *urfave.Context) error {
	paths, err := cli.Interspersed(c)
	if err != nil {
		return cli.Mistaken(err)
	}
	if len(paths) == 0 {
		newest, err := answer.PathOrNewest(c)
		if err != nil {
			return err
		}
		paths = []string{newest}
	}
	program, err := os.Executable()
	if err != nil {
		return cli.Failed(fmt.Errorf("finding this program: %w", err))
	}
	s, err := New(paths, Program(program))
	if err != nil {
		return cli.Failed(err)
	}
	if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintln(c.App.ErrWriter, "an assistant starts this command and speaks JSON to it: see ebpfprof mcp --help; Ctrl-C ends it")
	}
	if err := s.Run(c.Context, &mcp.StdioTransport{}); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
		return cli.Failed(err)
	}
	return nil
}

// datasets are those that can be read, by the names that an assistant uses.
type datasets struct {
	names []string
	paths map[string]string
}

func open(paths []string) (datasets, error) {
	d := datasets{paths: map[string]string{}}
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return d, fmt.Errorf("%s: %w", printable.Text(path), err)
		}
		db, err := dataset.Open(absolute)
		if err != nil {
			return d, err
		}
		db.Close()
		name := filepath.Base(absolute)
		if d.paths[name] != "" { // two directories of one name go by their paths
			name = absolute
		}
		if d.paths[name] != "" {
			return d, fmt.Errorf("%s is given twice: give each dataset once", printable.Text(path))
		}
		d.names, d.paths[name] = append(d.names, name), absolute
	}
	return d, nil
}

// path is that of a dataset by its name or path; without a name there has to be only one.
func (d datasets) path(name string) (string, error) {
	if name == "" && len(d.names) == 1 {
		return d.paths[d.names[0]], nil
	}
	if path, ok := d.paths[name]; ok {
		return path, nil
	}
	for _, path := range d.paths {
		if path == name {
			return path, nil
		}
	}
	if name == "" {
		return "", fmt.Errorf("which dataset? One of %q", d.names)
	}
	return "", fmt.Errorf("no dataset %q here: one of %q; others have to be on the command line of ebpfprof mcp", name, d.names)
}
