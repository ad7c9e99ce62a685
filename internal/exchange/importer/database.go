package importer

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // pure Go
)

// database is a trace in SQLite's form.
type database struct {
	path   string
	db     *sql.DB
	tables map[string]map[string]bool // columns by table
	// mostRows is how many rows a table of a file of this size can have.
	mostRows int64
	late     bool // a query had no row for rowPatience: no other is asked
}

// A database is a file of somebody's, and a view or a virtual table in it a program of theirs:
// only plain tables are read, within these limits.
const (
	// heapLimit is what SQLite may take; a trace is read row by row.
	heapLimit = "&_pragma=hard_heap_limit(536870912)"
	// rowPatience is how long a row is waited for; a table without an index takes some
	// seconds a gigabyte.
	rowPatience = 2 * time.Minute
	// rowBytes are of a row, or a column's name, at the least. In a file that is not whole pages
	// may lead to the same pages again and again.
	rowBytes = 2
	// mostStrings and mostStringBytes are of a trace's table of names.
	mostStrings     = 1 << 24
	mostStringBytes = 2 << 30
)

// plainTables leaves views and virtual tables out, and with them columns that are computed.
const plainTables = "SELECT m.name, c.name FROM pragma_table_list m, pragma_table_info(m.name) c WHERE m.schema = 'main' AND m.type = 'table'"

func openDatabase(path string) (*database, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(absolute)
	if err != nil {
		return nil, fmt.Errorf("importing %s: %w", path, err)
	}
	name := (&url.URL{Scheme: "file", Path: absolute, RawQuery: "mode=ro&immutable=1&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)" +
		heapLimit}).String()
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, fmt.Errorf("importing %s: %w", path, err)
	}
	d := &database{path: path, db: db, mostRows: info.Size()/rowBytes + 1, tables: map[string]map[string]bool{}}
	err = d.each(context.Background(), plainTables, func(rows *sql.Rows) error {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			return err
		}
		if d.tables[table] == nil {
			d.tables[table] = map[string]bool{}
		}
		d.tables[table][column] = true
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s %w: %w", path, ErrFormat, damaged(err)), db.Close())
	}
	return d, nil
}

func (d *database) Close() error { return d.db.Close() }

func (d *database) each(ctx context.Context, query string, f func(*sql.Rows) error) error {
	if d.late {
		return errLate
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(rowPatience, func() { cancel(errLate) })
	defer late.Stop()
	cause := func(err error) error {
		if context.Cause(ctx) == errLate {
			d.late = true
			return errLate
		}
		return err
	}
	rows, err := d.db.QueryContext(ctx, query)
	if err != nil {
		return cause(err)
	}
	defer rows.Close()
	for read := int64(0); rows.Next(); read++ {
		late.Reset(rowPatience)
		if read >= d.mostRows {
			return errRows
		}
		if err := f(rows); err != nil {
			return err
		}
	}
	return cause(rows.Err())
}

var errRows = errors.New("a table has more rows than a file of its size can have: the database is damaged")

var errLate = fmt.Errorf("a query had no row for %s", rowPatience)

// one reads the first row of a query, if there is one.
func (d *database) one(query string, to any) error {
	read := errors.New("read")
	err := d.each(context.Background(), query, func(rows *sql.Rows) error { return cmp.Or(rows.Scan(to), read) })
	if err == read {
		return nil
	}
	return cmp.Or(err, sql.ErrNoRows)
}

// count is the number of rows of a table, 0 where it can't be read.
func (d *database) count(table string) (rows int64) {
	_ = d.one(fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s LIMIT %d)", quoted(table), d.mostRows), &rows)
	return rows
}

// texts reads a table of numbered texts, within mostStrings and mostStringBytes.
func (d *database) texts(query string) (map[int64]string, error) {
	texts, held := map[int64]string{}, 0
	err := d.each(context.Background(), query, func(rows *sql.Rows) error {
		var id int64
		var text sql.NullString
		if err := rows.Scan(&id, &text); err != nil {
			return err
		}
		if held += len(text.String); held > mostStringBytes || len(texts) >= mostStrings {
			return errLarge
		}
		texts[id] = text.String
		return nil
	})
	return texts, err
}

var errLarge = errors.New("its table of names is larger than any trace's")

// columns lists those of a table that the query wants, NULL for those that this
// version of the tool does not write.
func (d *database) columns(table string, names ...string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = "NULL"
		if d.tables[table][name] {
			all[i] = `"` + name + `"`
		}
	}
	return strings.Join(all, ", ")
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// damaged adds what to do about an error of a database that is not whole.
func damaged(err error) error {
	if text := err.Error(); strings.Contains(text, "malformed") || strings.Contains(text, "not a database") || strings.Contains(text,
		"disk I/O") {
		return fmt.Errorf("the database is damaged or was cut off, write it again (nsys export --type sqlite; rocprofv3 "+
			"--output-format rocpd): %w", err)
	}
	return err
}
