package output

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

//go:generate go run ./schemadoc ../docs/schema.md

const markdownIntroduction = `# The dataset

<!-- Made by "go generate ./output" from the tables of the schema; do not edit. -->

Schema version **%s**; [schema-changes.md](schema-changes.md) says what each version changed.

A dataset is a directory of Parquet tables: ` + "`DATASET/<table>/**/*.parquet`" + `, with or without hive keys
(` + "`date=…/job=…`" + `) in between. It describes itself: ` + "`schema_field`" + ` has a row for each column below, and
each file carries the schema version, the tool version and the session in its key-value metadata
(` + "`ebpfprof.schema_version`, `ebpfprof.tool_version`, `ebpfprof.session_id`, `ebpfprof.table`" + `).

    ebpfprof query DATASET 'SELECT name, count(*) FROM span GROUP BY ALL ORDER BY 2 DESC LIMIT 10'
    cd DATASET && duckdb -init views.sql

## Conventions
- Every row has ` + "`session_id`" + `. Times are nanoseconds since the Unix epoch, durations nanoseconds, both BIGINT.
  ` + "`ebpfprof query` and `views.sql` add `ts`" + `: the same as a timestamp, in UTC.
- Absent is NULL, never 0 or ''. A 0 is a value: rank 0, stream 0.
- No unsigned columns, no nanosecond timestamps: DuckDB, Spark and Trino read the same values.
- Parquet field ids are stable and never used again. Strings and values that repeat are dictionary-encoded, times and
  ids delta-encoded, pages compressed with zstd. Row groups have %d rows, sorted by ` + "`ts_ns`" + ` (and say so).
- Each table has a file ` + "`schema.parquet`" + ` without rows, so that ` + "`SELECT … FROM 'DATASET/span/**/*.parquet'`" + ` works,
  with all columns, even when nothing was recorded.

## What a crash costs
A file is written under a hidden name, closed, read back, flushed to disk and renamed: every ` + "`*.parquet`" + ` that can be
seen is whole. The growing tables (` + "`span`, `sample`, `stack`,\n`memory`, `slice`, `counter`, `flow`, `io`, `warning`" +
	`) get a new file every 60 s or 64 MB, whichever is
first; the small ones are rewritten whole at that moment, but for rows that are final (processes and threads that have ended,
libraries), which get a new file too, once. A tracer that is killed therefore loses at most the last 60 s
(or 64 MB) before it, and ` + "`probe`" + `, which is written when the recording ends. Its unfinished files
(` + "`.*.inprogress`" + `) can be deleted. On a full disk what was closed stays readable, the unfinished files are removed,
and the recording ends with an error.
`

// Markdown returns docs/schema.md.
func Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, markdownIntroduction, SchemaVersion, RowGroupRows)
	b.WriteString("\n## Tables\n| table | a row is |\n| --- | --- |\n")
	for _, t := range Schema() {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", t.Name, t.Name, cellText(t.Row))
	}
	for _, t := range Schema() {
		b.WriteString("\n" + TableMarkdown(t))
	}
	b.WriteString("\n## Views\n`ebpfprof query` and `views.sql` make these of the tables.\n")
	for _, v := range DerivedViews() {
		b.WriteString("\n" + TableMarkdown(v.Table))
	}
	b.WriteString(estimatesMarkdown)
	return b.String()
}

// TableMarkdown returns the section of one table.
func TableMarkdown(t Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\nA row is %s.", t.Name, t.Row)
	if t.Description != "" {
		b.WriteString(" " + t.Description)
	}
	b.WriteString("\n\n")
	writeColumns(&b, t.Columns)
	for _, c := range t.Columns {
		if c.Type == FrameList {
			fmt.Fprintf(&b, "\nEach element of `%s`:\n\n", c.Name)
			writeColumns(&b, FrameFields)
		}
	}
	return b.String()
}

func writeColumns(b *strings.Builder, columns []Column) {
	b.WriteString("| column | type | unit | null | id | meaning |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, c := range columns {
		null := ""
		if c.Nullable {
			null = "yes"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %d | %s |\n", c.Name, c.Type, c.Unit, null, c.FieldID, cellText(c.Description))
	}
}

func cellText(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// Fingerprint is a hash of everything in the schema that a reader can depend
// on: names, order, types, units, nullability, field ids. docs/schema-changes.md
// records it with each version, so that none changes in silence.
func Fingerprint() string {
	h := sha256.New()
	for _, t := range Schema() {
		for _, c := range t.Columns {
			fmt.Fprintf(h, "%s\t%s\t%s\t%s\t%t\t%d\n", t.Name, c.Name, c.Type, c.Unit, c.Nullable, c.FieldID)
		}
	}
	for _, v := range DerivedViews() {
		for _, c := range v.Columns {
			fmt.Fprintf(h, "%s\t%s\t%s\t%s\t%t\t%d\n", v.Name, c.Name, c.Type, c.Unit, c.Nullable, c.FieldID)
		}
	}
	for _, c := range FrameFields {
		fmt.Fprintf(h, "frame\t%s\t%s\t%s\t%t\t%d\n", c.Name, c.Type, c.Unit, c.Nullable, c.FieldID)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// WriteSchema writes tables as JSON, with the version of the schema.
func WriteSchema(w io.Writer, tables []Table) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Version string  `json:"schema_version"`
		Tables  []Table `json:"tables"`
	}{SchemaVersion, tables})
}
