// Package merge puts what another profiler measured into a recording of the same time: the rows of devices of its trace
// become rows of the recording, launched by the recording's own calls. The calls of the host, which both have, show how
// far apart the clocks are; they are compared, counted and not stored twice.
package merge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/exchange/importer"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

var (
	// ErrNothingInCommon: no call of the trace is one of the recording.
	ErrNothingInCommon = errors.New("the trace and the recording have no call in common")
	// ErrNotRecorded: the dataset was imported, so that there is no recording to put anything into.
	ErrNotRecorded = errors.New("the dataset is no recording of ebpfprof but an import: ebpfprof import reads several traces into one dataset")
	// ErrMerged: a trace of that process and time was merged before.
	ErrMerged = errors.New("a trace of this process and time was merged before")
)

// Options of Trace.
type Options struct {
	ToolVersion string
	Redact      bool
	// PID is the recorded process that the trace is of; 0: the one that it can be of.
	PID int32
	// Method is how the trace came: event.MergedOnDemand or event.MergedFile.
	Method string
	// Progress is called with how much of the trace has been read; nil for none.
	Progress func(part float64)
}

// Trace merges the trace in a file into the recording in a directory.
func Trace(ctx context.Context, recording, trace string, o Options) (*event.MergedTrace, error) {
	m := &merging{ctx: ctx, options: o}
	var err error
	if m.recording, err = dataset.Open(recording); err != nil {
		return nil, err
	}
	defer m.recording.Close()
	if err := m.isRecording(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ebpfprof-merge-")
	if err != nil {
		return nil, fmt.Errorf("merging %s: %w", trace, err)
	}
	defer os.RemoveAll(dir)
	imported := filepath.Join(dir, "trace")
	summary, err := importer.Import(ctx, []string{trace}, imported, importer.Options{ToolVersion: o.ToolVersion,
		Redact: m.options.Redact, Progress: func(_ string, part float64) {
			if o.Progress != nil {
				o.Progress(part)
			}
		}})
	if err != nil {
		return nil, err
	}
	if m.trace, err = dataset.Open(imported); err != nil {
		return nil, err
	}
	defer m.trace.Close()
	batch, session, tool, err := m.all()
	if err != nil {
		return nil, err
	}
	for _, w := range summary.Warnings {
		batch.Warnings = append(batch.Warnings, event.Warning{
			TSNS: m.merged.StartNS, Kind: "merge", Source: m.merged.Source, Count: w.Count, Detail: w.Detail,
		})
	}
	m.recording.Close()
	return &m.merged, output.Append(recording, session, tool, batch)
}

// merging is one trace on its way into a recording.
type merging struct {
	ctx              context.Context
	options          Options
	recording, trace *dataset.DB
	merged           event.MergedTrace

	pid, tracePID    int32
	recorded, traced map[int32]thread // of the trace with the recording's numbers of threads
	numbers          map[int32]int32  // of the trace's threads
	pairing          pairing
}

// all returns what is added to the recording, with its session and the version of the tool that recorded it.
func (m *merging) all() (batch *event.Batch, session, tool string, err error) {
	if err := m.processes(); err != nil {
		return nil, "", "", err
	}
	if err := m.calls(); err != nil {
		return nil, "", "", err
	}
	if err := m.unlessMerged(); err != nil {
		return nil, "", "", err
	}
	spans, err := m.devices()
	if err != nil {
		return nil, "", "", err
	}
	const query = "SELECT session_id, coalesce(tool_version, '') FROM process JOIN session USING (session_id) WHERE pid = ? LIMIT 1"
	err = m.recording.Row(m.ctx, query, []any{m.pid}, &session, &tool)
	return &event.Batch{Spans: spans, MergedTraces: []event.MergedTrace{m.merged}}, session, tool, err
}

// isRecording refuses an import, and takes over that names are left out.
func (m *merging) isRecording() error {
	var imported, redacted bool
	const query = "SELECT coalesce(bool_or(source LIKE 'imported from %'), false), coalesce(bool_or(redacted), false) FROM session"
	if err := m.recording.Row(m.ctx, query, nil, &imported, &redacted); err != nil {
		return fmt.Errorf("reading the recording's session: %w", err)
	}
	m.options.Redact = m.options.Redact || redacted
	if imported {
		return ErrNotRecorded
	}
	return nil
}

// unlessMerged refuses rows that are there already.
func (m *merging) unlessMerged() error {
	var before int
	err := m.recording.Row(m.ctx, "SELECT count(*) FROM merged_trace WHERE pid = ? AND ts_ns < ? AND end_ns > ?",
		[]any{m.pid, m.merged.EndNS, m.merged.StartNS}, &before)
	if err == nil && before > 0 {
		err = ErrMerged
	}
	return err
}
