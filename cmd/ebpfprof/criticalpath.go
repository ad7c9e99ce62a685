package main

import (
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/timeline"
)

const criticalPathDescription = `Shows what kept a step from ending earlier: from its last end back, always to what was
waited for longest. Time on the path is exposed, time beside it is hidden: work on a device while the host had to go on anyway, or the reverse. Without
--step it is the step of median length.

   ebpfprof critical-path DATASET
   ebpfprof critical-path DATASET --step 17 --json | jq '.parts[0]'`

// criticalPathCommand is `ebpfprof critical-path`.
func criticalPathCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "critical-path",
		Usage:       "show what kept a step from ending earlier",
		ArgsUsage:   "DATASET",
		Description: criticalPathDescription,
		Flags: []urfave.Flag{
			&urfave.IntFlag{Name: "step", Value: -1, Usage: "the training step `N`, counted from 0", DefaultText: "median"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		},
		Action: func(c *urfave.Context) error {
			return withSteps(c, func(db *dataset.DB, threads []timeline.Thread) error {
				// The flag may stand behind the dataset, where only withSteps finds it.
				if c.IsSet("step") && c.Int("step") < 0 {
					return usageError(fmt.Errorf("--step %d: steps count from 0", c.Int("step")))
				}
				thread, step, err := timeline.Choose(threads, c.Int("step"))
				if err != nil {
					return err
				}
				path, err := timeline.Path(c.Context, db, thread, step)
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return writeJSON(c, path)
				}
				return path.WriteText(c.App.Writer)
			})
		},
	}
}
