package columnfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const magic = "PAR1"

// KeyValue is one entry of a file's metadata.
type KeyValue struct{ Key, Value string }

// Writer writes one Parquet file, row group by row group.
type Writer struct {
	out     io.Writer
	encoder *Encoder
	leaves  []leaf
	footer  format.FileMetaData
	size    int64
}

// NewWriter writes a file of the columns to out. Nothing is readable before Close.
func NewWriter(out io.Writer, e *Encoder, columns []Column, createdBy string, metadata []KeyValue) (*Writer, error) {
	w := &Writer{out: out, encoder: e, leaves: leaves(columns)}
	w.footer = format.FileMetaData{Version: 2, Schema: schemaElements(columns), CreatedBy: createdBy,
		RowGroups: thrift.Slice[format.RowGroup]{}}
	for _, kv := range metadata {
		w.footer.KeyValueMetadata = append(w.footer.KeyValueMetadata, format.KeyValue{Key: kv.Key, Value: kv.Value})
	}
	for range w.leaves {
		w.footer.ColumnOrders = append(w.footer.ColumnOrders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
	}
	return w, w.write([]byte(magic))
}

// Size is how many bytes have been written.
func (w *Writer) Size() int64 { return w.size }

// Rows is how many rows have been written.
func (w *Writer) Rows() int64 { return w.footer.NumRows }

// WriteRowGroup writes one row group; column(i) returns the values of column i,
// which may be the same memory for each i; a list counts as many columns as it
// has fields. sortedBy is the column by which the rows ascend, -1 when by none.
func (w *Writer) WriteRowGroup(rows, sortedBy int, column func(i int) *Values) error {
	if rows == 0 {
		return nil
	}
	group := format.RowGroup{NumRows: int64(rows), FileOffset: w.size, Ordinal: int16(len(w.footer.RowGroups))}
	if sortedBy >= 0 {
		group.SortingColumns = thrift.Slice[format.SortingColumn]{{ColumnIdx: int32(sortedBy)}}
	}
	for i, c := range w.leaves {
		chunk, err := w.writeChunk(c, column(i), rows)
		if err != nil {
			return err
		}
		group.Columns = append(group.Columns, chunk)
		group.TotalByteSize += chunk.MetaData.TotalUncompressedSize
		group.TotalCompressedSize += chunk.MetaData.TotalCompressedSize
	}
	w.footer.RowGroups = append(w.footer.RowGroups, group)
	w.footer.NumRows += int64(rows)
	return nil
}

func (w *Writer) writeChunk(c leaf, v *Values, rows int) (format.ColumnChunk, error) {
	if err := v.check(c, rows); err != nil {
		return format.ColumnChunk{}, err
	}
	m, err := w.encoder.encode(c, v, rows)
	if err != nil {
		return format.ColumnChunk{}, fmt.Errorf("encoding column %s: %w", c.Name, err)
	}
	if m.DataPageOffset > 0 { // a dictionary page comes first
		m.DictionaryPageOffset = w.size
	}
	m.DataPageOffset += w.size
	return format.ColumnChunk{MetaData: m}, w.write(w.encoder.chunk)
}

// Close writes the footer. It does not close the underlying writer.
func (w *Writer) Close() error {
	var footer bytes.Buffer
	var protocol thrift.CompactProtocol
	if err := thrift.NewEncoder(protocol.NewWriter(&footer)).Encode(&w.footer); err != nil {
		return fmt.Errorf("encoding footer: %w", err)
	}
	tail := binary.LittleEndian.AppendUint32(footer.Bytes(), uint32(footer.Len()))
	return w.write(append(tail, magic...))
}

func (w *Writer) write(p []byte) error {
	n, err := w.out.Write(p)
	w.size += int64(n)
	return err
}

func schemaElements(columns []Column) thrift.Slice[format.SchemaElement] {
	root := format.SchemaElement{Name: "schema", NumChildren: thrift.New(int32(len(columns)))}
	elements := thrift.Slice[format.SchemaElement]{root}
	for _, c := range columns {
		if c.Kind == List {
			elements = append(elements, listElements(c)...)
		} else {
			elements = append(elements, valueElement(c))
		}
	}
	return elements
}

func valueElement(c Column) format.SchemaElement {
	e := format.SchemaElement{
		Name:           c.Name,
		FieldID:        c.ID,
		Type:           thrift.New(physicalType(c.Kind)),
		RepetitionType: thrift.New(format.Required),
	}
	if c.Nullable {
		e.RepetitionType = thrift.New(format.Optional)
	}
	if c.Kind == String {
		e.ConvertedType = thrift.New(deprecated.UTF8)
		e.LogicalType = format.LogicalType{Value: &format.StringType{}}
	}
	return e
}
