package stacks

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/profile"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Why a stack is cut, beside the status that the dataset records.
const (
	CutNone = "none" // no stack was taken
	CutLost = "lost" // its row is not in the dataset
)

// Known are stacks of a dataset, by id.
type Known struct {
	Frames *profile.Frames
	byID   map[int64]knownStack
}

type knownStack struct {
	frames []*profile.Frame // leaf first
	status string
}

// Read reads the stacks whose ids a query selects.
//
// A frame is in thousands of stacks. So the database returns each distinct frame
// once, and of each stack only which frames it has.
func Read(ctx context.Context, db *dataset.DB, ids string) (*Known, error) {
	wanted := "FROM stack WHERE stack_id IN (" + ids + ")"
	known := &Known{profile.NewFrames(), map[int64]knownStack{}}
	frames := map[string]*profile.Frame{}
	distinct := `SELECT hash(f)::VARCHAR, any_value(` + frameText("f") + `) FROM (SELECT unnest(frames) AS f ` + wanted + `) GROUP BY 1`
	err := db.Each(ctx, distinct, func(row []driver.Value) error {
		frames[text(row[0])] = known.Frames.Of(parseFrame(text(row[1])))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading frames: %w", err)
	}
	stacks := `SELECT stack_id, status, array_to_string(list_transform(frames, lambda f: hash(f)), ' ') ` + wanted
	err = db.Each(ctx, stacks, func(row []driver.Value) error {
		id := integer(row[0])
		if _, twice := known.byID[id]; twice { // of several recordings
			return nil
		}
		names := strings.Fields(text(row[2]))
		s := knownStack{make([]*profile.Frame, len(names)), text(row[1])}
		for i, name := range names {
			s.frames[i] = frames[name]
		}
		known.byID[id] = s
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading stacks: %w", err)
	}
	return known, nil
}

// Of returns a stack's frames, leaf first, and why the stack is cut, "" if it is complete.
// The caller must not change the slice.
func (k *Known) Of(id int64) (frames []*profile.Frame, cut string) {
	of, found := k.byID[id]
	switch {
	case !found:
		return nil, CutLost
	case of.status != event.StackComplete:
		return of.frames, of.status
	}
	return of.frames, ""
}
