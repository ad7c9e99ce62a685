package source

import (
	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/dataset/column"
)

// The columns that are read, by position in columns.
const (
	timestamp = iota
	address
	size
	allocated
	reserved
	duration
	path
	stack
	span
	pid
	tid
	device
	space
	level
	action
	weight
)

// columns of table memory. All values are held as 64 bits: a text as its number
// among the words, a float as its bits.
var columns = [...]struct {
	name string
	kind parquet.Kind // Int64 stands for Int32, too
}{
	timestamp: {"ts_ns", parquet.Int64}, address: {"address", parquet.Int64}, size: {"bytes", parquet.Int64},
	allocated: {"total_allocated_bytes", parquet.Int64}, reserved: {"total_reserved_bytes", parquet.Int64},
	duration: {"duration_ns", parquet.Int64}, path: {"python_stack_id", parquet.Int64}, stack: {"stack_id", parquet.Int64},
	span: {"span_id", parquet.Int64}, pid: {"pid", parquet.Int64}, tid: {"tid", parquet.Int64}, device: {"device_id", parquet.Int64},
	space: {"space", parquet.ByteArray}, level: {"level", parquet.ByteArray}, action: {"action", parquet.ByteArray},
	weight: {"weight", parquet.Double},
}

// absent is the value of a row that has none.
const absent = column.Absent
