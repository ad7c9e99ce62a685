package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/fleet/evidence"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// isStore tells a store from a dataset: a bucket, or a directory that has the store's version.
func isStore(location string) bool {
	if store.IsBucket(location) {
		return true
	}
	info, err := os.Stat(filepath.Join(location, store.Version))
	return err == nil && info.IsDir()
}

// runStoredHang says what agents have found.
func runStoredHang(c *urfave.Context, location string) error {
	if c.String("dump") != "" {
		return cli.Mistaken(errors.New("--dump needs a recording: the dumps of hangs that agents detected are in their spools; the " +
			"answer lists them"))
	}
	db, closing, err := openStore(c, location, c.Duration("since"))
	if err != nil {
		return err
	}
	defer closing()
	job := c.String("job")
	if job == "" {
		if job, err = evidence.LastJob(c.Context, db); err != nil {
			return cli.Failed(err)
		}
	}
	now := time.Now()
	const ahead = time.Hour // of a node whose clock is
	found, err := evidence.Incidents(c.Context, db, job, now.Add(-c.Duration("since")).UnixNano(), now.Add(ahead).UnixNano())
	if err != nil {
		return cli.Failed(err)
	}
	if found == nil {
		found = []evidence.Incident{}
	}
	if c.Bool("json") {
		err = answer.JSON(c, struct {
			Job       string              `json:"job"`
			Incidents []evidence.Incident `json:"incidents"`
		}{job, found})
	} else {
		err = writeIncidents(c, job, found)
	}
	if err != nil {
		return cli.Failed(fmt.Errorf("writing the answer: %w", err))
	}
	return nil
}

// writeIncidents writes the last one in full, and of those before a line.
func writeIncidents(c *urfave.Context, job string, found []evidence.Incident) error {
	out := c.App.Writer
	if len(found) == 0 {
		of := "no agent has detected blocked ranks"
		if job != "" {
			of += ", of job " + printable.Short(job)
		}
		_, err := fmt.Fprintf(out, "%s, in the last %s\n", of, c.Duration("since"))
		return err
	}
	last := &found[0]
	state := "no step of it was seen since"
	if last.StepsAfter {
		state = "it has made steps since"
	}
	fmt.Fprintf(out, "job %s was blocked from %s on, as the agents of %s said at %s; %s\n", printable.Short(job), moment(last.SinceNS),
		printable.Text(strings.Join(last.Hosts, ", ")), moment(last.AtNS), state)
	fmt.Fprintf(out, "%s\n\n", printable.Text(last.Sentence))
	if len(last.Report.Groups) > 0 || last.Report.Unseen != nil {
		if err := last.Report.WriteText(out); err != nil {
			return err
		}
	}
	for _, dump := range last.Dumps {
		fmt.Fprintf(out, "dumps of the flight recorder's format: %s\n", printable.Text(dump))
	}
	for _, in := range found[1:] {
		fmt.Fprintf(out, "before: from %s on: %s\n", moment(in.SinceNS), printable.Text(in.Sentence))
	}
	return nil
}

func moment(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05Z") }
