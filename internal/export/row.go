package export

import (
	"database/sql"
	"database/sql/driver"
	"strings"
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

// column of the query, and where its value goes.
type column struct {
	name string
	set  func(*span, driver.Value)
}

func ints(at func(*span) *sql.NullInt64) func(*span, driver.Value) {
	return func(r *span, v driver.Value) {
		n := at(r)
		n.Int64, n.Valid = 0, false
		switch v := v.(type) {
		case int64:
			n.Int64, n.Valid = v, true
		case int32:
			n.Int64, n.Valid = int64(v), true
		}
	}
}

func texts(at func(*span) *sql.NullString) func(*span, driver.Value) {
	return func(r *span, v driver.Value) {
		s := at(r)
		s.String, s.Valid = v.(string)
	}
}

var common = []column{
	{"span_id", func(r *span, v driver.Value) { r.id, _ = v.(int64) }},
	{"ts_ns", func(r *span, v driver.Value) { r.ts, _ = v.(int64) }},
	{"duration_ns", ints(func(r *span) *sql.NullInt64 { return &r.duration })},
	{"pid", func(r *span, v driver.Value) { r.pid, _ = v.(int32) }},
	{"tid", func(r *span, v driver.Value) { r.tid, _ = v.(int32) }},
	{"layer", func(r *span, v driver.Value) { r.layer, _ = v.(string) }},
	{"name", func(r *span, v driver.Value) { r.name, _ = v.(string) }},
	{"category", texts(func(r *span) *sql.NullString { return &r.category })},
	{"end_method", func(r *span, v driver.Value) { r.end, _ = v.(string) }},
	{"weight", func(r *span, v driver.Value) { r.weight, _ = v.(float64) }},
	{"device_id", func(r *span, v driver.Value) { r.device.Int32, r.device.Valid = v.(int32) }},
	{"stream", ints(func(r *span) *sql.NullInt64 { return &r.stream })},
	{"correlation_id", ints(func(r *span) *sql.NullInt64 { return &r.correlation })},
	{"launch_id", ints(func(r *span) *sql.NullInt64 { return &r.launch })},
	{"bytes", ints(func(r *span) *sql.NullInt64 { return &r.bytes })},
	{"sequence_number", ints(func(r *span) *sql.NullInt64 { return &r.sequence })},
	{"input_dims", texts(func(r *span) *sql.NullString { return &r.dims })},
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

func namesOf(columns []column) string {
	var names []string
	for _, c := range columns {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}
