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
