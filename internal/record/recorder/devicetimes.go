package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/record/injection"
	"github.com/ebpfprof/ebpfprof/internal/record/ondemand"
	"github.com/ebpfprof/ebpfprof/internal/redact"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/version"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Values of --device-times.
const (
	deviceTimesBounds   = "bounds"
	deviceTimesProfiler = "profiler"
	deviceTimesCUPTI    = "cupti"
)

// deviceTimesFlag is the flag; more is what only one of the commands can do.
func deviceTimesFlag(more string) urfave.Flag {
	return &urfave.StringFlag{Name: "device-times", Value: deviceTimesBounds,
		Usage: "where device times come from (`HOW`): bounds, the host's calls alone; " +
			"profiler, a trace of one second by the job's own PyTorch profiler" + more}
}

// runsCUPTI is what only run can do.
const runsCUPTI = "; cupti, NVIDIA's CUPTI in the job, by a library of ebpfprof's that CUDA loads"

// checkDeviceTimes refuses other values, and what this build or command cannot do.
func (r *recorder) checkDeviceTimes(value string, starts bool) error {
	r.deviceTimes = value
	switch value {
	case deviceTimesBounds:
		return nil
	case deviceTimesProfiler, deviceTimesCUPTI:
		if r.reading.Merge == nil || r.reading.MergeActivities == nil {
			return cli.Usagef("--device-times %s: this program does not read datasets; record with ebpfprof", value)
		}
	default:
		return cli.Usagef("--device-times %q: choose %s, %s or, of run, %s", value, deviceTimesBounds, deviceTimesProfiler, deviceTimesCUPTI)
	}
	if value == deviceTimesProfiler {
		return nil
	}
	if !starts {
		return cli.Usagef("--device-times cupti: the CUDA driver loads the library when a process begins with CUDA; start the job with " +
			"ebpfprof run")
	}
	if err := injection.Available(); err != nil {
		return cli.Mistaken(fmt.Errorf("--device-times cupti: %w", err))
	}
	return nil
}

// Merge merges the trace of a process's own profiler into a dataset that is complete, and says in a sentence what it found.
type Merge func(ctx context.Context, dataset, trace string, pid int, redact bool) (string, error)

// mostMerging bounds the reading of one trace.
const mostMerging = 3 * time.Minute

// asking is the job's profiler being asked for a trace; nil of a recording that has bounds alone.
type asking struct {
	daemon *ondemand.Daemon
	err    error
}

func (r *recorder) ask(job *job) *asking {
	if r.deviceTimes != deviceTimesProfiler {
		return nil
	}
	targets := r.options.PIDs
	if job != nil {
		targets = []int{job.command.Process.Pid}
	}
	options := ondemand.DefaultOptions(targets)
	if !r.quiet && !r.json {
		options.Told = func(sentence string) { fmt.Fprintln(os.Stderr, sentence) }
	}
	d, err := ondemand.Start(options)
	return &asking{d, err}
}

// finish waits for the traces under way; a signal ends the waiting.
func (a *asking) finish() ondemand.Result {
	switch {
	case a == nil:
		return ondemand.Result{}
	case errors.Is(a.err, ondemand.ErrNameTaken):
		return ondemand.Result{Refused: []string{fmt.Sprintf("no device times: %v (its name, dynolog, is taken): have that daemon write a trace "+
			"(dyno gputrace), and read it with ebpfprof import", a.err)}}
	case a.err != nil:
		return ondemand.Result{Refused: []string{fmt.Sprintf("no device times: %v", a.err)}}
	}
	ctx, stop := untilSignal(context.Background(), nil)
	defer stop()
	return a.daemon.Finish(ctx)
}

// merge merges the traces into the dataset, which is closed by now, and says what became of them.
func (r *recorder) merge(traces ondemand.Result, recording event.Recording) {
	sentences := traces.Refused
	for _, t := range traces.Traces {
		if t.Err != nil {
			sentences = append(sentences, fmt.Sprintf("no device times of pid %d: %v", t.PID, t.Err))
			continue
		}
		sentence, err := r.mergeOne(t)
		switch {
		case err != nil:
			sentences = append(sentences, fmt.Sprintf("no device times of pid %d: %v", t.PID, err))
		case !r.quiet && !r.json:
			fmt.Fprintf(os.Stderr, "device times of pid %d: %s\n", t.PID, printable.Text(sentence))
		}
	}
	var warnings []event.Warning
	for _, s := range sentences {
		fmt.Fprintf(os.Stderr, "warning: %s\n", printable.Text(s))
		warnings = append(warnings, event.Warning{TSNS: recording.StartedNS, Kind: "device_times", Source: deviceTimesProfiler, Count: 1,
			Detail: s})
	}
	if len(warnings) == 0 {
		return
	}
	if err := r.warnLater(recording, warnings); err != nil {
		fmt.Fprintf(os.Stderr, "warning: %s\n", printable.Text(err.Error()))
	}
}

// warnLater adds warnings to the dataset, which is closed by now. They name files: a redacted recording has no directories.
func (r *recorder) warnLater(recording event.Recording, warnings []event.Warning) error {
	if r.redact {
		for n := range warnings {
			warnings[n].Detail = redact.Text(warnings[n].Detail)
		}
	}
	return output.Append(r.output, recording.ID, version.Version, &event.Batch{Warnings: warnings})
}

func (r *recorder) mergeOne(t ondemand.Trace) (string, error) {
	ctx, stop := untilSignal(context.Background(), nil)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, mostMerging)
	defer cancel()
	return r.reading.Merge(ctx, r.output, t.File, t.PID, r.redact)
}

// askedEnvironment is what a command is started with so that its profiler asks, or that CUPTI is asked.
func (r *recorder) askedEnvironment() []string {
	switch {
	case r.deviceTimes == deviceTimesProfiler:
		return []string{process.DaemonVariable + "=1"}
	case r.injecting != nil:
		return []string{injection.Variable + "=" + r.injecting.library.Path}
	}
	return nil
}
