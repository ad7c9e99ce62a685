package iceberg

import (
	"fmt"
	"slices"
)

// Entry is a data file of a table.
type Entry struct {
	Path         string // as readers open it
	Bytes, Rows  int64
	Lower, Upper map[int][]byte // of columns by their numbers: what Parquet's footer says
	snapshot     int64          // that added it
	sequence     int64
	status       int64
}

const (
	existing = 0
	added    = 1
	deleted  = 2
)

// manifest encodes entries.
func (t *table) manifest(entries []Entry) ([]byte, error) {
	schema, err := t.current().text()
	if err != nil {
		return nil, err
	}
	var e encoder
	for i := range entries {
		f := &entries[i]
		e.long(f.status)
		e.optional(&f.snapshot)
		e.optional(&f.sequence)
		e.optional(&f.sequence)
		e.long(0) // data
		e.bytes([]byte(f.Path))
		e.bytes([]byte("PARQUET"))
		e.long(f.Rows)
		e.long(f.Bytes)
		e.bounds(f.Lower)
		e.bounds(f.Upper)
	}
	return container(map[string]string{
		"avro.schema": entrySchema, "avro.codec": "null", "schema": schema, "schema-id": fmt.Sprint(t.SchemaID),
		"partition-spec": "[]", "partition-spec-id": "0", "format-version": "2", "content": "data",
	}, len(entries), e.Bytes()), nil
}

// readManifest decodes the entries that count.
func readManifest(content []byte) (all []Entry, err error) {
	d, count, err := open(content, entrySchema)
	if err != nil {
		return nil, err
	}
	for ; count > 0 && d.err == nil; count-- {
		var f Entry
		f.status = d.long()
		snapshot, sequence := d.optional(), d.optional()
		d.optional()
		d.long()
		f.Path = string(d.bytes())
		d.bytes()
		f.Rows, f.Bytes = d.long(), d.long()
		f.Lower, f.Upper = d.bounds(), d.bounds()
		if snapshot == nil || sequence == nil {
			return nil, errForeign
		}
		f.snapshot, f.sequence = *snapshot, *sequence
		if f.status != deleted {
			all = append(all, f)
		}
	}
	return all, d.err
}

// listed is a manifest in a manifest list.
type listed struct {
	path    string
	bytes   int
	entries []Entry
}

// manifestList encodes the manifests of a snapshot.
func manifestList(s snapshot, manifests []listed) []byte {
	var e encoder
	for _, m := range manifests {
		var files, rows [3]int64
		least := s.Sequence
		for _, f := range m.entries {
			files[f.status]++
			rows[f.status] += f.Rows
			if f.status != deleted {
				least = min(least, f.sequence)
			}
		}
		e.bytes([]byte(m.path))
		e.long(int64(m.bytes))
		e.long(0) // the only partition spec
		e.long(0) // data
		e.long(s.Sequence)
		e.long(least)
		e.long(s.ID)
		for _, n := range slices.Concat([]int64{files[added], files[existing], files[deleted]}, []int64{rows[added], rows[existing],
			rows[deleted]}) {
			e.long(n)
		}
	}
	return container(map[string]string{
		"avro.schema": listSchema, "avro.codec": "null", "format-version": "2", "snapshot-id": fmt.Sprint(s.ID),
		"sequence-number":    fmt.Sprint(s.Sequence),
		"parent-snapshot-id": "null",
	}, len(manifests), e.Bytes())
}
