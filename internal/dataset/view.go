package dataset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset/keys"
	"github.com/ebpfprof/ebpfprof/output"
)

// viewOf returns the statements that make the view of a table: the schema's
// columns in the schema's order, NULL where the files are too old to have one,
// ts beside ts_ns, then whatever else the files have.
func (db *DB) viewOf(ctx context.Context, t tableFiles) ([]string, error) {
	source, existing, err := db.source(ctx, t)
	if err != nil {
		return nil, err
	}
	var columns []string
	known := map[string]bool{}
	for _, c := range t.schema.Columns {
		known[c.Name] = true
		columns = append(columns, db.viewColumn(c, existing[c.Name]))
		if c.Name == "ts_ns" {
			columns = append(columns, "make_timestamp_ns(ts_ns) AS ts")
		}
	}
	for _, name := range existing.order() {
		if !known[name] {
			columns = append(columns, identifier(name))
		}
	}
	if len(t.schema.Columns) == 0 && existing["ts_ns"].sqlType == string(output.BigInt) && existing["ts"].sqlType == "" {
		columns = append(columns, "make_timestamp_ns(ts_ns) AS ts")
	}
	view := fmt.Sprintf("CREATE OR REPLACE VIEW %s AS SELECT %s%s", identifier(t.schema.Name), strings.Join(columns, ", "), source)
	return append([]string{view}, comments(t.schema)...), nil
}

// source is the FROM of a table's view and the columns it has; without files
// it is a condition that nothing meets.
func (db *DB) source(ctx context.Context, t tableFiles) (string, columnSet, error) {
	if len(t.paths) == 0 {
		return " WHERE false", columnSet{}, nil
	}
	var paths []string
	for _, p := range t.paths {
		paths = append(paths, quote(escapeDuckDBGlob(p)))
	}
	types, err := db.hiveTypes(ctx, t)
	if err != nil {
		return "", nil, fmt.Errorf("table %s: %w", t.schema.Name, err)
	}
	// To unite their columns DuckDB opens all files before each query, which takes as long as the query.
	from := fmt.Sprintf(" FROM read_parquet([%s], union_by_name = %t, hive_partitioning = %t%s)", strings.Join(paths, ", "), !t.alike,
		t.hive, types)
	existing, err := db.describe(ctx, "SELECT *"+from)
	if err != nil {
		return "", nil, fmt.Errorf("table %s: %w", t.schema.Name, err)
	}
	return from, existing, nil
}

// hiveTypes gives the hive keys that stand in the files as well the type that they have
// there: by their looks alone a job that is called 007 would be 7.
func (db *DB) hiveTypes(ctx context.Context, t tableFiles) (option string, err error) {
	if !t.hive {
		return "", nil
	}
	inFile, err := db.describe(ctx, "SELECT * FROM read_parquet("+quote(escapeDuckDBGlob(t.paths[0]))+", hive_partitioning = false)")
	if err != nil {
		return "", err
	}
	var types []string
	for _, key := range slices.Compact(slices.Sorted(slices.Values(hiveKeys(db.root, t.paths[0])))) {
		if column, there := inFile[key]; there {
			types = append(types, quote(key)+": "+column.sqlType)
		}
	}
	if len(types) == 0 {
		return "", nil
	}
	return ", hive_types = {" + strings.Join(types, ", ") + "}", nil
}

// escapeDuckDBGlob: read_parquet takes each path for a pattern.
func escapeDuckDBGlob(path string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(path)
}

func (db *DB) viewColumn(c output.Column, e existingColumn) string {
	if shifted := db.shifts.SQL(keys.Of(c.Name), identifier(c.Name)); e.sqlType != "" && shifted != identifier(c.Name) {
		return fmt.Sprintf("CAST(%s AS %s) AS %s", shifted, c.Type, identifier(c.Name))
	}
	switch e.sqlType {
	case string(c.Type):
		return identifier(c.Name)
	case "":
		return fmt.Sprintf("CAST(NULL AS %s) AS %s", c.Type, identifier(c.Name))
	default:
		return fmt.Sprintf("CAST(%s AS %s) AS %s", identifier(c.Name), c.Type, identifier(c.Name))
	}
}

func comments(t output.Table) (statements []string) {
	if t.Row != "" {
		statements = append(statements, fmt.Sprintf("COMMENT ON VIEW %s IS %s", identifier(t.Name), quote("a row is "+t.Row)))
	}
	return statements
}

// columnSet are the columns that a table's files have together.
type columnSet map[string]existingColumn

type existingColumn struct {
	position int
	sqlType  string
}

func (s columnSet) order() []string {
	names := make([]string, len(s))
	for name, c := range s {
		names[c.position] = name
	}
	return names
}

func (db *DB) describe(ctx context.Context, query string) (columnSet, error) {
	rows, err := db.conn.QueryContext(ctx, "SELECT column_name, column_type FROM (DESCRIBE "+query+")")
	if err != nil {
		return nil, FirstLine(err)
	}
	defer rows.Close()
	set := columnSet{}
	for rows.Next() {
		var name, sqlType string
		if err := rows.Scan(&name, &sqlType); err != nil {
			return nil, err
		}
		set[name] = existingColumn{len(set), sqlType}
	}
	return set, rows.Err()
}
