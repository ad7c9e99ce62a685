package data

import (
	"errors"
	"fmt"
	"os/user"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/annotation"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

const annotateDescription = `Adds a note to a recording, in table annotation of the dataset; without a text it lists the notes. Recorded rows do not
change.

   ebpfprof annotate DATASET 'loader fixed from here on' --at 1250
   ebpfprof annotate DATASET 'suspect' --step 17 --place train.py:88
   ebpfprof annotate DATASET --remove 2`

// AnnotateCommand is `ebpfprof annotate`.
func AnnotateCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "annotate",
		Usage:       "write a note about a recording, or list them",
		ArgsUsage:   "DATASET [TEXT]",
		Description: annotateDescription,
		Flags: []urfave.Flag{
			&urfave.Float64Flag{Name: "at", Usage: "about the moment `MS` milliseconds after the recording's first row"},
			&urfave.Float64Flag{Name: "to", Usage: "with --at: up to `MS`"},
			&urfave.IntFlag{Name: "step", Usage: "about step `N`"},
			&urfave.IntFlag{Name: "rank", Usage: "about `RANK`"},
			&urfave.StringFlag{Name: "place", Usage: "about `FILE:LINE`, an operator or a kernel"},
			&urfave.IntFlag{Name: "remove", Usage: "remove note `N`"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		},
		Action: runAnnotate,
	}
}

func runAnnotate(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(arguments) == 0:
		return cli.Mistaken(errors.New("which dataset? ebpfprof annotate DATASET [TEXT]"))
	case len(arguments) > 2:
		return cli.Mistaken(errors.New("put the note into quotes"))
	case len(arguments) == 2 && c.IsSet("remove"):
		return cli.Mistaken(errors.New("one of TEXT and --remove"))
	case c.IsSet("to") && (!c.IsSet("at") || c.Float64("to") < c.Float64("at")):
		return cli.Mistaken(errors.New("--to needs --at before it"))
	}
	db, err := answer.Open(c, arguments[0])
	if err != nil {
		return err
	}
	defer db.Close()
	switch {
	case c.IsSet("remove"):
		err = annotation.Remove(c.Context, db, int64(c.Int("remove")))
	case len(arguments) == 2:
		err = addNote(c, db, arguments[1])
	default:
		err = listNotes(c, db)
	}
	if err != nil {
		return cli.Failed(err)
	}
	return nil
}

func addNote(c *urfave.Context, db *dataset.DB, text string) error {
	n := annotation.Note{Text: strings.ToValidUTF8(text, "\ufffd")}
	if who, err := user.Current(); err == nil {
		n.Author = who.Username
	}
	if c.IsSet("at") {
		var first int64
		err := db.Row(c.Context, "SELECT coalesce(min(ts), 0)::BIGINT FROM (SELECT min(ts_ns) AS ts FROM span UNION ALL SELECT min(ts_ns) "+
			"FROM sample)", nil, &first)
		if err != nil {
			return err
		}
		n.TSNS = new(first + int64(c.Float64("at")*1e6))
		if c.IsSet("to") {
			n.DurationNS = new(int64((c.Float64("to") - c.Float64("at")) * 1e6))
		}
	}
	if c.IsSet("step") {
		n.Step = new(int64(c.Int("step")))
	}
	if c.IsSet("rank") {
		n.Rank = new(int64(c.Int("rank")))
	}
	if c.IsSet("place") {
		n.Place = new(c.String("place"))
	}
	n, err := annotation.Add(c.Context, db, n)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return answer.JSON(c, n)
	}
	fmt.Fprintf(c.App.Writer, "note %d\n", n.ID)
	return nil
}

func listNotes(c *urfave.Context, db *dataset.DB) error {
	all, err := annotation.List(c.Context, db)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return answer.JSON(c, all)
	}
	if len(all) == 0 {
		fmt.Fprintln(c.App.Writer, "No notes. ebpfprof annotate DATASET 'TEXT' writes one.")
	}
	for _, n := range all {
		about := ""
		if n.TSNS != nil {
			about += ", at " + time.Unix(0, *n.TSNS).UTC().Format("2006-01-02 15:04:05.000000")
		}
		if n.Step != nil {
			about += fmt.Sprintf(", step %d", *n.Step)
		}
		if n.Rank != nil {
			about += fmt.Sprintf(", rank %d", *n.Rank)
		}
		if n.Place != nil {
			about += ", " + *n.Place
		}
		fmt.Fprintf(c.App.Writer, "%3d  %s  (%s%s)\n", n.ID, printable.Text(n.Text), printable.Text(n.Author), printable.Text(about))
	}
	return nil
}
