package query

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// Formats are the names that Write knows; the first is the default, on a
// terminal and in a pipe alike.
func Formats() []string { return []string{"table", "csv", "json", "markdown"} }

// Write runs a SELECT and writes its rows to w: table (aligned, NULL shown as
// NULL, control characters as escapes), csv (RFC 4180, NULL an empty field, an empty text a quoted one), json (an array
// of objects, integers exact, NaN and infinities as strings) or markdown. csv
// and json are written as rows come, the others at the end.
func (db *DB) Write(ctx context.Context, w io.Writer, query, format string) error {
	out := bufio.NewWriter(w)
	var err error
	switch format {
	case "csv":
		err = db.writeCSV(ctx, out, query)
	case "json":
		_, err = db.writeJSON(ctx, out, query, Most{})
	case "table", "markdown":
		err = db.writeTable(ctx, out, query, format)
	default:
		return fmt.Errorf("unknown format %q: one of %s", format, strings.Join(Formats(), ", "))
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// Most is how much of an answer is written: rows, and bytes, which the last row may exceed. 0 is all.
type Most struct{ Rows, Bytes int }

var errEnough = errors.New("enough rows")

// WriteFirst writes the first rows of a SELECT as Write does as json, and returns whether there are more.
func (db *DB) WriteFirst(ctx context.Context, w io.Writer, query string, most Most) (more bool, err error) {
	out := bufio.NewWriter(w)
	if more, err = db.writeJSON(ctx, out, query, most); err != nil {
		return false, err
	}
	return more, out.Flush()
}

func (db *DB) writeCSV(ctx context.Context, out *bufio.Writer, query string) error {
	var kinds []Column
	line := func(n int, field func(i int) string) error {
		for i := range n {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(field(i))
		}
		_, err := out.WriteString("\r\n")
		return err
	}
	return db.each(ctx, query, func(columns []Column) error {
		kinds = columns
		return line(len(columns), func(i int) string { return csvField(columns[i].Name) })
	}, func(row []any) error {
		return line(len(row), func(i int) string {
			if row[i] == nil {
				return ""
			}
			return csvField(plain(row[i], kinds[i].Type))
		})
	})
}

func csvField(s string) string {
	if s == "" || strings.ContainsAny(s, ",\"\r\n") {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

func (db *DB) writeJSON(ctx context.Context, out *bufio.Writer, query string, most Most) (more bool, err error) {
	var columns []Column
	var names []string
	rows, bytes := 0, 0
	err = db.each(ctx, query, func(c []Column) error {
		columns = c
		for _, column := range c {
			names = append(names, jsonText(column.Name))
		}
		return nil
	}, func(row []any) error {
		if most.Rows > 0 && rows == most.Rows || most.Bytes > 0 && bytes >= most.Bytes {
			return errEnough
		}
		var line strings.Builder
		line.WriteString(map[bool]string{true: "[\n  {", false: ",\n  {"}[rows == 0])
		rows++
		for i, value := range row {
			if i > 0 {
				line.WriteString(", ")
			}
			line.WriteString(names[i] + ": " + jsonValue(value, columns[i].Type))
		}
		line.WriteString("}")
		bytes += line.Len()
		_, err := out.WriteString(line.String())
		return err
	})
	if more = errors.Is(err, errEnough); err != nil && !more {
		return false, err
	}
	if rows == 0 {
		out.WriteByte('[')
	} else {
		out.WriteByte('\n')
	}
	_, err = out.WriteString("]\n")
	return more, err
}

func (db *DB) writeTable(ctx context.Context, out *bufio.Writer, query, format string) error {
	r, err := db.Run(ctx, query)
	if err != nil {
		return err
	}
	t := table.NewWriter()
	t.SetOutputMirror(out)
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	header := table.Row{}
	var configs []table.ColumnConfig
	for i, c := range r.Columns {
		header = append(header, printable.Text(c.Name))
		align := text.AlignLeft
		if numeric(c.Type) {
			align = text.AlignRight
		}
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	t.SetColumnConfigs(configs)
	t.AppendHeader(header)
	for _, row := range r.Rows {
		cells := table.Row{}
		for i, value := range row {
			cells = append(cells, printable.Lines(plain(value, r.Columns[i].Type)))
		}
		t.AppendRow(cells)
	}
	if format == "markdown" {
		t.RenderMarkdown()
	} else {
		t.Render()
	}
	return nil
}

// numeric says whether a column is aligned to the right.
func numeric(sqlType string) bool {
	for _, prefix := range []string{"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
		"UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL"} {
		if strings.HasPrefix(sqlType, prefix) && !strings.HasSuffix(sqlType, "]") {
			return true
		}
	}
	return false
}

// plain is a value as text.
func plain(value any, sqlType string) string {
	switch v := value.(type) {
	case nil:
		return "NULL"
	case string:
		return v
	case float64:
		return float(v, 64)
	case float32:
		return float(float64(v), 32)
	case time.Time:
		return timeText(v, sqlType)
	case *big.Int:
		return v.String()
	case []byte:
		return bytesText(v, sqlType)
	case duckdb.Interval:
		return fmt.Sprintf("%d months %d days %s", v.Months, v.Days, time.Duration(v.Micros)*time.Microsecond)
	case []any, map[string]any, duckdb.OrderedMap, duckdb.Union:
		return jsonValue(v, sqlType)
	default:
		return fmt.Sprint(v)
	}
}

func float(v float64, bits int) string {
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e15) {
		return strconv.FormatFloat(v, 'g', -1, bits)
	}
	return strconv.FormatFloat(v, 'f', -1, bits)
}

func timeText(v time.Time, sqlType string) string {
	switch {
	case sqlType == "DATE":
		return v.Format(time.DateOnly)
	case strings.HasPrefix(sqlType, "TIME") && !strings.HasPrefix(sqlType, "TIMESTAMP"):
		return v.Format("15:04:05.999999999")
	default:
		return v.UTC().Format("2006-01-02 15:04:05.999999999")
	}
}

func bytesText(v []byte, sqlType string) string {
	if sqlType == "UUID" && len(v) == 16 {
		return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])
	}
	return hex.EncodeToString(v)
}

// jsonValue is a value as JSON. Integers are written in full, however large.
func jsonValue(value any, sqlType string) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int8, int16, int32, int64, uint8, uint16, uint32, uint64, int, *big.Int:
		return fmt.Sprint(v)
	case float64:
		return jsonFloat(v, 64)
	case float32:
		return jsonFloat(float64(v), 32)
	case duckdb.Decimal:
		return v.String()
	case []any:
		return jsonList(v)
	case map[string]any:
		return jsonStruct(v)
	case duckdb.OrderedMap:
		return jsonMap(v)
	case duckdb.Union:
		return jsonValue(v.Value, "")
	default:
		return jsonText(plain(v, sqlType))
	}
}

func jsonFloat(v float64, bits int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return jsonText(strconv.FormatFloat(v, 'g', -1, bits))
	}
	return float(v, bits)
}

func jsonList(list []any) string {
	items := make([]string, len(list))
	for i, item := range list {
		items[i] = jsonValue(item, "")
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// jsonStruct sorts the fields: the driver hands them over without their order.
func jsonStruct(fields map[string]any) string {
	pairs := make([]string, 0, len(fields))
	for name, value := range fields {
		pairs = append(pairs, jsonText(name)+": "+jsonValue(value, ""))
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, ", ") + "}"
}

func jsonMap(m duckdb.OrderedMap) string {
	keys, values := m.Keys(), m.Values()
	pairs := make([]string, len(keys))
	for i, key := range keys {
		pairs[i] = jsonText(plain(key, "")) + ": " + jsonValue(values[i], "")
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

// jsonText leaves <, > and & alone: C++ names are full of them.
func jsonText(s string) string {
	var b strings.Builder
	encoder := json.NewEncoder(printable.JSON(&b))
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
