package data

import (
	"context"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/exchange/merge"
	"github.com/ebpfprof/ebpfprof/internal/version"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// MergeOnDemand merges the trace that a recorded process's own profiler wrote, and says what it found.
func MergeOnDemand(ctx context.Context, dataset, trace string, pid int, redacted bool) (string, error) {
	m, err := merge.Trace(ctx, dataset, trace, merge.Options{ToolVersion: version.Version, Redact: redacted, PID: int32(pid), Method: event.MergedOnDemand})
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
	return text + fmt.Sprintf("; %d of %d rows of devices have their recorded launch", m.Launched, m.DeviceRows)
}

// MergeActivities puts what CUPTI recorded in a job into its recording, and says what it found and what is missing.
func MergeActivities(ctx context.Context, dataset, chunks string, redacted bool) (found, missing []string, err error) {
	all, missing, err := merge.Activities(ctx, dataset, chunks, merge.Options{ToolVersion: version.Version, Redact: redacted, Method: event.MergedCUPTI})
	for _, m := range all {
		found = append(found, activitiesSentence(&m))
	}
	return found, missing, err
}

// activitiesSentence says what CUPTI's records had in common with a recording.
func activitiesSentence(m *event.MergedTrace) string {
	text := fmt.Sprintf("pid %d: %d rows of devices by CUPTI, %d of them with their recorded launch; %d of %d calls that gave the devices work were recorded",
		m.PID, m.DeviceRows, m.Launched, m.Matched, m.Calls)
	if m.OffsetNS != nil {
		text += fmt.Sprintf(", and begin %.1f µs earlier there (%.1f to %.1f)", float64(*m.OffsetNS)/1e3, float64(*m.OffsetLoNS)/1e3, float64(*m.OffsetHiNS)/1e3)
	}
	return text
}
