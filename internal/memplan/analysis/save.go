package analysis

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/memplan/blocks"
)

// Version of the analyses that Parquet files carry.
const Version = "1"

// planRow is a row of memory_plan: one request with its place.
type planRow struct {
	AnalysisVersion string `parquet:"analysis_version,dict"`
	PID             int32  `parquet:"pid"`
	Space           string `parquet:"space,dict"`
	DeviceID        *int32 `parquet:"device_id,optional"`
	Scope           string `parquet:"scope,dict"`
	Ordinal         int64  `parquet:"ordinal"`
	StackID         *int64 `parquet:"stack_id,optional"`
	Occurrence      int64  `parquet:"occurrence"`
	Bytes           int64  `parquet:"bytes"`
	Lower           int64  `parquet:"lower"`
	Upper           int64  `parquet:"upper"`
	OffsetBytes     int64  `parquet:"offset_bytes"`
	WholeStep       bool   `parquet:"whole_step"`
	Line            string `parquet:"line,dict"`
}

// WriteParquet writes the plan as rows of memory_plan.
func (p *Plan) WriteParquet(w io.Writer) error {
	rows := make([]planRow, len(p.Requests))
	for i, r := range p.Requests {
		rows[i] = planRow{AnalysisVersion: Version, PID: p.PID, Space: p.Space, DeviceID: p.Device, Scope: p.Scope,
			Ordinal: int64(r.Ordinal), StackID: unlessZero(r.StackID), Occurrence: int64(r.Occurrence), Bytes: r.Bytes,
			Lower: r.Lower, Upper: r.Upper, OffsetBytes: r.Offset, WholeStep: r.WholeStep, Line: r.Line}
	}
	return writeParquet(w, rows)
}

// blockRow is a row of memory_block: one block's life.
type blockRow struct {
	AnalysisVersion string `parquet:"analysis_version,dict"`
	BlockID         int64  `parquet:"block_id"`
	PID             int32  `parquet:"pid"`
	TID             int32  `parquet:"tid"`
	Space           string `parquet:"space,dict"`
	DeviceID        *int32 `parquet:"device_id,optional"`
	Address         int64  `parquet:"address"`
	Bytes           int64  `parquet:"bytes"`
	AllocatedNS     *int64 `parquet:"allocated_ns,optional"` // NULL: before the recording
	FreedNS         *int64 `parquet:"freed_ns,optional"`     // NULL: still there at its end
	AllocatedTick   int64  `parquet:"allocated_tick"`
	FreedTick       *int64 `parquet:"freed_tick,optional"`
	Step            *int64 `parquet:"step,optional"` // whole step that it was born in, from 0
	StackID         *int64 `parquet:"stack_id,optional"`
	AllocatedSpanID *int64 `parquet:"allocated_span_id,optional"`
	FreedSpanID     *int64 `parquet:"freed_span_id,optional"`
}

// WriteParquet writes the blocks of all arenas as rows of memory_block.
func (m *Memory) WriteParquet(w io.Writer) error {
	var rows []blockRow
	for _, a := range m.Arenas {
		step := 0
		for i := range a.lives.Blocks {
			b := &a.lives.Blocks[i]
			row := blockRow{AnalysisVersion: Version, BlockID: int64(len(rows)), PID: a.PID, TID: b.TID, Space: a.Space,
				DeviceID: a.Device, Address: b.Address, Bytes: b.Bytes, AllocatedTick: b.Born, StackID: unlessZero(b.Path),
				AllocatedSpanID: unlessZero(b.BornIn), FreedSpanID: unlessZero(b.DiedIn)}
			if b.Born > 0 {
				row.AllocatedNS = &b.BornNS
				for step < a.Steps && b.Born > a.steps.Cuts[step+1] {
					step++ // blocks come in the order of their births
				}
				if step < a.Steps && b.Born > a.steps.Cuts[step] {
					k := int64(step)
					row.Step = &k
				}
			}
			if b.Died != blocks.Alive {
				row.FreedNS, row.FreedTick = &b.DiedNS, &b.Died
			}
			rows = append(rows, row)
		}
	}
	return writeParquet(w, rows)
}

func writeParquet[T any](w io.Writer, rows []T) error {
	writer := parquet.NewGenericWriter[T](w, parquet.Compression(&parquet.Zstd))
	if _, err := writer.Write(rows); err != nil {
		return fmt.Errorf("writing Parquet: %w", err)
	}
	if err := writer.Close(); err != nil {
		return fmt.Errorf("writing Parquet: %w", err)
	}
	return nil
}

func unlessZero(v int64) *int64 {
	if v == 0 {
		return nil
	}
	return &v
}
