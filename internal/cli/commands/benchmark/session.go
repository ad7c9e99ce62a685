package benchmark

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/inventory"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/pipeline"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/results"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/store"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/version"
)

// runCases runs benchmarks, keeps what they give and shows it.
func runCases(c *urfave.Context, cases []*pipeline.Case, format string) error {
	for _, one := range cases {
		if err := one.Check(); err != nil {
			return cli.Mistaken(fmt.Errorf("%s: %w", one.Name, err))
		}
		if _, err := regexp.Compile(one.Numbers.LossPattern); err != nil {
			return cli.Mistaken(fmt.Errorf("--loss: %w", err))
		}
	}
	extras, err := extrasOf(c.String("session-extras"))
	if err != nil {
		return err
	}
	record, err := recordLine(c)
	if err != nil {
		return cli.Failed(err)
	}
	s, err := store.Create(c.String("store"))
	if err != nil {
		return cli.Failed(err)
	}
	host, _ := os.Hostname()
	k := &keeper{store: s, session: store.Session{
		ID: store.NewID(time.Now()), Begin: time.Now().UnixNano(), Tool: version.Version, Command: strings.Join(os.Args, " "), Host: host,
		Extras: extras,
	}}
	if err := s.AddSession(k.session); err != nil {
		return cli.Failed(err)
	}
	say := newProgress(c)
	runner := &pipeline.Runner{Record: record, Machine: inventory.Machine(os.DirFS("/"), host, runtime.NumCPU()), Say: say.say,
		Keep: !c.Bool("discard-recordings")}
	with, stop := untilInterrupted(c)
	ended := runner.All(with.Context, cases, policy(c), k.place, k.keep)
	stop()
	say.line.End()
	k.session.End = new(time.Now().UnixNano())
	if err := s.AddSession(k.session); err != nil {
		return cli.Failed(errors.Join(ended, err))
	}
	if len(k.runs) == 0 {
		return cli.Failed(fmt.Errorf("nothing was measured: %w", ended))
	}
	out := results.Of(k.session, k.runs, func(run string) []store.Number { return k.numbers[run] }, s.Root())
	if err := show(c, out, format); err != nil {
		return err
	}
	return conclusion(out, ended)
}

// show writes a session; what people read is made safe for a terminal.
func show(c *urfave.Context, s *results.Session, format string) error {
	err := answer.To(c, func(w io.Writer) error {
		if format != "text" && format != "markdown" {
			return s.Write(w, format)
		}
		var failed error
		return errors.Join(answer.Text(w, func(w io.Writer) { failed = s.Write(w, format) }), failed)
	})
	if err != nil {
		return cli.Failed(fmt.Errorf("writing the results: %w", err))
	}
	return nil
}

// conclusion is the exit code, and what ended the session before its time.
func conclusion(s *results.Session, ended error) error {
	if ended != nil {
		return cli.Failed(ended)
	}
	switch s.Verdict {
	case results.Failed:
		return cli.WithCode(cli.ExitFailed, nil)
	case results.Missed:
		return cli.WithCode(exitMissed, nil)
	case results.Inconclusive:
		return cli.WithCode(exitInconclusive, nil)
	}
	return nil
}

// keeper writes each outcome into the store as soon as it is there.
type keeper struct {
	store   *store.Store
	session store.Session
	runs    []store.Run
	numbers map[string][]store.Number
}

func (k *keeper) place(run string) (string, error) { return k.store.Place(k.session.ID, run) }

func (k *keeper) keep(o *pipeline.Outcome) error {
	run := k.session.ID + ":" + lastElement(o.Place)
	row, rows := results.Rows(k.session.ID, run, o, k.store)
	if k.numbers == nil {
		k.numbers = map[string][]store.Number{}
	}
	k.runs, k.numbers[run] = append(k.runs, row), rows
	return k.store.AddRun(row, rows)
}

func lastElement(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// extrasOf is KEY=VALUE[,…] as JSON.
func extrasOf(text string) (string, error) {
	extras := map[string]string{}
	for _, pair := range split(text) {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return "", cli.Usagef("--session-extras %s: give KEY=VALUE[,…]", text)
		}
		extras[key] = value
	}
	out, err := json.Marshal(extras)
	return string(out), err
}
