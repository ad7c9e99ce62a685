package answer

import (
	"errors"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// RankFlag chooses a rank.
func RankFlag() urfave.Flag {
	return &urfave.IntFlag{Name: "rank", Usage: "only the process of `RANK`", DefaultText: "all"}
}

// WindowFlags choose a stretch of the recording.
func WindowFlags() []urfave.Flag {
	return []urfave.Flag{
		&urfave.Float64Flag{Name: "from", Usage: "only rows that begin at `MS` milliseconds of the recording or later", DefaultText: "its begin"},
		&urfave.Float64Flag{Name: "to", Usage: "only rows that begin before `MS` milliseconds of the recording", DefaultText: "its end"},
	}
}

// StepFlag chooses the stretch of a step.
func StepFlag() urfave.Flag {
	return &urfave.IntFlag{Name: "step", Usage: "only the period of the training step `N`, counted from 0", DefaultText: "all"}
}

// PartFlags are all of these.
func PartFlags() []urfave.Flag {
	return append([]urfave.Flag{RankFlag(), StepFlag()}, WindowFlags()...)
}

// CheckPart finds what cannot be meant.
func CheckPart(c *urfave.Context) error {
	switch {
	case c.IsSet("step") && (c.IsSet("from") || c.IsSet("to")):
		return cli.Mistaken(errors.New("--step selects an interval itself: omit --from and --to"))
	case c.IsSet("step") && c.Int("step") < 0:
		return cli.Usagef("--step %d: steps count from 0", c.Int("step"))
	case c.IsSet("from") && c.Float64("from") < 0:
		return cli.Usagef("--from %v: milliseconds count from the recording's first row", c.Float64("from"))
	case c.IsSet("from") && c.IsSet("to") && c.Float64("from") >= c.Float64("to"):
		return cli.Mistaken(errors.New("--from is not before --to"))
	}
	return nil
}

// Restrict leaves out of a dataset what the flags do not choose.
func Restrict(c *urfave.Context, db *dataset.DB) error {
	var part dataset.Part
	if c.IsSet("rank") {
		part.Rank = new(c.Int("rank"))
	}
	return restrict(c, db, part, c.IsSet("step"))
}

// RestrictWindow is Restrict by --from and --to alone: for commands that take rank and step for
// what they look at beside the others.
func RestrictWindow(c *urfave.Context, db *dataset.DB) error {
	return restrict(c, db, dataset.Part{}, false)
}

func restrict(c *urfave.Context, db *dataset.DB, part dataset.Part, step bool) error {
	if err := CheckPart(c); err != nil {
		return err
	}
	switch {
	case step:
		threads, err := timeline.Steps(c.Context, db)
		if err != nil {
			return err
		}
		if part.Rank != nil {
			threads = timeline.OfRank(threads, *part.Rank)
		}
		_, step, err := timeline.Choose(threads, c.Int("step"))
		if err != nil {
			return err
		}
		part.From, part.Until = step.Begin, step.Until()
	case c.IsSet("from") || c.IsSet("to"):
		var first int64
		if err := db.Row(c.Context, "SELECT coalesce(min(ts), 0)::BIGINT FROM (SELECT min(ts_ns) AS ts FROM span UNION ALL SELECT min(ts_ns) "+
			"FROM sample)", nil, &first); err != nil {
			return err
		}
		if c.IsSet("from") {
			part.From = first + int64(c.Float64("from")*1e6)
		}
		if c.IsSet("to") {
			part.Until = max(first+int64(c.Float64("to")*1e6), 1)
		}
	case part.Rank == nil:
		return nil
	}
	if err := db.Restrict(c.Context, part); err != nil {
		return err
	}
	return nothingThere(c, db)
}

// nothingThere says so where the flags choose no row at all.
func nothingThere(c *urfave.Context, db *dataset.DB) error {
	var any bool
	if err := db.Row(c.Context, "SELECT EXISTS (FROM span) OR EXISTS (FROM sample) OR EXISTS (FROM memory)", nil, &any); err != nil || any {
		return err
	}
	return errors.New("nothing was recorded in the part that --rank, --step, --from and --to select")
}
