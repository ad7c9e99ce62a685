package data

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func queryDataset(t *testing.T) string {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	call := &event.Call{Layer: "op", Name: "aten::add"}
	err = errors.Join(
		d.Session(event.Recording{ID: "s"}),
		d.Write(&event.Batch{Spans: []event.Span{{ID: 1, StartNS: 1, DurationNS: 5, Call: call, Weight: 1}}}),
		d.Close())
	if err != nil {
		t.Fatal(err)
	}
	return d.Dir()
}

func TestQueryPrintsInEachFormat(t *testing.T) {
	dir := queryDataset(t)
	file := filepath.Join(t.TempDir(), "q.sql")
	if err := os.WriteFile(file, []byte("-- c\nSELECT name FROM span"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		input     string
		arguments []string
		want      string
	}{
		{"", []string{dir, "SELECT name FROM span"}, "│ aten::add │"},
		{"", []string{dir, "SELECT name FROM span", "--format", "csv"}, "name\r\naten::add\r\n"},
		{"", []string{"--format=json", dir, "-- c\nSELECT name FROM span"}, `{"name": "aten::add"}`},
		{"SELECT name FROM span", []string{dir, "-", "--format", "markdown"}, "| aten::add |"},
		{"SELECT name FROM span", []string{dir, "--file", "-"}, "aten::add"},
		{"", []string{dir, "--file", file}, "aten::add"},
		{"", []string{"--example", "operators", dir}, "aten::add"},
		{"", []string{"--list-examples"}, "operators"},
	} {
		out, _, code, err := testcommand.RunWith(c.input, QueryCommand(), c.arguments...)
		if code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%q: %v\n%s", c.arguments, err, out)
		}
	}
}

func TestQueryMistakesAreOneSentenceAndACode(t *testing.T) {
	dir := queryDataset(t)
	damaged := queryDataset(t)
	files, err := filepath.Glob(filepath.Join(damaged, "*", "*.parquet"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files of the dataset: %v", len(files), err)
	}
	for _, path := range files {
		if err := os.WriteFile(path, []byte("PAR1"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		arguments []string
		code      int
	}{
		{nil, 2},
		{[]string{dir}, 2},
		{[]string{dir, "SELECT 1", "SELECT 2"}, 2},
		{[]string{dir, "SELECT 1", "--example", "operators"}, 2},
		{[]string{dir, "--example", "nope"}, 2},
		{[]string{dir, "SELECT 1", "--format", "xml"}, 2},
		{[]string{dir, "SELECT 1", "--nope"}, 2},
		{[]string{dir, "SELEC 1"}, 1},
		{[]string{dir, "SELECT nope FROM span"}, 1},
		{[]string{dir, "DROP VIEW span"}, 1},
		{[]string{dir, "--file", filepath.Join(dir, "nope.sql")}, 1},
		{[]string{filepath.Join(dir, "nope"), "SELECT 1"}, 1},
		{[]string{t.TempDir(), "SELECT 1"}, 1},
		{[]string{damaged, "SELECT 1"}, 1},
	} {
		out, _, code, err := testcommand.Run(QueryCommand(), c.arguments...)
		if code != c.code || err == nil || strings.Contains(err.Error(), "\n") || out != "" {
			t.Errorf("%q: code %d, %v\n%s", c.arguments, code, err, out)
		}
	}
}

func TestQueryWarnsAboutDamagedFiles(t *testing.T) {
	dir := queryDataset(t)
	if err := os.WriteFile(filepath.Join(dir, "span", "x.parquet"), []byte("PAR1"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, warnings, code, err := testcommand.Run(QueryCommand(), dir, "SELECT count(*) AS n FROM span", "--format", "csv")
	if code != 0 || out != "n\r\n1\r\n" || !strings.Contains(warnings, "span/x.parquet") || strings.Count(warnings, "\n") != 1 {
		t.Errorf("%v\n%s\n%s", err, out, warnings)
	}
}
