package analysis

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/holders"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/snapshot"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
)

// origin is where events come from: a dataset or a snapshot.
type origin interface {
	Events(ctx context.Context) ([]blocks.Arena, []blocks.Event, error)
	Paths(ctx context.Context, session string, ids []int64) (map[int64]holders.Path, error)
	Spans(ctx context.Context, session string, ids []int64) (map[int64]holders.Span, error)
	Anchors(ctx context.Context) (byPID map[int32][]int64, method string, err error)
	Lost(ctx context.Context) ([]string, error)
	Shortages(ctx context.Context) ([]source.Shortage, error)
	Warnings() []string
	Close() error
}

func open(path string) (origin, error) {
	if info, err := os.Stat(path); snapshot.Is(path) || err == nil && info.Mode().IsRegular() {
		s, err := snapshot.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return opened{s}, nil
	}
	return source.Open(path)
}

// opened is a snapshot as an origin.
type opened struct{ *snapshot.Snapshot }

func (o opened) Events(context.Context) ([]blocks.Arena, []blocks.Event, error) {
	return o.Arenas, o.Snapshot.Events, nil
}

func (o opened) Paths(context.Context, string, []int64) (map[int64]holders.Path, error) {
	return o.Snapshot.Paths, nil
}

func (o opened) Spans(context.Context, string, []int64) (map[int64]holders.Span, error) {
	return nil, nil
}

func (o opened) Anchors(context.Context) (map[int32][]int64, string, error) { return nil, "", nil }

func (o opened) Lost(context.Context) ([]string, error) { return nil, nil }

// Shortages are those of the snapshot, the last one first, each place and size once.
func (o opened) Shortages(context.Context) (all []source.Shortage, err error) {
	if len(o.Snapshot.Events) == 0 {
		return nil, nil
	}
	began := o.Snapshot.Events[0].TSNS
	type place struct {
		device      int32
		asked, path int64
	}
	at := map[place]int{}
	for _, short := range slices.Backward(o.Snapshot.Shortages) {
		key := place{short.Device, short.Asked, short.Path}
		if i, known := at[key]; known {
			all[i].Times++
			continue
		}
		at[key] = len(all)
		s := source.Shortage{Times: 1, NS: short.NS, At: float64(short.NS-began) / 1e9, Space: "device", Level: "allocator",
			Device: &short.Device, AskedBytes: &short.Asked, Path: short.Path}
		if short.Free >= 0 {
			s.FreeBytes = &short.Free
		}
		all = append(all, s)
	}
	return all, nil
}

func (o opened) Warnings() (warnings []string) {
	if o.Cut {
		warnings = append(warnings, snapshot.CutWarning)
	}
	if o.Before > 0 {
		warnings = append(warnings, fmt.Sprintf("%d blocks were there before the trace began: they count from its beginning", o.Before))
	}
	return warnings
}

func (o opened) Close() error { return nil }
