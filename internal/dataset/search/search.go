// Package search finds where a word occurs in a dataset: in names of calls, kernels
// and scopes, in functions and files of stacks, in commands, threads, libraries,
// counters and warnings.
package search

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// Hit is a name in which the word occurs, with how often and how long what has it
// was recorded.
type Hit struct {
	Kind    string   `json:"kind"` // what has the name: op, kernel, line, process, …
	Name    string   `json:"name"`
	Count   int64    `json:"count"`
	TotalMS *float64 `json:"total_ms"`
	FirstMS *float64 `json:"first_at_ms"` // since the recording's first row
	SQL     string   `json:"sql"`         // selects the rows
}

// places to look at: kind, name, count, total in ns, first ts_ns, and the condition
// that selects the rows again, with the name quoted behind it.
const query = `
WITH first AS (SELECT min(t) AS t FROM (SELECT min(ts_ns) AS t FROM memory.main.span UNION ALL SELECT min(ts_ns) FROM memory.main.sample)),
hits AS (
	SELECT CASE WHEN layer = 'device' THEN coalesce(category, 'device') ELSE layer END AS kind, name, count(*) AS n,
	sum(duration_ns * weight)::DOUBLE AS ns, min(ts_ns) AS ts, 'SELECT * FROM span WHERE name = ' AS sql
	FROM span WHERE contains(lower(name), lower($1)) GROUP BY ALL
	UNION ALL
	SELECT 'line', f.file || ':' || coalesce(f.line, 0) || ' ' || coalesce(f."function", ''), count(DISTINCT s.stack_id), NULL, NULL,
		'SELECT * FROM stack WHERE contains(folded, ' || '''' || replace(coalesce(f."function", ''), '''', '''''') || ''') -- '
	FROM stack s, unnest(frames) AS u(f) WHERE f.kind = 'python'
	AND (contains(lower(f."function"), lower($1)) OR contains(lower(f.file), lower($1))) GROUP BY f.file, f.line, f."function"
	UNION ALL
	SELECT 'native function', f."function", count(DISTINCT s.stack_id), NULL, NULL,
	'SELECT * FROM stack WHERE contains(folded, ' || '''' || replace(f."function", '''', '''''') || ''') -- '
	FROM stack s, unnest(frames) AS u(f) WHERE f.kind <> 'python' AND contains(lower(f."function"), lower($1)) GROUP BY f."function"
	UNION ALL
	SELECT 'process', command, count(*), NULL, min(started_ns), 'SELECT * FROM process WHERE command = ' FROM process
	WHERE contains(lower(command), lower($1)) GROUP BY ALL
	UNION ALL
	SELECT 'thread', name, count(*), NULL, NULL, 'SELECT * FROM thread WHERE name = ' FROM thread WHERE contains(lower(name), lower($1))
	GROUP BY ALL
	UNION ALL
	SELECT 'library', path, count(*), NULL, NULL, 'SELECT * FROM library WHERE path = ' FROM library WHERE contains(lower(path), lower($1))
	GROUP BY ALL
	UNION ALL
	SELECT 'counter', name, count(*), NULL, min(ts_ns), 'SELECT * FROM counter WHERE name = ' FROM counter
	WHERE contains(lower(name), lower($1)) GROUP BY ALL
	UNION ALL
	SELECT 'warning', coalesce(detail, kind), sum(count)::BIGINT, NULL, min(ts_ns), 'SELECT * FROM warning WHERE coalesce(detail, kind) = '
	FROM warning WHERE contains(lower(coalesce(detail, '') || ' ' || kind || ' ' || source), lower($1)) GROUP BY ALL)
SELECT kind, name, n, ns / 1e6, (ts - first.t) / 1e6, sql || '''' || replace(name, '''', '''''') || ''''
FROM hits, first WHERE name IS NOT NULL ORDER BY ns DESC NULLS LAST, n DESC, name LIMIT 1000`

// Run looks for the text, whatever its case: what took the most time first.
func Run(ctx context.Context, db *dataset.DB, text string) ([]Hit, error) {
	rows, err := db.Query(ctx, query, text)
	if err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	defer rows.Close()
	hits := []Hit{}
	for rows.Next() {
		var h Hit
		if err := rows.Scan(&h.Kind, &h.Name, &h.Count, &h.TotalMS, &h.FirstMS, &h.SQL); err != nil {
			return nil, fmt.Errorf("searching: %w", err)
		}
		hits = append(hits, h)
	}
	return hits, rows.Err()
}

// WriteText writes the first top hits (0 is all) as a table.
func WriteText(w io.Writer, hits []Hit, top int) error {
	out := bufio.NewWriter(w)
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.SuppressTrailingSpaces()
	t.AppendHeader(table.Row{"kind", "rows", "total ms", "first at ms", "name"})
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight}, {Number: 3, Align: text.AlignRight},
		{Number: 4, Align: text.AlignRight}})
	shown := len(hits)
	if top > 0 {
		shown = min(shown, top)
	}
	for _, h := range hits[:shown] {
		name := []rune(printable.Text(h.Name))
		if len(name) > 100 {
			name = append(name[:99], '…')
		}
		t.AppendRow(table.Row{h.Kind, h.Count, optional(h.TotalMS), optional(h.FirstMS), string(name)})
	}
	if shown > 0 {
		fmt.Fprintln(out, t.Render())
	}
	if left := len(hits) - shown; left > 0 {
		fmt.Fprintf(out, "%d more; --top 0 shows all\n", left)
	}
	return out.Flush()
}

func optional(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.3f", *v)
}
