package output

import (
	"bytes"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	arrowcompress "github.com/apache/arrow-go/v18/parquet/compress"
	arrowfile "github.com/apache/arrow-go/v18/parquet/file"
	arrowschema "github.com/apache/arrow-go/v18/parquet/schema"
	parquetgo "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/ebpfprof/ebpfprof/output/columnfile"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// groupWriter writes row groups of spans; Close ends the file.
type groupWriter interface {
	writeGroup(rows []event.Span) error
	Close() error
}

// BenchmarkWriters is why package columnfile is there: the same spans, column by
// column through the same getters, into it and into the column writers of
// parquet-go and arrow-go, all with the same encodings and zstd's fastest level.
// Each has one core and writes into memory.
func BenchmarkWriters(b *testing.B) {
	for _, c := range []struct {
		name string
		open func(*testing.B, io.Writer) groupWriter
	}{{"columnfile", openColumnfile}, {"parquet-go", openParquetGo}, {"arrow-go", openArrowGo}} {
		b.Run(c.name, func(b *testing.B) {
			var rows []event.Span
			for _, batch := range newImitation().batches(RowGroupRows, false) {
				rows = append(rows, batch...)
			}
			rows = rows[:RowGroupRows]
			var out bytes.Buffer
			out.Grow(256 << 20)
			b.ReportAllocs()
			b.ResetTimer()
			cpu := processCPU(b)
			w := c.open(b, &out)
			spans := 0
			for ; spans < b.N; spans += len(rows) {
				if err := w.writeGroup(rows); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
			cpu = processCPU(b) - cpu
			b.StopTimer()
			b.ReportMetric(float64(spans)/cpu.Seconds()/1e6, "M-spans/cpu-s")
			b.ReportMetric(float64(out.Len())/float64(spans), "B/span")
			holds(b, out.Bytes(), spans)
		})
	}
}

// holds checks that a reader that wrote none of the files finds all rows.
func holds(b *testing.B, file []byte, spans int) {
	b.Helper()
	f, err := parquetgo.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		b.Fatal(err)
	}
	if f.NumRows() != int64(spans) {
		b.Fatalf("%d rows in the file, %d written", f.NumRows(), spans)
	}
}

type ours struct {
	*columnfile.Writer
	scratch scratch
}

func openColumnfile(b *testing.B, out io.Writer) groupWriter {
	e, err := columnfile.NewEncoder()
	if err != nil {
		b.Fatal(err)
	}
	w, err := columnfile.NewWriter(out, e, spanTable.fileColumns(), "bench", nil)
	if err != nil {
		b.Fatal(err)
	}
	return &ours{Writer: w}
}

func (o *ours) writeGroup(rows []event.Span) error {
	return spanTable.writeRowGroup(o.Writer, &o.scratch, "bench", rows)
}

// parquetGo hands values to parquet-go's column writers.
type parquetGo struct {
	*parquetgo.Writer
	values []parquetgo.Value
}

func openParquetGo(_ *testing.B, out io.Writer) groupWriter {
	group := parquetgo.Group{}
	for _, c := range spanTable.fileColumns() {
		var node parquetgo.Node
		switch c.Kind {
		case columnfile.Int64:
			node = parquetgo.Leaf(parquetgo.Int64Type)
		case columnfile.Int32:
			node = parquetgo.Leaf(parquetgo.Int32Type)
		case columnfile.Double:
			node = parquetgo.Leaf(parquetgo.DoubleType)
		case columnfile.Boolean:
			node = parquetgo.Leaf(parquetgo.BooleanType)
		default:
			node = parquetgo.String()
		}
		switch {
		case c.Delta:
			node = parquetgo.Encoded(node, &parquetgo.DeltaBinaryPacked)
		case c.Kind != columnfile.Boolean:
			node = parquetgo.Encoded(node, &parquetgo.RLEDictionary)
		}
		if c.Nullable {
			node = parquetgo.Optional(node)
		}
		group[c.Name] = parquetgo.Compressed(node, &zstd.Codec{Level: zstd.SpeedFastest})
	}
	return &parquetGo{Writer: parquetgo.NewWriter(out, parquetgo.NewSchema("span", group))}
}

func (p *parquetGo) writeGroup(rows []event.Span) error {
	writers := map[string]*parquetgo.ColumnWriter{}
	for i, path := range p.Schema().Columns() {
		writers[path[0]] = p.ColumnWriters()[i]
	}
	for i, c := range spanTable.fileColumns() {
		p.values = p.values[:0]
		add := func(v parquetgo.Value, ok bool) {
			switch {
			case !ok:
				v = parquetgo.NullValue().Level(0, 0, 0)
			case c.Nullable:
				v = v.Level(0, 1, 0)
			}
			p.values = append(p.values, v)
		}
		for r := range rows {
			switch v, text, float, ok := valueOf(i, &rows[r]); c.Kind {
			case columnfile.Int64:
				add(parquetgo.Int64Value(v), ok)
			case columnfile.Int32:
				add(parquetgo.Int32Value(int32(v)), ok)
			case columnfile.Boolean:
				add(parquetgo.BooleanValue(v != 0), ok)
			case columnfile.Double:
				add(parquetgo.DoubleValue(float), ok)
			default:
				add(parquetgo.ByteArrayValue([]byte(text)), ok)
			}
		}
		if _, err := writers[c.Name].WriteRowValues(p.values); err != nil {
			return err
		}
	}
	return p.Flush()
}

// valueOf is a column's value in a row; the first column is the session's id.
func valueOf(column int, row *event.Span) (v int64, text string, float float64, ok bool) {
	if column == 0 {
		return 0, "bench", 0, true
	}
	switch c := &spanTable.columns[column-1]; {
	case c.rare && !spanTable.rare(row):
	case c.ints != nil:
		v, ok = c.ints(row)
	case c.floats != nil:
		float, ok = c.floats(row)
	default:
		text, ok = c.texts(row)
	}
	return v, text, float, ok
}

// arrowGo hands values to the column writers of arrow-go's parquet/file.
type arrowGo struct {
	*arrowfile.Writer
	levels []int16
	int64s []int64
	int32s []int32
	floats []float64
	bools  []bool
	texts  []parquet.ByteArray
}

func openArrowGo(b *testing.B, out io.Writer) groupWriter {
	var fields arrowschema.FieldList
	properties := []parquet.WriterProperty{
		parquet.WithCompression(arrowcompress.Codecs.Zstd), parquet.WithCompressionLevel(1), parquet.WithVersion(parquet.V2_LATEST),
	}
	for _, c := range spanTable.fileColumns() {
		repetition := parquet.Repetitions.Required
		if c.Nullable {
			repetition = parquet.Repetitions.Optional
		}
		if c.Delta {
			properties = append(properties, parquet.WithDictionaryFor(c.Name, false),
				parquet.WithEncodingFor(c.Name, parquet.Encodings.DeltaBinaryPacked))
		}
		kind := map[columnfile.Kind]parquet.Type{
			columnfile.Int64: parquet.Types.Int64, columnfile.Int32: parquet.Types.Int32, columnfile.Double: parquet.Types.Double,
			columnfile.Boolean: parquet.Types.Boolean, columnfile.String: parquet.Types.ByteArray,
		}[c.Kind]
		node, err := arrowschema.NewPrimitiveNode(c.Name, repetition, kind, c.ID, -1)
		if err != nil {
			b.Fatal(err)
		}
		fields = append(fields, node)
	}
	root, err := arrowschema.NewGroupNode("span", parquet.Repetitions.Required, fields, -1)
	if err != nil {
		b.Fatal(err)
	}
	w := arrowfile.NewParquetWriter(out, root, arrowfile.WithWriterProps(parquet.NewWriterProperties(properties...)))
	return &arrowGo{Writer: w}
}

// Close ends the file: arrow-go's has a name of its own for that.
func (a *arrowGo) Close() error { return a.Writer.Close() }

func (a *arrowGo) writeGroup(rows []event.Span) error {
	group := a.AppendRowGroup()
	for i, c := range spanTable.fileColumns() {
		column, err := group.NextColumn()
		if err != nil {
			return err
		}
		a.gather(i, c, rows)
		switch w := column.(type) {
		case *arrowfile.Int64ColumnChunkWriter:
			_, err = w.WriteBatch(a.int64s, a.levels, nil)
		case *arrowfile.Int32ColumnChunkWriter:
			_, err = w.WriteBatch(a.int32s, a.levels, nil)
		case *arrowfile.Float64ColumnChunkWriter:
			_, err = w.WriteBatch(a.floats, a.levels, nil)
		case *arrowfile.BooleanColumnChunkWriter:
			_, err = w.WriteBatch(a.bools, a.levels, nil)
		case *arrowfile.ByteArrayColumnChunkWriter:
			_, err = w.WriteBatch(a.texts, a.levels, nil)
		}
		if err != nil {
			return err
		}
		if err := column.Close(); err != nil {
			return err
		}
	}
	return group.Close()
}

// gather puts a column's values and levels into slices.
func (a *arrowGo) gather(i int, c columnfile.Column, rows []event.Span) {
	a.levels, a.int64s, a.int32s, a.floats, a.bools, a.texts = a.levels[:0], a.int64s[:0], a.int32s[:0], a.floats[:0], a.bools[:0], a.texts[:0]
	for r := range rows {
		v, text, float, ok := valueOf(i, &rows[r])
		if c.Nullable && !ok {
			a.levels = append(a.levels, 0)
			continue
		}
		a.levels = append(a.levels, 1)
		switch c.Kind {
		case columnfile.Int64:
			a.int64s = append(a.int64s, v)
		case columnfile.Int32:
			a.int32s = append(a.int32s, int32(v))
		case columnfile.Double:
			a.floats = append(a.floats, float)
		case columnfile.Boolean:
			a.bools = append(a.bools, v != 0)
		default:
			a.texts = append(a.texts, parquet.ByteArray(text))
		}
	}
	if !c.Nullable {
		a.levels = nil
	}
}
