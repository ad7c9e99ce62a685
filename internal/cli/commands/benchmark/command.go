// Package benchmark is `ebpfprof bench`: it runs unmodified jobs under the recorder, reads their numbers, keeps them in a
// store and compares them.
package benchmark

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/numbers"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/pipeline"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/results"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/suite"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
)

// Exit codes: those of diff, since they mean the same.
const (
	exitMissed       = 10
	exitInconclusive = 12
)

const defaultStore = "ebpfprof-bench"

const description = `The job is not changed: throughput, epoch length, communication, IO and loss are read from a recording of it. Each number
has an interval, over the steps of one run, over the runs with --repeat. What is not available says why.

   ebpfprof bench -- python train.py
   ebpfprof bench --repeat 5 --warmup 1 -- python train.py
   ebpfprof bench suite.yaml --dry-run

Results are kept in a store (--store), from which they can be listed and compared.

Exit codes: 0 the references held, or there are none; 10 a reference is missed; 12 inconclusive: an interval reaches
over a bound; 1 a run failed; 2 usage.`

// Command is `ebpfprof bench`. A build that cannot record shows and compares what others recorded.
func Command(records bool) *urfave.Command {
	cli.CompleteValues("bench format", results.Formats)
	return &urfave.Command{
		Name:  "bench",
		Usage: "benchmark an unmodified job: throughput, epoch length, communication, IO, loss",
		UsageText: "ebpfprof bench [--repeat 5] [--warmup 1] [--batch 64] -- COMMAND [ARGUMENT …]\nebpfprof bench SUITE.yaml [--system " +
			"S] [--only NAME] [--dry-run | --describe]",
		Description:     description,
		Flags:           flags(),
		HideHelpCommand: true,
		Subcommands:     []*urfave.Command{compareCommand(), listCommand(), showCommand(), trendCommand(), deleteCommand(), numbersCommand()},
		Action: func(c *urfave.Context) error {
			if !records {
				return cli.Usagef("this build reads only: it cannot run benchmarks; its subcommands show and compare them")
			}
			return run(c)
		},
	}
}

func flags() []urfave.Flag {
	return append([]urfave.Flag{
		&urfave.IntFlag{Name: "repeat", Value: 1, Usage: "run the job `N` times"},
		&urfave.IntFlag{Name: "warmup", Usage: "run it `N` times before, which do not count"},
		&urfave.IntFlag{Name: "reruns", Usage: "run everything `N` times more"},
		&urfave.DurationFlag{Name: "duration", Usage: "run everything again until `TIME` has passed", DefaultText: "once"},
		&urfave.IntFlag{Name: "max-retries", Usage: "try a run that fails up to `N` times more"},
		&urfave.IntFlag{Name: "max-failures", Usage: "start nothing more after `N` failures", DefaultText: "no limit"},
		&urfave.DurationFlag{Name: "time-limit", Usage: "end a run that takes longer than `TIME`; it counts as failed", DefaultText: "none"},
		&urfave.StringFlag{Name: "system", Usage: "of a suite: run as `SYSTEM[:PARTITION]`", DefaultText: "the one whose hosts match"},
		&urfave.StringFlag{Name: "only", Usage: "of a suite: only benchmarks whose names match `REGEX`"},
		&urfave.BoolFlag{Name: "dry-run", Usage: "of a suite: print what each stage would do, and run nothing"},
		&urfave.BoolFlag{Name: "describe", Usage: "of a suite: print its benchmarks as JSON, and run nothing"},
		&urfave.StringFlag{Name: "store", Value: defaultStore, Usage: "keep results in `DIR`"},
		&urfave.BoolFlag{Name: "discard-recordings", Usage: "keep the numbers only, not the recordings"},
		&urfave.StringFlag{Name: "level", Value: "window", Usage: "how much to record, as in run"},
		&urfave.StringFlag{Name: "budget", Usage: "the `SHARE` of the job's time that the recording may take, as in run",
			DefaultText: "that of run"},
		&urfave.StringFlag{Name: "session-extras", Usage: "keep `KEY=VALUE[,…]` with the session, to select it by"},
		&urfave.StringFlag{Name: "format", Value: "text", Usage: strings.Join(results.Formats(), ", ")},
		&urfave.BoolFlag{Name: "json", Usage: "the same as --format json"},
		&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE` (default: standard output)"},
		&urfave.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress"},
	}, measureFlags()...)
}

// run is `ebpfprof bench -- COMMAND` and `ebpfprof bench SUITE.yaml`.
func run(c *urfave.Context) error {
	arguments := c.Args().Slice()
	suite := len(arguments) > 0 && isSuite(arguments[0])
	if suite {
		var err error
		if arguments, err = cli.Interspersed(c); err != nil {
			return cli.Mistaken(err)
		}
	}
	format, err := answer.Format(c, results.Formats())
	if err != nil {
		return err
	}
	if err := checkFlags(c); err != nil {
		return err
	}
	switch {
	case len(arguments) == 0:
		return cli.Usagef("give the command to benchmark: ebpfprof bench -- COMMAND, or a suite: ebpfprof bench SUITE.yaml")
	case suite && len(arguments) > 1:
		return cli.Usagef("one suite at a time: %q is one too many", arguments[1])
	case suite:
		return runSuite(c, arguments[0], format)
	}
	for _, name := range []string{"system", "only", "dry-run", "describe"} {
		if c.IsSet(name) {
			return cli.Usagef("--%s is for suites: ebpfprof bench SUITE.yaml --%s", name, name)
		}
	}
	return runCases(c, []*pipeline.Case{commandCase(c, arguments)}, format)
}

// isSuite says whether the argument is a file of benchmarks and not a command.
func isSuite(argument string) bool {
	return strings.HasSuffix(argument, ".yaml") || strings.HasSuffix(argument, ".yml")
}

// runSuite runs, or only shows, what a suite has for this machine.
func runSuite(c *urfave.Context, path, format string) error {
	s, err := suite.Read(path)
	if err != nil {
		return cli.Mistaken(err)
	}
	host, _ := os.Hostname()
	choice := suite.Choice{Host: host, System: c.String("system")}
	if only := c.String("only"); only != "" {
		if choice.Only, err = regexp.Compile(only); err != nil {
			return cli.Usagef("--only: %v", err)
		}
	}
	cases, err := s.Cases(choice)
	if err != nil {
		return cli.Mistaken(fmt.Errorf("%s: %w", path, err))
	}
	for _, one := range cases {
		overridden(c, one)
	}
	switch {
	case c.Bool("describe"):
		return suite.Describe(c.App.Writer, cases)
	case c.Bool("dry-run"):
		record, err := recordLine(c)
		if err != nil {
			return cli.Failed(err)
		}
		return answer.Text(c.App.Writer, func(w io.Writer) { suite.DryRun(w, cases, record) })
	}
	return runCases(c, cases, format)
}

// overridden are the flags that win over a suite.
func overridden(c *urfave.Context, one *pipeline.Case) {
	if c.IsSet("time-limit") {
		one.TimeLimit = c.Duration("time-limit")
	}
	if c.IsSet("batch") {
		one.Numbers.Batch = c.Int("batch")
	}
	if c.IsSet("steps-per-epoch") {
		one.Numbers.StepsPerEpoch = c.Int("steps-per-epoch")
	}
	if c.IsSet("loss") {
		one.Numbers.LossPattern = c.String("loss")
	}
}

// checkFlags finds numbers that cannot be meant.
func checkFlags(c *urfave.Context) error {
	for _, name := range []string{"repeat", "warmup", "reruns", "max-retries", "max-failures", "batch", "steps-per-epoch"} {
		if c.Int(name) < 0 || name == "repeat" && c.Int(name) == 0 {
			return cli.Usagef("--%s %d: give a positive number", name, c.Int(name))
		}
	}
	if c.Duration("duration") < 0 || c.Duration("time-limit") < 0 {
		return cli.Mistaken(errors.New("a time is not negative"))
	}
	if c.IsSet("duration") && c.IsSet("reruns") {
		return cli.Mistaken(errors.New("one of --duration and --reruns"))
	}
	return nil
}

// commandCase is a benchmark of a command without a suite. It is named after the script, which says more than python.
func commandCase(c *urfave.Context, arguments []string) *pipeline.Case {
	name := filepath.Base(arguments[0])
	for _, a := range arguments[1:] {
		if strings.HasSuffix(a, ".py") {
			name = filepath.Base(a)
			break
		}
	}
	return &pipeline.Case{
		Name: name, Base: name, System: "generic", Partition: "default", Environ: "builtin", Command: arguments,
		TimeLimit: c.Duration("time-limit"), Numbers: options(c),
	}
}

func options(c *urfave.Context) numbers.Options {
	return numbers.Options{Batch: c.Int("batch"), StepsPerEpoch: c.Int("steps-per-epoch"), LossPattern: c.String("loss")}
}

func policy(c *urfave.Context) pipeline.Policy {
	return pipeline.Policy{Warmup: c.Int("warmup"), Repeat: c.Int("repeat"), Reruns: c.Int("reruns"), Duration: c.Duration("duration"),
		MaxRetries: c.Int("max-retries"), MaxFailures: c.Int("max-failures")}
}

// recordLine is how this program records a job.
func recordLine(c *urfave.Context) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	line := []string{self, "run", "--json", "--no-verdict", "--level", c.String("level"), "--output", pipeline.OutputPlace}
	if c.IsSet("budget") {
		line = append(line, "--budget", c.String("budget"))
	}
	return append(line, "--"), nil
}

// untilInterrupted ends with Ctrl-C or SIGTERM: the run that is under way is ended and the results so far are shown.
func untilInterrupted(c *urfave.Context) (*urfave.Context, func()) {
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	with := *c
	with.Context = ctx
	return &with, stop
}

// progress says what happens now, on a terminal's line.
type progress struct {
	line  *answer.Progress
	what  string
	began time.Time
}

func newProgress(c *urfave.Context) *progress {
	return &progress{line: answer.NewProgress(c), began: time.Now()}
}

// say keeps which benchmark it is about: what has a comma names one, the rest is a stage.
func (p *progress) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.Contains(text, ", ") {
		p.what = text
	} else {
		text = p.what + ": " + text
	}
	p.line.Say("%s", text)
}
