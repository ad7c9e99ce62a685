package analysis

import (
	"errors"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

const criticalPathDescription = `Shows what kept a step from ending earlier: starting from its end, the path follows the longest wait
backwards. Time on the path is exposed, other time is hidden: device activity that overlaps host work, or the reverse. If
several ranks were recorded, the path goes through the last rank to arrive at each collective. The default is the step
of median length, or the whole recording if nothing repeats.

   ebpfprof critical-path DATASET
   ebpfprof critical-path DATASET --step 17 --json | jq '.parts[0]'
   ebpfprof critical-path DATASET --annotation 'ProfilerStep' --instance 1`

// CriticalPathCommand is `ebpfprof critical-path`.
func CriticalPathCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "critical-path",
		Usage:       "show what kept a step from ending earlier",
		ArgsUsage:   "DATASET",
		Description: criticalPathDescription,
		Flags: append([]urfave.Flag{
			&urfave.IntFlag{Name: "step", Value: -1, Usage: "the training step `N`, counted from 0", DefaultText: "median"},
			&urfave.StringFlag{Name: "annotation", Usage: "the scope with `NAME` in its name instead of a step; the whole recording if " +
				"NAME is empty"},
			&urfave.IntFlag{Name: "instance", Usage: "the `N`-th such scope by time, counted from 0"},
			&urfave.IntFlag{Name: "rank", Usage: "only `RANK`, without the ranks that it waits for"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		}, answer.WindowFlags()...),
		Action: func(c *urfave.Context) error {
			return withStepsOf(c, answer.RestrictWindow, func(db *dataset.DB, threads []timeline.Thread) error {
				// The flag may stand behind the dataset, where only withSteps finds it.
				if c.IsSet("step") && c.Int("step") < 0 {
					return cli.Usagef("--step %d: steps count from 0", c.Int("step"))
				}
				if c.IsSet("step") && c.IsSet("annotation") {
					return cli.Mistaken(errors.New("one of --step and --annotation"))
				}
				if c.Int("instance") < 0 {
					return cli.Usagef("--instance %d: instances count from 0", c.Int("instance"))
				}
				thread, step, err := chooseStretch(c, db, threads)
				if err != nil {
					return err
				}
				var path *timeline.CriticalPath
				if !c.IsSet("rank") && step.Name == "" {
					path, err = timeline.PathOverRanks(c.Context, db, threads, thread, step)
				}
				if path == nil && err == nil {
					path, err = timeline.Path(c.Context, db, thread, step)
				}
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return answer.JSON(c, path)
				}
				return path.WriteText(c.App.Writer)
			})
		},
	}
}

// chooseStretch is the step, the scope or, where nothing repeats, the recording that
// the flags are about.
func chooseStretch(c *urfave.Context, db *dataset.DB, threads []timeline.Thread) (timeline.Thread, timeline.Step, error) {
	var rank *int
	if c.IsSet("rank") {
		rank = new(c.Int("rank"))
		threads = timeline.OfRank(threads, *rank)
	}
	if name := c.String("annotation"); name != "" {
		return timeline.Scope(c.Context, db, name, c.Int("instance"), rank)
	}
	if c.IsSet("annotation") || !c.IsSet("step") && len(threads) == 0 {
		return timeline.Recording(c.Context, db, rank)
	}
	return timeline.Choose(threads, c.Int("step"))
}
