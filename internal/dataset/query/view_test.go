package query

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
)

var viewStatement = regexp.MustCompile(`(?s)CREATE.*?;`)

// TestViewsOfTheShellAreThoseOfQuery runs views.sql as the duckdb shell does.
func TestViewsOfTheShellAreThoseOfQuery(t *testing.T) {
	dir := record(t, filepath.Join(t.TempDir(), "d"))
	text, err := os.ReadFile(filepath.Join(dir, output.ViewsFile))
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, dir)
	shell, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	shell.SetMaxOpenConns(1)
	t.Cleanup(func() { shell.Close() })
	t.Chdir(dir)
	ctx := context.Background()
	if n := len(viewStatement.FindAllString(string(text), -1)); n != len(output.Schema())+len(output.DerivedViews()) {
		t.Errorf("%d views", n)
	}
	if _, err := shell.ExecContext(ctx, string(text)); err != nil {
		t.Fatal(err)
	}
	views := output.Schema()
	for _, v := range output.DerivedViews() {
		views = append(views, v.Table)
	}
	for _, table := range views {
		for _, query := range []string{"DESCRIBE " + table.Name, "SELECT * FROM " + table.Name + " ORDER BY ALL"} {
			want := run(t, db, query)
			if got := shellRows(t, shell, query); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: the shell has %v, query %v", query, got, want)
			}
		}
	}
}

// shellRows are the rows of a query without this package.
func shellRows(t *testing.T, shell *sql.DB, query string) (all [][]any) {
	t.Helper()
	rows, err := shell.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		all = append(all, values)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
