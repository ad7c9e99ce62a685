package analysis

import (
	"fmt"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/rules"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/query"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

const findingsDescription = `Reports what makes a step longer than it has to be, at which line, and how much a change would save:
each step is replayed with the accused calls replaced, and the headroom is the difference, with a 95 % interval. A finding below the
noise of the recording is not claimed. From fewer than eight steps, findings are claimed from 3 % of a step on, without an interval.
A recording without steps counts as one. The evidence of a finding is a query: --evidence runs it.

   ebpfprof findings DATASET
   ebpfprof findings DATASET --json | jq '.[0]'
   ebpfprof findings --print-thresholds > mine.yaml
   ebpfprof findings DATASET --thresholds mine.yaml

The rules:
`

// findingsHelp is the description with the rules.
func findingsHelp() string {
	var b strings.Builder
	b.WriteString(findingsDescription)
	for _, rule := range rules.All {
		fmt.Fprintf(&b, "\n   %-19s  %s", rule.Name, rule.Title)
	}
	return b.String()
}

// FindingsCommand is `ebpfprof findings`.
func FindingsCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "findings",
		Usage:       "report what to change and how much time it would save",
		ArgsUsage:   "DATASET",
		Description: findingsHelp(),
		Flags: append([]urfave.Flag{
			&urfave.StringFlag{Name: "thresholds", Usage: "override thresholds with those of a YAML `FILE`"},
			&urfave.BoolFlag{Name: "print-thresholds", Usage: "print the default thresholds as such a file"},
			&urfave.Float64Flag{Name: "price", Usage: "say what each headroom is worth a day, at this `PRICE` of a device-hour"},
			&urfave.BoolFlag{Name: "save", Usage: "write them to table finding of the dataset"},
			&urfave.BoolFlag{Name: "evidence", Usage: "run each finding's query and show its rows"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
			answer.RankFlag(),
		}, answer.WindowFlags()...),
		Action: func(c *urfave.Context) error {
			if c.Bool("print-thresholds") {
				return thresholds.Write(c.App.Writer, findings.Thresholds())
			}
			return withStepsOf(c, answer.RestrictWindow, func(db *dataset.DB, threads []timeline.Thread) error {
				return runFindings(c, db, threads)
			})
		},
	}
}

func runFindings(c *urfave.Context, db *dataset.DB, threads []timeline.Thread) error {
	if c.Bool("json") && c.Bool("evidence") {
		return cli.Usagef("one of --json and --evidence: the JSON has the queries")
	}
	if c.Bool("save") && (db.Part() != (dataset.Part{}) || c.IsSet("rank")) {
		return cli.Usagef("--save writes the findings of the whole recording: omit --rank, --from and --to")
	}
	limits := thresholds.Default()
	if path := c.String("thresholds"); path != "" {
		var err error
		if limits, err = thresholds.Read(path, findings.Thresholds()); err != nil {
			return cli.Failed(err)
		}
	}
	of := threads
	if c.IsSet("rank") {
		of = timeline.OfRank(threads, c.Int("rank"))
	}
	line := answer.NewProgress(c)
	line.Say("replaying steps")
	result, err := findingsOf(c, db, threads, of, limits)
	line.End()
	if err != nil {
		return err
	}
	if c.IsSet("price") {
		if c.Float64("price") <= 0 {
			return cli.Usagef("--price is what an hour of one device costs: a number above 0")
		}
		result.Price(c.Float64("price"))
	}
	if c.Bool("save") {
		if err := result.Save(db.Root()); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return answer.JSON(c, append([]findings.Finding{}, result.Findings...))
	}
	if err := result.WriteText(c.App.Writer); err != nil || !c.Bool("evidence") {
		return err
	}
	return writeEvidence(c, db.Root(), result)
}

// findingsOf are those of steps, and of the whole recording if there are none.
func findingsOf(c *urfave.Context, db *dataset.DB, threads, of []timeline.Thread, limits thresholds.Set) (*findings.Result, error) {
	if len(of) > 0 {
		return findings.RunOf(c.Context, db, threads, of, limits)
	}
	var rank *int
	if c.IsSet("rank") {
		n := c.Int("rank")
		if _, err := db.OfRank(c.Context, n); err != nil {
			return nil, err
		}
		rank = &n
	}
	return findings.RunWindow(c.Context, db, rank, limits)
}

// writeEvidence runs the queries as a user would.
func writeEvidence(c *urfave.Context, root string, result *findings.Result) error {
	q, err := query.Open(root)
	if err != nil {
		return err
	}
	defer q.Close()
	for i, f := range result.Findings {
		fmt.Fprintf(c.App.Writer, "\nevidence of %d\n%s\n", i+1, f.EvidenceSQL)
		if err := q.Write(c.Context, c.App.Writer, f.EvidenceSQL, "table"); err != nil {
			return fmt.Errorf("evidence of %s: %w", f.Rule, err)
		}
	}
	return nil
}
