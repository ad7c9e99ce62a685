// Package agent keeps the tracer on a node for years: it finds the jobs that run there
// by the libraries that they map, has one worker process record each of them at level
// anchor, takes a window when a job becomes slow or hangs, and sends patterns to a
// store. It reads no dataset and needs no cgo.
//
// The supervisor (Run) owns the list of jobs and the workers' processes; a worker (package
// worker) owns the sessions of one job. They share nothing but the worker's standard
// input, which has its assignment, and its standard output, a JSON object a line.
package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/worker"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/record/confinement"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/tracer/features"
)

// label makes a label of any name: one bounded line of UTF-8. What is not the name itself
// has its hash, since two jobs with one label would be no exposition.
func label(name string) string {
	shown := printable.Short(name)
	if shown == name {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return shown + "-" + hex.EncodeToString(sum[:4])
}

// Wants says whether the arguments are the agent's own: --config, --check, or those of
// a worker.
func Wants(args []string) bool {
	if len(args) < 2 {
		return false
	}
	name, _, _ := strings.Cut(strings.TrimLeft(args[1], "-"), "=")
	return args[1] == WorkerCommand || strings.HasPrefix(args[1], "-") && (name == "config" || name == "check")
}

// Main runs the agent, or one of its workers, and returns the exit code.
func Main(args []string) int {
	cli.EndWith(cli.ExitNotPermitted, features.ErrNotPermitted)
	cli.EndWith(cli.ExitUnsupported, features.ErrUnsupported)
	if args[1] == WorkerCommand {
		_ = os.WriteFile("/proc/self/comm", []byte("ebpfprof-agent"), 0) // for ps: it was begun as "exe"
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		if err := confinement.Enter(); err != nil { // the unit of systemd has a filter as well
			fmt.Fprintf(os.Stderr, "ebpfprof-agent: a worker goes on without a filter on its own system calls: %v\n", err)
		}
		return say(worker.Run(ctx, os.Stdin, os.Stdout))
	}
	flags := flag.NewFlagSet("ebpfprof-agent", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	path := flags.String("config", "", "")
	check := flags.Bool("check", false, "")
	if err := flags.Parse(args[1:]); err != nil || flags.NArg() > 0 || *path == "" {
		fmt.Fprintln(os.Stderr, "ebpfprof-agent: run it as ebpfprof-agent --config FILE, or with --check to validate the file only")
		return cli.ExitUsage
	}
	return say(Run(*path, *check))
}

func say(err error) int {
	if err == nil {
		return cli.ExitOK
	}
	fmt.Fprintf(os.Stderr, "ebpfprof-agent: %s\n", printable.Lines(err.Error()))
	if errors.Is(err, config.ErrUnusable) {
		return cli.ExitUsage
	}
	return cli.ExitCode(err)
}

// Run is the agent until SIGTERM or SIGINT; SIGHUP reads the configuration again.
func Run(path string, check bool) error {
	told, err := config.Read(path, os.Environ())
	if err != nil {
		return err
	}
	if check {
		fmt.Println("the configuration is sound")
		return nil
	}
	// What would keep every worker from recording is reported once, here.
	for _, can := range []func() error{features.CheckKillSwitch, features.CheckPermitted, features.CheckNamespaces} {
		if err := can(); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	s := newSupervisor(told, log)
	if err := s.sends(); err != nil {
		return err
	}
	if told.Listen != "off" {
		listener, err := net.Listen("tcp", told.Listen)
		if err != nil {
			return fmt.Errorf("listening on %s: %w", told.Listen, err)
		}
		server := newServer(s.handler())
		go func() { _ = server.Serve(limit(listener)) }()
		defer server.Close()
		log.Info("listening", "address", listener.Addr().String())
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	go func() {
		for range hup {
			notify("RELOADING=1")
			again, err := config.Read(path, os.Environ())
			if err != nil {
				log.Error("the configuration stays as it was", "error", err)
			} else {
				s.reload(again)
				log.Info("configuration read again")
			}
			notify("READY=1")
		}
	}()
	notify("READY=1")
	// Until the workers have written their last.
	unsent, sent := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() { sending(unsent, s.sender, log, "the store", "patterns", func() {}) })
	over.Go(func() { s.profiles.sending(unsent, log) })
	s.run(ctx)
	notify("STOPPING=1")
	sent()
	over.Wait()
	return nil
}

// notify tells systemd a state (sd_notify(3)): a datagram to a socket that it names.
func notify(state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	if name[0] == '@' {
		name = "\x00" + name[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(state))
}
