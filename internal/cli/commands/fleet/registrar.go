package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/fleet/registrar"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

const registrarDescription = `Maintains a store: merges the small files of a job and day, and removes files past their retention. Nothing else
removes files from a store. It may be killed at any time and run twice at once; concurrent reports see each row once.

   ebpfprof fleet registrar /shared/patterns --every 1h
   ebpfprof fleet registrar s3://profiles/fleet?endpoint=https://storage.example.com --keep-days 30
   ebpfprof fleet registrar /shared/patterns --dry-run`

func registrarCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "registrar",
		Usage:       "merge a store's small files, remove its old ones",
		ArgsUsage:   "STORE",
		Description: registrarDescription,
		Flags: []urfave.Flag{
			&urfave.DurationFlag{Name: "every", Usage: "repeat every `TIME`", DefaultText: "one pass"},
			&urfave.IntFlag{Name: "keep-days", Value: registrar.DefaultDays, Usage: "keep patterns, steps and uploads for `N` days; 0 for ever"},
			&urfave.DurationFlag{Name: "grace", Value: registrar.DefaultGrace, Usage: "keep merged files for `TIME`, for running reports"},
			&urfave.IntFlag{Name: "least", Value: registrar.DefaultLeast, Usage: "merge if a job and day has at least `N` files"},
			&urfave.BoolFlag{Name: "iceberg", Usage: "create an Apache Iceberg table for each table of the store, and maintain it from then on"},
			&urfave.BoolFlag{Name: "dry-run", Usage: "print what a pass would do, and do nothing"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON, a line a pass"},
		},
		OnUsageError: func(_ *urfave.Context, err error, _ bool) error { return cli.Mistaken(err) },
		Action:       runRegistrar,
	}
}

func runRegistrar(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(arguments) != 1:
		return cli.Mistaken(errors.New("which store? ebpfprof fleet registrar STORE"))
	case c.Int("keep-days") < 0 || c.Duration("grace") < 0 || c.Duration("every") < 0:
		return cli.Mistaken(errors.New("--keep-days, --grace and --every: give nothing below 0"))
	case c.Int("least") < 2:
		return cli.Mistaken(errors.New("--least: it takes 2 files to merge them"))
	}
	options := registrar.Options{Least: c.Int("least"), Target: registrar.DefaultTarget, Grace: c.Duration("grace"),
		Days: c.Int("keep-days"), Iceberg: c.Bool("iceberg"), DryRun: c.Bool("dry-run"), Now: time.Now}
	for {
		err := onePass(c, arguments[0], options)
		if c.Duration("every") == 0 {
			return err
		}
		if err != nil {
			fmt.Fprintln(c.App.ErrWriter, "ebpfprof: "+printable.Text(err.Error())) // and the next pass tries again
		}
		select {
		case <-c.Context.Done():
			return nil
		case <-time.After(c.Duration("every")):
		}
	}
}

// onePass opens the store each time: agents may not have sent anything to it yet, which is
// no failure of who keeps it in order.
func onePass(c *urfave.Context, location string, o registrar.Options) error {
	s, err := store.Open(c.Context, location)
	if errors.Is(err, store.ErrNothingYet) {
		if c.Bool("json") {
			return writeLine(c, registrar.Result{Notes: []string{err.Error()}})
		}
		fmt.Fprintln(c.App.Writer, printable.Text(err.Error()))
		return nil
	}
	if err != nil {
		return cli.Failed(err)
	}
	keeper, ok := s.(registrar.Store)
	if !ok {
		return cli.Failed(fmt.Errorf("%s cannot be maintained", s))
	}
	r, err := registrar.Pass(c.Context, keeper, o)
	if r != nil {
		if c.Bool("json") {
			err = errors.Join(err, writeLine(c, r))
		} else {
			for _, note := range r.Notes {
				fmt.Fprintln(c.App.ErrWriter, "ebpfprof: "+printable.Text(note))
			}
			fmt.Fprintln(c.App.Writer, r.Sentence(o.DryRun))
		}
	}
	if err != nil {
		return cli.Failed(fmt.Errorf("maintaining %s: %w", s, err))
	}
	return nil
}

// writeLine writes one value as a line of JSON.
func writeLine(c *urfave.Context, value any) error {
	encoder := json.NewEncoder(printable.JSON(c.App.Writer))
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
