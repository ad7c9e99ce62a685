package analysis

import (
	"context"
	"fmt"

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
	if snapshot.Is(path) {
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

func (o opened) Shortages(context.Context) ([]source.Shortage, error) { return nil, nil }

func (o opened) Warnings() []string {
	if o.Before == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d blocks were there before the trace began: they count from its beginning", o.Before)}
}

func (o opened) Close() error { return nil }
