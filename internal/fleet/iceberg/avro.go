package iceberg

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Iceberg's manifests are Avro's object container files (Avro specification 1.12, "Object
// Container Files"): a header with the schema, blocks of records. Of Avro these two files
// need no more than what is here: numbers, strings, and unions of null and one other.

var avroMagic = []byte("Obj\x01")

// encoder writes values one after the other, as the schema has them.
type encoder struct{ bytes.Buffer }

func (e *encoder) long(v int64) {
	e.Write(binary.AppendVarint(nil, v)) // zigzag, as Avro's
}

func (e *encoder) bytes(v []byte) {
	e.long(int64(len(v)))
	e.Write(v)
}

// optional is a union of null and a long.
func (e *encoder) optional(v *int64) {
	if v == nil {
		e.long(0)
		return
	}
	e.long(1)
	e.long(*v)
}

// bounds is a union of null and an array of a column's number and a value.
func (e *encoder) bounds(of map[int][]byte) {
	if len(of) == 0 {
		e.long(0)
		return
	}
	e.long(1)
	e.long(int64(len(of)))
	for _, id := range slices.Sorted(maps.Keys(of)) {
		e.long(int64(id))
		e.bytes(of[id])
	}
	e.long(0)
}

// container makes a file of records that are encoded already.
func container(metadata map[string]string, count int, records []byte) []byte {
	var e encoder
	var sync [16]byte
	rand.Read(sync[:])
	e.Write(avroMagic)
	e.long(int64(len(metadata)))
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		e.bytes([]byte(key))
		e.bytes([]byte(metadata[key]))
	}
	e.long(0)
	e.Write(sync[:])
	if count > 0 {
		e.long(int64(count))
		e.bytes(records)
		e.Write(sync[:])
	}
	return e.Bytes()
}

var errAvro = errors.New("damaged Avro file")

// decoder reads what encoder wrote. The first mistake stays.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) long() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.err, d.rest = errAvro, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) take(n int64) []byte {
	if n < 0 || n > int64(len(d.rest)) {
		d.err, d.rest = errAvro, nil
		return nil
	}
	v := d.rest[:n]
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) bytes() []byte { return d.take(d.long()) }

func (d *decoder) optional() *int64 {
	if d.long() == 0 {
		return nil
	}
	v := d.long()
	return &v
}

func (d *decoder) bounds() map[int][]byte {
	if d.long() == 0 {
		return nil
	}
	of := map[int][]byte{}
	for n := d.long(); n > 0 && d.err == nil; n-- {
		id := int(d.long())
		of[id] = d.bytes()
	}
	d.long()
	return of
}

// open reads a container's header, and is at its records: of files of one block, as
// container makes them, with this schema.
func open(content []byte, schema string) (d *decoder, count int64, err error) {
	d = &decoder{rest: content}
	if !bytes.Equal(d.take(int64(len(avroMagic))), avroMagic) {
		return nil, 0, errAvro
	}
	metadata := map[string]string{}
	for n := d.long(); n > 0 && d.err == nil; n-- {
		key := string(d.bytes())
		metadata[key] = string(d.bytes())
	}
	d.long()
	d.take(16)
	if d.err == nil && (metadata["avro.schema"] != schema || metadata["avro.codec"] != "null") {
		return nil, 0, errForeign
	}
	if len(d.rest) > 0 {
		count = d.long()
		d.long()
	}
	return d, count, d.err
}

// errForeign is of a table that another program has written into.
var errForeign = errors.New("another program has written this table: it is left to it")

// entrySchema is that of a manifest (Iceberg's specification, version 2, "Manifests"): the
// numbers are the specification's.
var entrySchema = record("manifest_entry",
	field(0, "status", `"int"`),
	field(1, "snapshot_id", `["null","long"]`),
	field(3, "sequence_number", `["null","long"]`),
	field(4, "file_sequence_number", `["null","long"]`),
	field(2, "data_file", record("r2",
		field(134, "content", `"int"`),
		field(100, "file_path", `"string"`),
		field(101, "file_format", `"string"`),
		field(102, "partition", record("r102")),
		field(103, "record_count", `"long"`),
		field(104, "file_size_in_bytes", `"long"`),
		field(125, "lower_bounds", columnMap(126, 127)),
		field(128, "upper_bounds", columnMap(129, 130)))))

// listSchema is that of a manifest list.
var listSchema = record("manifest_file",
	field(500, "manifest_path", `"string"`),
	field(501, "manifest_length", `"long"`),
	field(502, "partition_spec_id", `"int"`),
	field(517, "content", `"int"`),
	field(515, "sequence_number", `"long"`),
	field(516, "min_sequence_number", `"long"`),
	field(503, "added_snapshot_id", `"long"`),
	field(504, "added_files_count", `"int"`),
	field(505, "existing_files_count", `"int"`),
	field(506, "deleted_files_count", `"int"`),
	field(512, "added_rows_count", `"long"`),
	field(513, "existing_rows_count", `"long"`),
	field(514, "deleted_rows_count", `"long"`))

type avroField struct {
	Name    string          `json:"name"`
	Type    json.RawMessage `json:"type"`
	Default json.RawMessage `json:"default,omitempty"`
	ID      int             `json:"field-id"`
}

func field(id int, name, kind string) avroField {
	f := avroField{Name: name, Type: json.RawMessage(kind), ID: id}
	if kind[0] == '[' { // a union with null first
		f.Default = json.RawMessage("null")
	}
	return f
}

func record(name string, fields ...avroField) string {
	if fields == nil {
		fields = []avroField{}
	}
	text, err := json.Marshal(struct {
		Type   string      `json:"type"`
		Name   string      `json:"name"`
		Fields []avroField `json:"fields"`
	}{"record", name, fields})
	if err != nil {
		panic(err) // of constants
	}
	return string(text)
}

// columnMap is Iceberg's map from a column to bytes: Avro's maps have texts for keys.
func columnMap(key, value int) string {
	return fmt.Sprintf(`["null",{"type":"array","logicalType":"map","items":%s}]`,
		record(fmt.Sprintf("k%d_v%d", key, value), field(key, "key", `"int"`), field(value, "value", `"bytes"`)))
}
