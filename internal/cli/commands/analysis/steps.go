package analysis

import (
	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

const stepsDescription = `Finds the steps of the loop without help from the job: the order in which a thread calls the data
loader, backward passes, the optimizer and compiled programs repeats, and each repetition is a step. A step's period
goes to the next one's begin; its duration, from the first of these calls to the end of the last one, leaves out what
lies between.

   ebpfprof steps DATASET
   ebpfprof steps DATASET --json | jq '.processes[0].steps'`

// StepsCommand is `ebpfprof steps`.
func StepsCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "steps",
		Usage:       "find the steps of a recording: how many, how long, which were slow",
		ArgsUsage:   "DATASET",
		Description: stepsDescription,
		Flags: append([]urfave.Flag{
			&urfave.BoolFlag{Name: "save", Usage: "write them to table step of the dataset"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
			answer.RankFlag(),
		}, answer.WindowFlags()...),
		Action: func(c *urfave.Context) error {
			return withSteps(c, func(db *dataset.DB, threads []timeline.Thread) error {
				if c.Bool("save") && db.Part() != (dataset.Part{}) {
					return cli.Usagef("--save writes the steps of the whole recording: omit --rank, --from and --to")
				}
				if c.Bool("save") {
					if err := timeline.Save(db.Root(), threads); err != nil {
						return err
					}
				}
				summary := timeline.Summarize(threads)
				if c.Bool("json") {
					return answer.JSON(c, summary)
				}
				return summary.WriteText(c.App.Writer)
			})
		},
	}
}

// withSteps opens the command's dataset, finds the steps in the part of it that the flags choose
// and hands both on.
func withSteps(c *urfave.Context, then func(*dataset.DB, []timeline.Thread) error) error {
	return withStepsOf(c, answer.Restrict, then)
}

func withStepsOf(c *urfave.Context, restrict func(*urfave.Context, *dataset.DB) error, then func(*dataset.DB,
	[]timeline.Thread) error) error {
	return answer.Ask(c, func(db *dataset.DB) error {
		if err := restrict(c, db); err != nil {
			return err
		}
		line := answer.NewProgress(c)
		line.Say("looking for steps")
		threads, err := timeline.Steps(c.Context, db)
		line.End()
		if err != nil {
			return err
		}
		return then(db, threads)
	})
}
