package spark

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asked is a database whose other side answers each query with lines.
func asked(t *testing.T, answers func(q question) []string) *sql.DB {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	go func() {
		defer theirs.Close()
		lines := bufio.NewScanner(theirs)
		for lines.Scan() {
			var q question
			if json.Unmarshal(lines.Bytes(), &q) != nil {
				return
			}
			said := answers(q)
			if said == nil {
				return
			}
			if _, err := theirs.Write([]byte(strings.Join(said, "\n") + "\n")); err != nil {
				return
			}
		}
	}()
	db := sql.OpenDB(connector{newConnection(ours)})
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestRowsAreWhatSparkSaid(t *testing.T) {
	db := asked(t, func(q question) []string {
		switch q.SQL {
		case "values":
			return []string{`{"columns":["a","b","c","d","e"]}`,
				`{"rows":[[1,"x",null,true,{"float":"0.1"}],[-9223372036854775808,"","y",false,{"float":"nan"}]]}`, `{"rows":[]}`, `{}`}
		case "args":
			return []string{`{"columns":["a"]}`, fmt.Sprintf(`{"rows":[["%v %v"]]}`, q.Args[0], q.Args[1]), `{}`}
		case "none":
			return []string{`{"columns":["a"]}`, `{"rows":[]}`, `{}`}
		case "late":
			return []string{`{"columns":["a"]}`, `{"rows":[[1]]}`, `{"error":"later"}`}
		case "strange":
			return []string{`{"columns":["a"]}`, `{"rows":[[[1]]]}`, `{}`}
		}
		return []string{`{"error":"no such table\n  at line 1"}`}
	})
	rows, err := db.Query("values")
	if err != nil {
		t.Fatal(err)
	}
	var a int64
	var b string
	var c sql.NullString
	var d bool
	var e float64
	if !rows.Next() || rows.Scan(&a, &b, &c, &d, &e) != nil || a != 1 || b != "x" || c.Valid || !d || e != 0.1 {
		t.Error(a, b, c, d, e, rows.Err())
	}
	// What is left of one query is not the answer to the next.
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow("args", 7, "seven").Scan(&b); err != nil || b != "7 seven" {
		t.Error(b, err)
	}
	if err := db.QueryRow("none").Scan(&b); !errors.Is(err, sql.ErrNoRows) {
		t.Error(err)
	}
	if err := db.QueryRow("other").Scan(&b); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(),
		"no such table") {
		t.Error(err)
	}
	late, err := db.Query("late")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for late.Next() {
		n++
	}
	if n != 1 || late.Err() == nil {
		t.Errorf("%d rows, %v", n, late.Err())
	}
	late.Close()
	if err := db.QueryRow("strange").Scan(&b); err == nil {
		t.Error("a list was taken for a value")
	}
	if err := db.QueryRow("args", 1, 2).Scan(&b); err != nil || b != "1 2" {
		t.Error(b, err)
	}
}

func TestASparkThatEndsOrIsCancelledIsAnError(t *testing.T) {
	db := asked(t, func(question) []string { return nil })
	var n int
	for range 2 {
		if err := db.QueryRow("x").Scan(&n); err == nil || !strings.Contains(err.Error(), "Spark") {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	db = asked(t, func(question) []string {
		cancel()
		<-t.Context().Done()
		return nil
	})
	if err := db.QueryRowContext(ctx, "x").Scan(&n); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestWithoutSparkTheErrorSaysWhatToDo(t *testing.T) {
	home := t.TempDir()
	t.Setenv("SPARK_HOME", "")
	t.Setenv("PATH", home)
	t.Setenv("TMPDIR", t.TempDir())
	if _, err := Open(t.Context(), Local, nil); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
	t.Setenv("SPARK_HOME", home)
	if _, err := Open(t.Context(), Local, nil); err == nil {
		t.Error("a Spark that is not there was started")
	}
	script := "#!/bin/sh\necho 'Exception: JAVA_HOME is not set' >&2\necho done\nexit 1\n"
	if err := errors.Join(os.Mkdir(filepath.Join(home, "bin"), 0o755), os.WriteFile(filepath.Join(home, "bin/spark-submit"), []byte(script),
		0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Local, nil); err == nil || !strings.Contains(err.Error(), "JAVA_HOME is not set") ||
		strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}
