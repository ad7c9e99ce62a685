// Package dataset opens a dataset for reading: its files checked, a view per
// table, an embedded DuckDB in memory that sees nothing outside the dataset's
// directory and writes nothing into it. Damaged files are left out and named,
// so that one of them does not take the others with it.
//
// The analyses stand on it. SQL that users type goes through internal/dataset/query,
// which allows SELECTs alone.
package dataset

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/ebpfprof/ebpfprof/internal/dataset/keys"
	"github.com/ebpfprof/ebpfprof/output"
)

var (
	// ErrNotDataset is returned by Open for a directory without any table.
	ErrNotDataset = errors.New("not an ebpfprof dataset")
	// ErrCorrupt is returned by Open when no file of the dataset can be read.
	ErrCorrupt = errors.New("corrupt dataset")
)

// DB is an opened dataset. It holds one DuckDB connection: use it from one
// goroutine at a time.
type DB struct {
	root     string
	pool     *sql.DB
	conn     *sql.Conn
	spill    *spill // nil: everything stays in memory
	warnings []string
	files    *files
	part     Part
	partOf   map[Process]bool // of the part's rank; nil is all
	limits   Limits
	shifts   keys.Shifts // of the recordings whose numbers another has; nil where there is none
}

// Open makes a view of each table of the dataset. The files are those that are
// there now; what is added later shows in the next Open.
func Open(dataset string) (*DB, error) { return OpenWithin(dataset, Limits{}) }

// OpenWithin is Open with limits on what DuckDB may use.
func OpenWithin(dataset string, limits Limits) (*DB, error) {
	root, found, err := find(dataset)
	if err != nil {
		return nil, err
	}
	db, err := openDuckDB()
	if err != nil {
		return nil, fmt.Errorf("opening dataset %s: %w", dataset, err)
	}
	db.limits = limits
	db.root, db.warnings, db.files = root, append(db.warnings, found.warnings()...), found
	if err := db.prepare(root, found); err != nil {
		return nil, errors.Join(fmt.Errorf("opening dataset %s: %w", dataset, err), db.Close())
	}
	if err := db.versions(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("opening dataset %s: %w", dataset, err), db.Close())
	}
	return db, nil
}

// resolve returns the absolute path behind links: what DuckDB compares with.
func resolve(dataset string) (string, error) {
	info, err := os.Stat(dataset)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("there is no dataset %s: %w", dataset, os.ErrNotExist)
	}
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is %w: a dataset is a directory", dataset, ErrNotDataset)
	}
	root, err := filepath.EvalSymlinks(dataset)
	if err != nil {
		return "", err
	}
	return filepath.Abs(root)
}

func openDuckDB() (*DB, error) {
	pool, err := sql.Open("duckdb", "")
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	db := &DB{pool: pool, conn: conn}
	if db.spill, err = newSpill(); err != nil {
		db.warnings = append(db.warnings, fmt.Sprintf("a query that does not fit into memory fails: %v", err))
	}
	return db, nil
}

// manyFiles is from how many files on their footers are kept from one query to the next. A store's
// files are written once; what is being recorded has few, of which some are written anew.
const manyFiles = 500

// prepare makes the views and then shuts the doors: the settings cannot be
// changed back.
func (db *DB) prepare(root string, f *files) error {
	ctx := context.Background()
	statements := append([]string{"SET TimeZone = 'UTC'"}, db.limits.settings()...)
	if f.good > manyFiles {
		statements = append(statements, "SET parquet_metadata_cache = true")
	}
	if err := db.execAll(ctx, statements); err != nil {
		return err
	}
	if err := db.tableViews(ctx, f); err != nil {
		return err
	}
	statements = nil
	for _, v := range output.DerivedViews() {
		statements = append(statements, fmt.Sprintf("CREATE VIEW %s AS %s", identifier(v.Name), v.SQL))
		statements = append(statements, comments(v.Table)...)
	}
	statements = append(statements,
		"SET temp_directory = "+quote(db.spillPath()),
		// The second is for the views' patterns, before they match anything.
		fmt.Sprintf("SET allowed_directories = [%s, %s]", quote(root), quote(escapeDuckDBGlob(root))),
		"SET enable_external_access = false",
		"SET lock_configuration = true")
	return db.execAll(ctx, statements)
}

// tableViews makes a view of each table. Where two recordings have the same numbers the views are made again.
func (db *DB) tableViews(ctx context.Context, f *files) error {
	views := func() error {
		for _, t := range f.tables {
			view, err := db.viewOf(ctx, t)
			if err != nil {
				return err
			}
			if err := db.execAll(ctx, view); err != nil {
				return err
			}
		}
		return nil
	}
	if err := views(); err != nil {
		return err
	}
	if err := db.chooseShifts(ctx); err != nil || len(db.shifts) == 0 {
		return err
	}
	return views()
}

func (db *DB) execAll(ctx context.Context, statements []string) error {
	for _, s := range statements {
		if _, err := db.conn.ExecContext(ctx, s); err != nil {
			return FirstLine(err)
		}
	}
	return nil
}

// Files are the readable files of a table, by their full paths.
func (db *DB) Files(table string) []string {
	for _, t := range db.files.tables {
		if t.schema.Name == table {
			return t.paths
		}
	}
	return nil
}

// FileSource is what a query reads one of the Files FROM.
func FileSource(path string) string { return "read_parquet(" + quote(escapeDuckDBGlob(path)) + ")" }

// Warnings name the files that were left out, one sentence each.
func (db *DB) Warnings() []string { return db.warnings }

// Close releases DuckDB.
func (db *DB) Close() error {
	return errors.Join(db.conn.Close(), db.pool.Close(), db.spill.remove())
}

func (db *DB) spillPath() string {
	if db.spill == nil {
		return ""
	}
	return db.spill.path
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func identifier(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// Root is the dataset's directory, absolute and without links.
func (db *DB) Root() string { return db.root }

// Query runs SQL of the program's own on the views. Close the rows before the
// next call: there is one connection.
func (db *DB) Query(ctx context.Context, sql string, args ...any) (*sql.Rows, error) {
	rows, err := db.conn.QueryContext(ctx, sql, args...)
	if err != nil {
		return nil, FirstLine(err)
	}
	return rows, nil
}

// Exec runs statements that make temporary tables and views, in memory.
func (db *DB) Exec(ctx context.Context, sql string, args ...any) error {
	if _, err := db.conn.ExecContext(ctx, sql, args...); err != nil {
		return FirstLine(err)
	}
	return nil
}

// Row runs a query of one row and scans it.
func (db *DB) Row(ctx context.Context, sql string, args []any, targets ...any) error {
	if err := db.conn.QueryRowContext(ctx, sql, args...).Scan(targets...); err != nil {
		return FirstLine(err)
	}
	return nil
}

// message is an error cut to its first line: DuckDB's go on with the place in
// the query, which belongs on a terminal of its own.
type message struct {
	text string
	err  error
}

func (m message) Error() string { return m.text }
func (m message) Unwrap() error { return m.err }

// FirstLine makes one sentence of DuckDB's errors; the place in the query stays
// in the unwrapped one. Cancelled contexts are left as they are.
func FirstLine(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return message{strings.TrimSpace(text), err}
}

// Bytes is the size of the dataset's readable files.
func (db *DB) Bytes() (total int64) {
	for _, t := range db.files.tables {
		for _, path := range t.paths {
			if info, err := os.Stat(path); err == nil {
				total += info.Size()
			}
		}
	}
	return total
}
