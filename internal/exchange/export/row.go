package export

import (
	"database/sql"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// span is a row of table span, as far as the forms have a place for it.
type span struct {
	id, ts              int64
	duration            sql.NullInt64
	pid, tid            int32
	layer, name         string
	category            sql.NullString
	end                 string
	status              sql.NullString
	weight              float64
	device              sql.NullInt32
	context, stream     sql.NullInt64
	correlation, launch sql.NullInt64
	bytes, sequence     sql.NullInt64
	flops               sql.NullInt64
	dims, types         sql.NullString
	strides             sql.NullString
	gridX, gridY, gridZ sql.NullInt64
	blockX              sql.NullInt64
	blockY, blockZ      sql.NullInt64
	from, to            bool // it has an edge that leads on, or to it
	target              int64
	waitStream          sql.NullInt64
	waitCorrelation     sql.NullInt64
}

// column of the table, and where its value goes.
type column struct {
	name string
	set  func(r *span, b *dataset.Batch, v int64)
}

func ints(at func(*span) *sql.NullInt64) func(*span, *dataset.Batch, int64) {
	return func(r *span, _ *dataset.Batch, v int64) { *at(r) = sql.NullInt64{Int64: v, Valid: v != dataset.Absent} }
}

func texts(at func(*span) *sql.NullString) func(*span, *dataset.Batch, int64) {
	return func(r *span, b *dataset.Batch, v int64) {
		*at(r) = sql.NullString{String: b.Text(v), Valid: v != dataset.Absent}
	}
}

// The first columns are those that before goes by.
const (
	idColumn = iota
	timeColumn
	durationColumn
	layerColumn
)

var common = []column{
	idColumn:       {"span_id", func(r *span, _ *dataset.Batch, v int64) { r.id = v }},
	timeColumn:     {"ts_ns", func(r *span, _ *dataset.Batch, v int64) { r.ts = v }},
	durationColumn: {"duration_ns", ints(func(r *span) *sql.NullInt64 { return &r.duration })},
	layerColumn:    {"layer", func(r *span, b *dataset.Batch, v int64) { r.layer = b.Text(v) }},
	{"pid", func(r *span, _ *dataset.Batch, v int64) { r.pid = int32(v) }},
	{"tid", func(r *span, _ *dataset.Batch, v int64) { r.tid = int32(v) }},
	{"name", func(r *span, b *dataset.Batch, v int64) { r.name = b.Text(v) }},
	{"category", texts(func(r *span) *sql.NullString { return &r.category })},
	{"end_method", func(r *span, b *dataset.Batch, v int64) { r.end = b.Text(v) }},
	{"weight", func(r *span, b *dataset.Batch, v int64) { r.weight = b.Float(v) }},
	{"device_id", func(r *span, _ *dataset.Batch, v int64) {
		r.device = sql.NullInt32{Int32: int32(v), Valid: v != dataset.Absent}
	}},
	{"stream", ints(func(r *span) *sql.NullInt64 { return &r.stream })},
	{"correlation_id", ints(func(r *span) *sql.NullInt64 { return &r.correlation })},
	{"launch_id", ints(func(r *span) *sql.NullInt64 { return &r.launch })},
	{"bytes", ints(func(r *span) *sql.NullInt64 { return &r.bytes })},
	{"sequence_number", ints(func(r *span) *sql.NullInt64 { return &r.sequence })},
	{"input_dims", texts(func(r *span) *sql.NullString { return &r.dims })},
}

// before puts rows of one time in order: a row before those inside of it. Ids are given
// out in order of beginnings, so they settle what begins and ends at once.
func before(b *dataset.Batch, i, k int) bool {
	columns := b.Columns
	if x, y := columns[durationColumn][i], columns[durationColumn][k]; x != y {
		return x == dataset.Absent || y != dataset.Absent && x > y
	}
	python := func(i int) bool { return b.Text(columns[layerColumn][i]) == "python" }
	if x, y := python(i), python(k); x != y {
		return x
	}
	return columns[idColumn][i] < columns[idColumn][k]
}

var perfettoColumns = append(common[:len(common):len(common)],
	column{"status", texts(func(r *span) *sql.NullString { return &r.status })},
	column{"flops", ints(func(r *span) *sql.NullInt64 { return &r.flops })})

var kinetoColumns = append(common[:len(common):len(common)],
	column{"context", ints(func(r *span) *sql.NullInt64 { return &r.context })},
	column{"input_types", texts(func(r *span) *sql.NullString { return &r.types })},
	column{"input_strides", texts(func(r *span) *sql.NullString { return &r.strides })},
	column{"grid_x", ints(func(r *span) *sql.NullInt64 { return &r.gridX })},
	column{"grid_y", ints(func(r *span) *sql.NullInt64 { return &r.gridY })},
	column{"grid_z", ints(func(r *span) *sql.NullInt64 { return &r.gridZ })},
	column{"block_x", ints(func(r *span) *sql.NullInt64 { return &r.blockX })},
	column{"block_y", ints(func(r *span) *sql.NullInt64 { return &r.blockY })},
	column{"block_z", ints(func(r *span) *sql.NullInt64 { return &r.blockZ })},
	column{"wait_stream", ints(func(r *span) *sql.NullInt64 { return &r.waitStream })},
	column{"wait_correlation_id", ints(func(r *span) *sql.NullInt64 { return &r.waitCorrelation })})

func namesOf(columns []column) (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}
