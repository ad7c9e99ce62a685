package analysis

import (
	"errors"
	"fmt"
	"io"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/internal/dataset/derived"
)

// Tables that Save writes.
const (
	blockTable = "memory_block"
	planTable  = "memory_plan"
)

// planRow is a row of memory_plan: one request with its place.
type planRow struct {
	plan    *Plan
	request *Placed
}

// blockRow is a row of memory_block: one block's life.
type blockRow struct {
	arena *Arena
	block *blocks.Block
	id    int64
	step  int64 // whole step that it was born in, from 0; -1: none
}

func text[T any](name string, get func(*T) string) derived.Column[T] {
	return derived.Column[T]{Name: name, Texts: func(r *T) (string, bool) { return get(r), true }}
}

func whole[T any](name string, get func(*T) int64) derived.Column[T] {
	return derived.Column[T]{Name: name, Ints: func(r *T) (int64, bool) { return get(r), true }}
}

// optional is a column that is NULL where there is no value.
func optional[T any](name string, get func(*T) (int64, bool)) derived.Column[T] {
	return derived.Column[T]{Name: name, Ints: get}
}

func unlessZero(v int64) (int64, bool) { return v, v != 0 }

func device(d *int32) (int64, bool) {
	if d == nil {
		return 0, false
	}
	return int64(*d), true
}

var planColumns = []derived.Column[planRow]{
	text("session_id", func(r *planRow) string { return r.plan.arena.Session }),
	text("analysis_version", func(*planRow) string { return derived.Version }),
	whole("pid", func(r *planRow) int64 { return int64(r.plan.PID) }),
	text("space", func(r *planRow) string { return r.plan.Space }),
	optional("device_id", func(r *planRow) (int64, bool) { return device(r.plan.Device) }),
	text("scope", func(r *planRow) string { return r.plan.Scope }),
	whole("ordinal", func(r *planRow) int64 { return int64(r.request.Ordinal) }),
	optional("stack_id", func(r *planRow) (int64, bool) { return unlessZero(r.request.StackID) }),
	whole("occurrence", func(r *planRow) int64 { return int64(r.request.Occurrence) }),
	whole("bytes", func(r *planRow) int64 { return r.request.Bytes }),
	whole("lower", func(r *planRow) int64 { return r.request.Lower }),
	whole("upper", func(r *planRow) int64 { return r.request.Upper }),
	whole("offset_bytes", func(r *planRow) int64 { return r.request.Offset }),
	{Name: "whole_step", Bool: true, Ints: func(r *planRow) (int64, bool) {
		if r.request.WholeStep {
			return 1, true
		}
		return 0, true
	}},
	text("line", func(r *planRow) string { return r.request.Line }),
}

var blockColumns = []derived.Column[blockRow]{
	text("session_id", func(r *blockRow) string { return r.arena.Session }),
	text("analysis_version", func(*blockRow) string { return derived.Version }),
	whole("block_id", func(r *blockRow) int64 { return r.id }),
	whole("pid", func(r *blockRow) int64 { return int64(r.arena.PID) }),
	whole("tid", func(r *blockRow) int64 { return int64(r.block.TID) }),
	text("space", func(r *blockRow) string { return r.arena.Space }),
	optional("device_id", func(r *blockRow) (int64, bool) { return device(r.arena.Device) }),
	whole("address", func(r *blockRow) int64 { return r.block.Address }),
	whole("bytes", func(r *blockRow) int64 { return r.block.Bytes }),
	// NULL: before the recording.
	optional("allocated_ns", func(r *blockRow) (int64, bool) { return r.block.BornNS, r.block.Born > 0 }),
	// NULL: still there at its end.
	optional("freed_ns", func(r *blockRow) (int64, bool) { return r.block.DiedNS, r.block.Died != blocks.Alive }),
	whole("allocated_tick", func(r *blockRow) int64 { return r.block.Born }),
	optional("freed_tick", func(r *blockRow) (int64, bool) { return r.block.Died, r.block.Died != blocks.Alive }),
	optional("step", func(r *blockRow) (int64, bool) { return r.step, r.step >= 0 }),
	optional("stack_id", func(r *blockRow) (int64, bool) { return unlessZero(r.block.Path) }),
	optional("allocated_span_id", func(r *blockRow) (int64, bool) { return unlessZero(r.block.BornIn) }),
	optional("freed_span_id", func(r *blockRow) (int64, bool) { return unlessZero(r.block.DiedIn) }),
}

func (p *Plan) rows() []planRow {
	rows := make([]planRow, len(p.Requests))
	for i := range p.Requests {
		rows[i] = planRow{p, &p.Requests[i]}
	}
	return rows
}

func (m *Memory) rows() (rows []blockRow) {
	for _, a := range m.Arenas {
		step := 0
		for i := range a.lives.Blocks {
			r := blockRow{arena: a, block: &a.lives.Blocks[i], id: int64(len(rows)), step: -1}
			if born := r.block.Born; born > 0 {
				for step < a.Steps && born > a.steps.Cuts[step+1] {
					step++ // blocks come in the order of their births
				}
				if step < a.Steps && born > a.steps.Cuts[step] {
					r.step = int64(step)
				}
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// WriteParquet writes the plan as rows of memory_plan.
func (p *Plan) WriteParquet(w io.Writer) error {
	return derived.Encode(w, planTable, planColumns, p.rows())
}

// WriteParquet writes the blocks of all arenas as rows of memory_block.
func (m *Memory) WriteParquet(w io.Writer) error {
	return derived.Encode(w, blockTable, blockColumns, m.rows())
}

// ErrNotADataset is returned by Save for what was read from a snapshot.
var ErrNotADataset = errors.New("only a dataset can be saved into: import the snapshot first")

// Save writes the blocks and the plan into the dataset, as tables memory_block and
// memory_plan, in the place of those that were saved before.
func (p *Plan) Save(m *Memory) error {
	if _, is := m.origin.(*source.Dataset); !is {
		return ErrNotADataset
	}
	if err := derived.Write(m.Dataset, blockTable, blockColumns, m.rows()); err != nil {
		return fmt.Errorf("saving the blocks: %w", err)
	}
	if err := derived.Write(m.Dataset, planTable, planColumns, p.rows()); err != nil {
		return fmt.Errorf("saving the plan: %w", err)
	}
	return nil
}
