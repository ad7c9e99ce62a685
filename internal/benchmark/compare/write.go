package compare

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/inventory"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

// Comparison is a table with what has to be known before it is read.
type Comparison struct {
	Differs     []inventory.Difference
	Left, Right int // runs
	Table       *Table
}

// Formats are the names that Write knows.
func Formats() []string { return []string{"text", "markdown", "csv", "json"} }

// Write writes the comparison as text for people, or as csv with the table alone.
func (c *Comparison) Write(w io.Writer, format string) error {
	if format == "csv" {
		return c.writeCSV(w)
	}
	if _, err := io.WriteString(w, c.before()); err != nil {
		return err
	}
	var columns []any
	for _, name := range c.Table.Columns {
		columns = append(columns, name)
	}
	t := terminal.PlainTable(append(columns, "noise (%)", "verdict")...)
	for _, line := range c.Table.Rows {
		row := table.Row{}
		for _, cell := range line.Cells {
			row = append(row, shown(cell))
		}
		noise := "-"
		if line.Change.NoisePercent > 0 {
			noise = fmt.Sprintf("± %.1f", line.Change.NoisePercent)
		}
		t.AppendRow(append(row, noise, string(line.Change.Verdict)))
	}
	if format == "markdown" {
		_, err := io.WriteString(w, t.RenderMarkdown()+"\n")
		return err
	}
	terminal.Render(w, t)
	return nil
}

// before says what differs before anything is compared.
func (c *Comparison) before() string {
	text := fmt.Sprintf("left: %s; right: %s\n", counted(c.Left), counted(c.Right))
	if len(c.Differs) == 0 {
		return text + "Nothing of what the runs ran on and with differs, as far as it is known.\n\n"
	}
	text += "What differs between them, right → left:\n"
	for _, d := range c.Differs {
		text += fmt.Sprintf("  %s: %s → %s\n", d.Key, orUnknown(d.After), orUnknown(d.Before))
	}
	return text + "\n"
}

func counted(runs int) string {
	if runs == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", runs)
}

func orUnknown(s string) string {
	if s == "" {
		return "not known"
	}
	return s
}

func shown(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', 5, 64)
	}
	return text(v)
}

// writeCSV has values as they are, and what differs in no row.
func (c *Comparison) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(append(append([]string{}, c.Table.Columns...), "noise_percent", "verdict")); err != nil {
		return err
	}
	for _, line := range c.Table.Rows {
		var cells []string
		for _, cell := range line.Cells {
			cells = append(cells, text(cell))
		}
		if err := out.Write(append(cells, text(line.Change.NoisePercent), string(line.Change.Verdict))); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// WriteJSON writes the table as a list of objects, by columns.
func (c *Comparison) WriteJSON(w io.Writer) error {
	type row struct {
		Columns map[string]any `json:"columns"`
		Change
	}
	out := struct {
		Differs []inventory.Difference `json:"differs"`
		Left    int                    `json:"left_runs"`
		Right   int                    `json:"right_runs"`
		Rows    []row                  `json:"rows"`
	}{c.Differs, c.Left, c.Right, []row{}}
	for _, line := range c.Table.Rows {
		r := row{Columns: map[string]any{}, Change: line.Change}
		for i, name := range c.Table.Columns {
			r.Columns[name] = finite(line.Cells[i])
		}
		out.Rows = append(out.Rows, r)
	}
	encoder := json.NewEncoder(printable.JSON(w))
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

// finite is null for what JSON has no number for.
func finite(v any) any {
	if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		return nil
	}
	return v
}
