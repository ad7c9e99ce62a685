package recorder

import (
	"context"
	"fmt"
	"os"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/record/injection"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/tracer/activity"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// MergeActivities puts what CUPTI recorded in a job, which is in a file, into a dataset that is complete, and says in
// sentences what it found, and what is missing.
type MergeActivities func(ctx context.Context, dataset, chunks string, redact bool) (found, missing []string, err error)

// mostActivities bounds what is kept of CUPTI's records until the end of the recording, in bytes.
const mostActivities = 4 << 30

// costOfCUPTI is a warning of each recording that CUPTI took part in.
const costOfCUPTI = "CUPTI worked in the job at each call that gave a device work: steps are longer than without it, and that " +
	"time is not in overhead_percent; to learn how much, record without --device-times cupti and compare the steps"

// injecting is CUPTI being asked in a command by a library of ours; nil of a recording that has bounds alone.
type injecting struct {
	library *injection.Library
	taker   *activity.Taker
	chunks  *os.File
}

// inject prepares the library for a command: before it is started.
func (r *recorder) inject() (err error) {
	if r.deviceTimes != deviceTimesCUPTI {
		return nil
	}
	if by := os.Getenv(injection.Variable); by != "" {
		return cli.Usagef("--device-times cupti: %s is set already, to %s: one profiler can be there", injection.Variable, by)
	}
	r.injecting = &injecting{}
	if r.injecting.library, err = injection.Install(); err != nil {
		r.injecting = nil
		return fmt.Errorf("--device-times cupti: %w", err)
	}
	return nil
}

// start takes over what the library hands over: before the command begins.
func (i *injecting) start() (err error) {
	if i == nil {
		return nil
	}
	if i.chunks, err = os.CreateTemp("", "ebpfprof-cupti-records-"); err != nil {
		return fmt.Errorf("--device-times cupti: %w", err)
	}
	if i.taker, err = activity.Start(i.library.Path, i.chunks, mostActivities); err != nil {
		return fmt.Errorf("--device-times cupti: %w", err)
	}
	return nil
}

// remove removes what is on disk. Processes that load the library later go on without it.
func (i *injecting) remove() {
	if i == nil {
		return
	}
	if i.taker != nil {
		i.taker.Stop()
	}
	if i.chunks != nil {
		os.Remove(i.chunks.Name())
		i.chunks.Close()
	}
	if err := i.library.Remove(); err != nil {
		fmt.Fprintf(os.Stderr, "warning: %s\n", printable.Text(err.Error()))
	}
}

// stop ends the taking over, and says what of it was lost.
func (i *injecting) stop() (lost []event.Warning) {
	if i == nil {
		return nil
	}
	taken, err := i.taker.Stop()
	i.taker = nil
	if err != nil {
		lost = append(lost, event.Warning{Source: "cupti", Count: 1, Detail: err.Error()})
	}
	for _, w := range []event.Warning{
		{Source: "cupti_full", Count: int64(taken.Full),
			Detail: "chunks of CUPTI's records found no room in the kernel's buffer: rows of devices are missing"},
		{Source: "cupti_limit", Count: int64(taken.OverLimit),
			Detail: fmt.Sprintf("chunks of CUPTI's records came after %d GiB of them: rows of devices are missing", mostActivities>>30)},
		{Source: "cupti_unreadable", Count: int64(taken.Unreadable),
			Detail: "chunks of CUPTI's records could not be read in the job's memory"},
		{Source: "cupti_length", Count: int64(taken.Length), Detail: "chunks of CUPTI's records had a length that none has"},
	} {
		if w.Count > 0 {
			lost = append(lost, w)
		}
	}
	return lost
}

// mergeActivities puts the records into the dataset, which is closed by now, and reports whether CUPTI recorded in the job.
func (r *recorder) mergeActivities(lost []event.Warning, recording event.Recording) (beside bool) {
	i := r.injecting
	if i == nil {
		return false
	}
	for _, w := range lost {
		fmt.Fprintf(os.Stderr, "warning: %d %s\n", w.Count, printable.Text(w.Detail))
	}
	ctx, stop := untilSignal(context.Background(), nil)
	defer stop()
	found, missing, err := r.reading.MergeActivities(ctx, r.output, i.chunks.Name(), r.redact)
	if err != nil {
		missing = append(missing, fmt.Sprintf("no device times: %v", err))
	}
	if len(found)+len(missing) == 0 {
		missing = append(missing, "no device times: the CUDA driver loaded the library in no process of the command: "+
			"did it use CUDA, and is its environment kept?")
	}
	for _, s := range found {
		if !r.quiet && !r.json {
			fmt.Fprintf(os.Stderr, "device times of %s\n", printable.Text(s))
		}
	}
	for _, s := range missing {
		fmt.Fprintf(os.Stderr, "warning: %s\n", printable.Text(s))
		lost = append(lost, event.Warning{Kind: "device_times", Source: deviceTimesCUPTI, Count: 1, Detail: s})
	}
	for n := range lost {
		lost[n].TSNS = recording.StartedNS
		if lost[n].Kind == "" {
			lost[n].Kind = "lost"
		}
	}
	if beside = len(found) > 0; beside {
		lost = append(lost, event.Warning{TSNS: recording.StartedNS, Kind: "cost", Source: deviceTimesCUPTI, Count: 1, Detail: costOfCUPTI})
	}
	if len(lost) == 0 {
		return beside
	}
	if err := r.warnLater(recording, lost); err != nil {
		fmt.Fprintf(os.Stderr, "warning: %s\n", printable.Text(err.Error()))
	}
	return beside
}
