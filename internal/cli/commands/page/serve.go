// Package page is the command that shows a dataset in a browser.
package page

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/page"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

const serveDescription = `Serves a page over one dataset on a free port of this machine's loopback and prints its address: the verdict,
explanations, phases, step times and findings of report; a timeline that zooms from the whole recording to one call,
with the findings marked on it; a map of ranks by steps; flame graphs; your Python source with the time of each line; operators and kernels; and
SQL. The page only reads the dataset and loads nothing from elsewhere. It ends with Ctrl-C or with the terminal. Without
a path it serves the newest dataset in this directory. It follows a dataset that is being recorded; attach --serve starts
it with the recording, whose files are then written every two seconds.

The address has a token: whoever has it can read the dataset, nobody else. From another machine, forward the port or a
socket with SSH:

   ebpfprof serve DATASET --open
   ebpfprof serve BEFORE AFTER               # shows AFTER, and what differs from BEFORE
   ebpfprof serve STORE                      # the map of a fleet's jobs
   ebpfprof serve DATASET --port 8080        # and there: ssh -L 8080:127.0.0.1:8080 HOST
   ebpfprof serve DATASET --socket ./page    # and there: ssh -L 8080:$PWD/page HOST`

// ServeCommand is `ebpfprof serve`.
func ServeCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "serve",
		Usage:       "show a dataset in a browser",
		ArgsUsage:   "[DATASET | BEFORE AFTER | STORE]",
		Description: serveDescription,
		Flags: []urfave.Flag{
			&urfave.IntFlag{Name: "port", Usage: "listen on `PORT` of 127.0.0.1", DefaultText: "any free one"},
			&urfave.StringFlag{Name: "socket", Usage: "listen on the Unix socket `PATH`, which only you can open, instead of a port"},
			&urfave.BoolFlag{Name: "open", Usage: "open the page in your browser"},
			&urfave.StringFlag{Name: "at", Usage: "open the view of `LINK`, an address copied from the page, or what follows its #"},
			&urfave.StringFlag{Name: "source", Usage: "look for the job's source files in `DIR`"},
			&urfave.DurationFlag{Name: "idle", Value: 8 * time.Hour, Usage: "end when nobody used the page for `TIME`; 0 is never"},
			&urfave.BoolFlag{Name: "recorder", Hidden: true, Usage: "standard input is that of a recorder"},
			&urfave.BoolFlag{Name: "allow-root", Usage: "serve as root: anyone who learns the address reads as root"},
		},
		Action: runServe,
	}
}

func runServe(c *urfave.Context) error {
	path, before, err := served(c)
	if err != nil {
		return err
	}
	switch port := c.Int("port"); {
	case c.IsSet("port") && c.IsSet("socket"):
		return cli.Mistaken(errors.New("--port and --socket exclude each other"))
	case port < 0 || port > 65535:
		return cli.Usagef("--port %d: ports go from 0, any free one, to 65535", port)
	case c.Duration("idle") < 0:
		return cli.Usagef("--idle %s: give a positive time, or 0 for never", c.Duration("idle"))
	}
	if err := leaveRoot(c.Bool("allow-root")); err != nil {
		return err
	}
	options := page.Options{Idle: c.Duration("idle"), Source: c.String("source"), Before: before}
	if path, err = storeOrDataset(path, &options); err != nil {
		return err
	}
	var server *page.Server
	ctx := c.Context
	if c.Bool("recorder") {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		said := fromRecorder(end)
		if server, err = once(ctx, path, options); err == nil {
			go said.to(server)
		}
	} else {
		server, err = page.New(path, options)
	}
	if err != nil {
		return cli.Failed(err)
	}
	defer server.Close()
	listener, host, err := listen(c)
	if err != nil {
		return cli.Failed(err)
	}
	defer listener.Close()
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup does
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	defer stop()
	at := fragment(c.String("at"))
	if c.Bool("recorder") {
		at = "live"
	}
	address := server.Address(host, at)
	fmt.Fprintf(c.App.Writer, "%s\n", address)
	if !c.Bool("recorder") {
		fmt.Fprintf(c.App.ErrWriter, "serving %s; Ctrl-C ends it\n", printable.Text(path))
	}
	if c.IsSet("socket") {
		fmt.Fprintf(c.App.ErrWriter, "on your machine: ssh -L 8080:%s HOST, then open the address there\n",
			printable.Text(listener.Addr().String()))
	}
	if c.Bool("open") {
		remove, err := openBrowser(address)
		defer remove()
		if err != nil {
			fmt.Fprintf(c.App.ErrWriter, "cannot open a browser (%v): open the address yourself\n", err)
		}
	}
	switch err := server.Serve(ctx, listener); {
	case errors.Is(err, page.ErrIdle):
		fmt.Fprintf(c.App.ErrWriter, "ended: nobody used the page for %s (--idle)\n", c.Duration("idle"))
		return nil
	case err != nil:
		return cli.Failed(err)
	}
	return nil
}

// served is the dataset to serve, and of two the one before it, with which it is compared.
func served(c *urfave.Context) (path, before string, err error) {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return "", "", cli.Mistaken(err)
	case len(arguments) > 2:
		return "", "", cli.Usagef("serve shows one dataset, or compares two: %d are too many", len(arguments))
	case len(arguments) == 2:
		return arguments[1], arguments[0], nil
	}
	path, err = answer.PathOrNewest(c)
	return path, "", err
}

// storeOrDataset is the directory that has the tables: of a fleet's store the one with its version.
func storeOrDataset(path string, o *page.Options) (string, error) {
	if store.IsBucket(path) {
		return "", cli.Usagef("serve shows a store in a directory: fleet report %s --format html -o FILE writes a page about a bucket", path)
	}
	tables := filepath.Join(path, store.Version)
	if _, err := os.Stat(filepath.Join(tables, "worker_step")); err != nil {
		return path, nil
	}
	if o.Before != "" {
		return "", cli.Usagef("serve compares two datasets, and %s is a fleet's store: fleet compare answers that", path)
	}
	o.Store = path
	return tables, nil
}

// listen returns the listener and the host that the printed address has.
func listen(c *urfave.Context) (net.Listener, string, error) {
	if path := c.String("socket"); path != "" {
		listener, err := page.ListenSocket(path)
		return listener, "localhost:8080", err
	}
	listener, err := page.Listen(c.Int("port"))
	if err != nil {
		return nil, "", err
	}
	return listener, listener.Addr().String(), nil
}

// fragment is what follows the # of a link; a token in it is another server's.
func fragment(link string) string {
	if _, after, has := strings.Cut(link, "#"); has {
		link = after
	}
	var parts []string
	for part := range strings.SplitSeq(link, "&") {
		if part != "" && !strings.HasPrefix(part, "token=") {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "&")
}
