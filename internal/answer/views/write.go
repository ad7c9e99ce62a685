package views

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// MarshalJSON writes the rows as objects, in the order of the columns.
func (t *Table) MarshalJSON() ([]byte, error) {
	var out strings.Builder
	head, err := json.Marshal(map[string]any{"view": t.View, "sentence": t.Sentence, "computed_on": t.LeftOut, "estimated": t.Estimated})
	if err != nil {
		return nil, err
	}
	out.Write(head[:len(head)-1])
	out.WriteString(`,"rows":[`)
	for i, row := range t.Rows {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('{')
		for k, v := range row {
			if k > 0 {
				out.WriteByte(',')
			}
			value, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "%q:%s", t.Columns[k].Name, value)
		}
		out.WriteByte('}')
	}
	out.WriteString("]}")
	return []byte(out.String()), nil
}

const barWidth = 20

// units are those of columns, which JSON has in letters.
var units = strings.NewReplacer("_percent", " %", "percent", "%", "_us", " µs")

// shades are of the shares of a bar, the first first.
var shades = []string{"█", "▒", "░"}

// bar draws the shares of a row.
func bar(shares []float64) string {
	var drawn strings.Builder
	sum, at := 0.0, 0
	for i, v := range shares {
		// By where each ends, so that all of them are never longer than the bar.
		sum += max(v, 0)
		to := min(barWidth, int(math.Round(sum/100*barWidth)))
		drawn.WriteString(strings.Repeat(shades[i%len(shades)], to-at))
		at = to
	}
	return drawn.String()
}

// WriteText writes the sentence and the table, of its first top rows (0 is all), with
// the shares as a bar.
func (t *Table) WriteText(w io.Writer, top int) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n", printable.Text(t.Sentence))
	if t.LeftOut != "" {
		fmt.Fprintf(out, "%s\n", t.LeftOut)
	}
	if t.Estimated {
		fmt.Fprintln(out, "estimated: recorded are the rows that slices saw; count, total and share are those scaled to the whole run")
	}
	rows := table.NewWriter()
	rows.SetStyle(table.StyleLight)
	rows.Style().Format.Header = text.FormatDefault
	rows.SuppressTrailingSpaces()
	header, shares, legend := table.Row{}, []int{}, []string{}
	var aligned []table.ColumnConfig
	for i, c := range t.Columns {
		if t.upper(i) {
			continue // stands in the cell before it
		}
		name := c.Name
		if t.upper(i + 1) {
			name = strings.Replace(name, "_lo_", "_", 1)
		}
		header = append(header, strings.ReplaceAll(units.Replace(name), "_", " "))
		if c.Share {
			legend = append(legend, shades[len(shares)%len(shades)]+" "+strings.TrimSpace(strings.ReplaceAll(strings.TrimSuffix(c.Name, "percent"),
				"_", " ")))
			shares = append(shares, i)
		}
		if i > 0 {
			aligned = append(aligned, table.ColumnConfig{Number: len(header), Align: text.AlignRight})
		}
	}
	rows.SetColumnConfigs(aligned)
	if len(shares) == 1 {
		legend[0] = "of 100 %"
	}
	if len(shares) > 0 {
		header = append(header, strings.Join(legend, " "))
	}
	rows.AppendHeader(header)
	shown := len(t.Rows)
	if top > 0 {
		shown = min(shown, top)
	}
	for _, row := range t.Rows[:shown] {
		cells := table.Row{}
		for i, v := range row {
			if !t.upper(i) {
				cells = append(cells, cell(v))
			} else if low, high := cell(row[i-1]), cell(v); low != high {
				cells[len(cells)-1] = low + " to " + high
			}
		}
		if len(shares) > 0 {
			parts := make([]float64, len(shares))
			for i, k := range shares {
				parts[i], _ = row[k].(float64)
			}
			cells = append(cells, bar(parts))
		}
		rows.AppendRow(cells)
	}
	fmt.Fprintln(out, rows.Render())
	if left := len(t.Rows) - shown; left > 0 {
		fmt.Fprintf(out, "%d more; --top 0 shows all\n", left)
	}
	return out.Flush()
}

// upper says whether a column is the upper end of the one before it.
func (t *Table) upper(column int) bool {
	if column < 1 || column >= len(t.Columns) {
		return false
	}
	name := t.Columns[column].Name
	return strings.Contains(name, "_hi_") && strings.Replace(name, "_hi_", "_lo_", 1) == t.Columns[column-1].Name
}

func cell(v any) string {
	switch n := v.(type) {
	case nil:
		return "–"
	case float64:
		if math.Abs(n) >= 100 {
			return fmt.Sprintf("%.1f", n)
		}
		return fmt.Sprintf("%.3f", n)
	case string:
		if r := []rune(n); len(r) > 70 {
			n = string(r[:69]) + "…"
		}
		return printable.Text(n)
	}
	return fmt.Sprint(v)
}
