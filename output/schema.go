package output

import (
	"fmt"
	"strings"
)

// SchemaVersion is the version of the dataset's schema: major when a column is
// removed, renamed or changes its meaning, minor when one is added, patch when
// only a description changes. docs/schema-changes.md has an entry for each.
const SchemaVersion = "1.3.0"

// Type is the SQL type of a column, by the name that DuckDB, Spark and Trino share.
type Type string

const (
	BigInt  Type = "BIGINT"
	Integer Type = "INTEGER"
	Double  Type = "DOUBLE"
	Boolean Type = "BOOLEAN"
	Varchar Type = "VARCHAR"
)

// FrameList is the type of stack.frames, spelled as DuckDB does.
var FrameList = listType(FrameFields)

func listType(fields []Column) Type {
	var members []string
	for _, f := range fields {
		members = append(members, fmt.Sprintf("%s %s", quoteReserved(f.Name), f.Type))
	}
	return Type("STRUCT(" + strings.Join(members, ", ") + ")[]")
}

// quoteReserved puts quotes around the members that are words of DuckDB's SQL;
// f.function and f.offset need none.
func quoteReserved(name string) string {
	if name == "function" || name == "offset" {
		return `"` + name + `"`
	}
	return name
}

// Column describes one column of one table.
type Column struct {
	Name        string `json:"name"`
	Type        Type   `json:"type"`
	Unit        string `json:"unit,omitempty"` // "ns", "bytes", …; "" for names, ids and counts
	Nullable    bool   `json:"nullable"`
	FieldID     int32  `json:"field_id"` // the Parquet field id: never changed, never used again
	Description string `json:"description"`
}

// Table describes one table of the dataset.
type Table struct {
	Name        string   `json:"name"`
	Row         string   `json:"row"` // what a row is
	Description string   `json:"description,omitempty"`
	Columns     []Column `json:"columns"`
}

// Schema lists the tables of a dataset in the order in which they are best read.
func Schema() []Table {
	return []Table{
		sessionTable.Table, schemaFieldTable.Table,
		processTable.Table, threadTable.Table, libraryTable.Table, probeTable.Table,
		spanTable.Table, sampleTable.Table, stackTable.Table, memoryTable.Table, sliceTable.Table,
		openCallTable.Table, communicatorTable.Table, stillThreadTable.Table, ioTable.Table,
		shortProcessTable.Table, mergedTraceTable.Table,
		counterTable.Table, flowTable.Table, warningTable.Table,
	}
}

// schemaField is one row of schema_field.
type schemaField struct {
	table  string
	column Column
}

func schemaFields() []schemaField {
	var fields []schemaField
	for _, t := range Schema() {
		for _, c := range t.Columns {
			fields = append(fields, schemaField{t.Name, c})
		}
	}
	return fields
}
