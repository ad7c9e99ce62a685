package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/snapshot"
	"github.com/ebpfprof/ebpfprof/internal/redact"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// ImportOptions of Import.
type ImportOptions struct {
	ToolVersion string
	CommandLine string
	Redact      bool // directories of files are left out
}

// Import makes a dataset of a memory snapshot of PyTorch. When it fails nothing is
// left behind.
func Import(s *snapshot.Snapshot, file, dir string, o ImportOptions) (rows int, err error) {
	dataset, err := output.Create(dir, output.Options{})
	if err != nil {
		return 0, err
	}
	rows, err = write(dataset, s, file, o)
	if err = errors.Join(err, dataset.Close()); err != nil {
		return 0, errors.Join(err, os.RemoveAll(dir))
	}
	return rows, nil
}

// importedPID stands for the process, which a snapshot does not name.
const importedPID = 1

func write(dataset *output.Dataset, s *snapshot.Snapshot, file string, o ImportOptions) (int, error) {
	recording := event.Recording{ID: "import-" + strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)),
		ToolVersion: o.ToolVersion, CommandLine: o.CommandLine, Source: "imported from torch.cuda.memory"}
	if len(s.Events) > 0 {
		recording.StartedNS = s.Events[0].TSNS
		ended := s.Events[len(s.Events)-1].TSNS
		recording.EndedNS = &ended
	}
	if err := dataset.Session(recording); err != nil {
		return 0, err
	}
	framework := "pytorch"
	if err := dataset.Write(&event.Batch{Processes: []event.Process{{PID: importedPID, ID: importedPID, StartedNS: recording.StartedNS,
		Framework: &framework}}}); err != nil {
		return 0, err
	}
	where := func(path string) string { return path }
	if o.Redact {
		where = redact.Path
	}
	var stacks []event.Stack
	for id, p := range s.Paths {
		stack := event.Stack{ID: id, Status: "complete"}
		var names []string
		for i, f := range p {
			line := int32(f.Line)
			stack.Frames = append(stack.Frames, event.Frame{Kind: symbolize.Kind(f.Kind), Function: f.Function, File: where(f.File), Line: line})
			names = append(names, p[len(p)-1-i].Function)
		}
		stack.Folded = strings.Join(names, ";")
		stacks = append(stacks, stack)
	}
	if err := dataset.Write(&event.Batch{Stacks: stacks}); err != nil {
		return 0, err
	}
	var rows []event.Memory
	for _, e := range s.Events {
		rows = append(rows, memoryRow(s, e))
	}
	if err := dataset.Write(&event.Batch{Memory: rows}); err != nil {
		return 0, err
	}
	if err := dataset.Write(&event.Batch{Counters: freeReadings(s)}); err != nil {
		return 0, err
	}
	if s.Cut {
		if err := dataset.Write(&event.Batch{Warnings: []event.Warning{{TSNS: recording.StartedNS, Kind: "cut", Source: where(file), Count: 1,
			Detail: where(file) + ": " + snapshot.CutWarning}}}); err != nil {
			return 0, err
		}
	}
	if s.Before > 0 {
		if err := dataset.Write(&event.Batch{Warnings: []event.Warning{{TSNS: recording.StartedNS, Kind: "import", Source: where(file),
			Count:  s.Before,
			Detail: fmt.Sprintf("%d blocks were there before the trace began: they count from its beginning", s.Before)}}}); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

// freeReadings are what devices had left when memory ran out.
func freeReadings(s *snapshot.Snapshot) (rows []event.Counter) {
	pid := int32(importedPID)
	for _, short := range s.Shortages {
		if short.Free < 0 {
			continue
		}
		rows = append(rows, event.Counter{TSNS: short.NS, Source: "allocator", DeviceID: &short.Device, PID: &pid, Name: freeMemory,
			Kind: event.Gauge, Unit: "bytes", Value: float64(short.Free)})
	}
	return rows
}

func memoryRow(s *snapshot.Snapshot, e blocks.Event) event.Memory {
	a := s.Arenas[e.Arena]
	m := event.Memory{TSNS: e.TSNS, PID: importedPID, TID: importedPID, Space: a.Space, Level: a.Level, Address: e.Address,
		DeviceID: &a.Device, Weight: 1, Action: map[blocks.Action]string{
			blocks.Alloc: "alloc", blocks.Free: "free", blocks.OutOfMemory: "out_of_memory",
		}[e.Action]}
	if e.Bytes >= 0 {
		m.Bytes = &e.Bytes
	}
	if e.Path != 0 {
		m.StackID = &e.Path
	}
	return m
}
