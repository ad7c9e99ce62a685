package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/exchange/merge"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/version"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const mergeDescription = `Puts what another profiler measured on devices into a recording of the same job and time: a trace of torch.profiler (JSON
of Kineto, also .gz), an export of Nsight Systems (nsys export --type sqlite) or a trace of rocprofv3 (.db, .json). Calls
that both have show how far apart the clocks are; the trace's rows of devices become rows of the recording, launched by the recorded calls. The recording's
files stay as they are: what is added has files of its own, and a trace of another job or time is refused.

   ebpfprof merge run.dataset trace.json.gz && ebpfprof report run.dataset`

// MergeCommand is `ebpfprof merge`.
func MergeCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "merge",
		Usage:       "put the device times of a trace into a recording of the same time",
		ArgsUsage:   "DATASET TRACE",
		Description: mergeDescription,
		Flags: []urfave.Flag{
			&urfave.IntFlag{Name: "pid", Usage: "the trace is of the recorded process `PID`", DefaultText: "the one that it names"},
			&urfave.BoolFlag{Name: "redact", DisableDefaultText: true, Usage: "omit directories and host names, as in a recording made with it"},
			&urfave.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "print the new row of table merged_trace as JSON"},
			&urfave.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only errors"},
		},
		Action: runMerge,
	}
}

func runMerge(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(arguments) != 2:
		return cli.Mistaken(errors.New("which recording and which trace? ebpfprof merge DATASET TRACE"))
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(importMemory))
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	line := answer.NewProgress(c)
	m, err := merge.Trace(ctx, arguments[0], arguments[1], merge.Options{
		ToolVersion: version.Version, Redact: c.Bool("redact"), PID: int32(c.Int("pid")), Method: event.MergedFile,
		Progress: func(part float64) { line.Say("reading %s: %d %%", filepath.Base(arguments[1]), int(100*min(part, 1))) },
	})
	line.End()
	switch {
	case ctx.Err() != nil && err != nil:
		return cli.Failed(errors.New("stopped: nothing was merged"))
	case err != nil:
		return cli.Failed(fmt.Errorf("nothing was merged: %w", err))
	case c.Bool("json"):
		return answer.JSON(c, mergedJSON(m))
	case !c.Bool("quiet"):
		fmt.Fprintln(c.App.Writer, printable.Text(mergedSentence(m)+"."))
		if text := unmatchedSentence(m); text != "" {
			fmt.Fprintln(c.App.Writer, text)
		}
	}
	return nil
}

// mergedJSON is a row of merged_trace by the names of its columns.
func mergedJSON(m *event.MergedTrace) map[string]any {
	return map[string]any{
		"ts_ns": m.StartNS, "end_ns": m.EndNS, "pid": m.PID, "source": m.Source, "method": m.Method, "calls": m.Calls, "matched": m.Matched,
		"other_thread": m.OtherThread, "other_name": m.OtherName, "outside_slices": m.OutsideSlices, "unmatched": m.Unmatched,
		"recorded_only": m.RecordedOnly, "offset_ns": m.OffsetNS, "offset_lo_ns": m.OffsetLoNS, "offset_hi_ns": m.OffsetHiNS,
		"longer_ns": m.LongerNS, "device_rows": m.DeviceRows, "launched": m.Launched,
		"bounds_checked": m.BoundsChecked, "bounds_held": m.BoundsHeld,
	}
}

// unmatchedSentence says why calls of the trace have no partner.
func unmatchedSentence(m *event.MergedTrace) string {
	if m.Matched == m.Calls {
		return ""
	}
	return fmt.Sprintf("Of the others %d have a name that has no probe, %d are on a thread without recorded calls, "+
		"%d lie between slices, %d have another reason.",
		m.OtherName, m.OtherThread, m.OutsideSlices, m.Unmatched)
}

// MergeOnDemand merges the trace that a recorded process's own profiler wrote, and says what it found.
func MergeOnDemand(ctx context.Context, dataset, trace string, pid int, redacted bool) (string, error) {
	m, err := merge.Trace(ctx, dataset, trace, merge.Options{ToolVersion: version.Version, Redact: redacted, PID: int32(pid),
		Method: event.MergedOnDemand})
	if err != nil {
		return "", err
	}
	return mergedSentence(m), nil
}

// mergedSentence says what a trace had in common with a recording.
func mergedSentence(m *event.MergedTrace) string {
	text := fmt.Sprintf("%d of the trace's %d calls in %.2f s are calls of the recording", m.Matched, m.Calls, float64(m.EndNS-m.StartNS)/1e9)
	if m.OffsetNS != nil {
		text += fmt.Sprintf(", which begin %.1f µs earlier (%.1f to %.1f) and take %.1f µs longer",
			float64(*m.OffsetNS)/1e3, float64(*m.OffsetLoNS)/1e3, float64(*m.OffsetHiNS)/1e3, float64(*m.LongerNS)/1e3)
	}
	if m.DeviceRows == 0 {
		return text + "; no work on a device is in it"
	}
	return text + fmt.Sprintf("; %d of %d rows of devices have their recorded launch%s", m.Launched, m.DeviceRows, boundsSentence(m))
}

// boundsSentence says how often the bounds of device times were right, where the trace shows it.
func boundsSentence(m *event.MergedTrace) string {
	if m.BoundsChecked == 0 {
		return ""
	}
	return fmt.Sprintf("; the bounds of %d of %d launches hold", m.BoundsHeld, m.BoundsChecked)
}

// MergeActivities puts what CUPTI recorded in a job into its recording, and says what it found and what is missing.
func MergeActivities(ctx context.Context, dataset, chunks string, redacted bool) (found, missing []string, err error) {
	all, missing, err := merge.Activities(ctx, dataset, chunks, merge.Options{ToolVersion: version.Version, Redact: redacted,
		Method: event.MergedCUPTI})
	for _, m := range all {
		found = append(found, activitiesSentence(&m))
	}
	return found, missing, err
}

// activitiesSentence says what CUPTI's records had in common with a recording.
func activitiesSentence(m *event.MergedTrace) string {
	text := fmt.Sprintf("pid %d: %d rows of devices by CUPTI, %d of them with their recorded launch; %d of %d calls that gave the devices "+
		"work were recorded",
		m.PID, m.DeviceRows, m.Launched, m.Matched, m.Calls)
	if m.OutsideSlices > 0 {
		text += fmt.Sprintf(" (%d lie between slices)", m.OutsideSlices)
	}
	if m.OffsetNS != nil {
		text += fmt.Sprintf("; they begin there %.1f µs after they do for CUPTI (%.1f to %.1f)",
			-float64(*m.OffsetNS)/1e3, -float64(*m.OffsetHiNS)/1e3, -float64(*m.OffsetLoNS)/1e3)
	}
	return text
}
