package output

import (
	"fmt"
	"strings"
)

// Views returns the SQL that gives the stock duckdb shell a view of each table:
//
//	cd DATASET && duckdb -init views.sql
func Views() string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- Views of an ebpfprof dataset (schema %s). From the dataset's directory:\n", SchemaVersion)
	b.WriteString("--   duckdb -init views.sql\n")
	b.WriteString("-- Each table keeps its name; ts is ts_ns as a timestamp, in UTC.\n")
	for _, t := range Schema() {
		fmt.Fprintf(&b, "\n-- A row is %s.\n", t.Row)
		source := fmt.Sprintf("read_parquet('%s/**/*.parquet', hive_partitioning = true, union_by_name = true)", t.Name)
		fmt.Fprintf(&b, "CREATE OR REPLACE VIEW %s AS\nSELECT %s\nFROM %s;\n", t.Name, viewColumns(t), source)
	}
	for _, v := range DerivedViews() {
		fmt.Fprintf(&b, "\n-- A row is %s.\nCREATE OR REPLACE VIEW %s AS\n%s;\n", v.Row, v.Name, v.SQL)
	}
	return b.String()
}

// viewColumns selects the columns in their order, ts beside ts_ns, then
// whatever else the files have (hive keys, columns of a later version).
func viewColumns(t Table) string {
	var columns, known []string
	for _, c := range t.Columns {
		columns = append(columns, c.Name)
		known = append(known, c.Name)
		if c.Name == "ts_ns" {
			columns = append(columns, "make_timestamp_ns(ts_ns) AS ts")
		}
	}
	return fmt.Sprintf("%s,\n  * EXCLUDE (%s)", wrap(columns), strings.Join(known, ", "))
}

// wrap joins columns over several lines.
func wrap(columns []string) string {
	var b strings.Builder
	for i, c := range columns {
		switch {
		case i > 0 && i%6 == 0:
			b.WriteString(",\n  ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(c)
	}
	return b.String()
}
