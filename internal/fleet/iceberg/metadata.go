package iceberg

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
)

// table is an Iceberg table's metadata, version 2 (Iceberg's specification, "Table Metadata
// Fields"): of all that may be in it, what a table of one branch and without partitions has.
type table struct {
	FormatVersion    int               `json:"format-version"`
	UUID             string            `json:"table-uuid"`
	Location         string            `json:"location"`
	LastSequence     int64             `json:"last-sequence-number"`
	LastUpdatedMS    int64             `json:"last-updated-ms"`
	LastColumn       int               `json:"last-column-id"`
	SchemaID         int               `json:"current-schema-id"`
	Schemas          []schema          `json:"schemas"`
	DefaultSpec      int               `json:"default-spec-id"`
	Specs            []json.RawMessage `json:"partition-specs"`
	LastPartition    int               `json:"last-partition-id"`
	DefaultSortOrder int               `json:"default-sort-order-id"`
	SortOrders       []json.RawMessage `json:"sort-orders"`
	Properties       map[string]string `json:"properties"`
	CurrentSnapshot  *int64            `json:"current-snapshot-id,omitempty"`
	Snapshots        []snapshot        `json:"snapshots"`
	SnapshotLog      []json.RawMessage `json:"snapshot-log"`
	MetadataLog      []json.RawMessage `json:"metadata-log"`
	Refs             map[string]ref    `json:"refs,omitempty"`
}

type schema struct {
	Type   string   `json:"type"`
	ID     int      `json:"schema-id"`
	Fields []Column `json:"fields"`
}

// Column is one of a table's, of one of Iceberg's primitive types.
type Column struct {
	ID       int    `json:"id"`
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Type     string `json:"type"`
}

type snapshot struct {
	ID          int64             `json:"snapshot-id"`
	Parent      *int64            `json:"parent-snapshot-id,omitempty"`
	Sequence    int64             `json:"sequence-number"`
	TimestampMS int64             `json:"timestamp-ms"`
	Manifests   string            `json:"manifest-list"`
	Summary     map[string]string `json:"summary"`
	SchemaID    int               `json:"schema-id"`
}

type ref struct {
	Snapshot int64  `json:"snapshot-id"`
	Type     string `json:"type"`
}

// nameMapping lets readers find columns by their names: our files have no numbers.
const nameMapping = "schema.name-mapping.default"

// newTable is a table without snapshots or columns.
func newTable(location string) *table {
	var u [16]byte
	rand.Read(u[:])
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return &table{
		FormatVersion: 2, UUID: fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), Location: location,
		Schemas: []schema{{Type: "struct", Fields: []Column{}}},
		Specs:   []json.RawMessage{json.RawMessage(`{"spec-id":0,"fields":[]}`)}, LastPartition: 999,
		SortOrders: []json.RawMessage{json.RawMessage(`{"order-id":0,"fields":[]}`)},
		Properties: map[string]string{"write.format.default": "parquet"},
		Snapshots:  []snapshot{}, SnapshotLog: []json.RawMessage{}, MetadataLog: []json.RawMessage{},
	}
}

// current is the schema that counts.
func (t *table) current() *schema {
	i := slices.IndexFunc(t.Schemas, func(s schema) bool { return s.ID == t.SchemaID })
	if i < 0 {
		return &schema{Type: "struct"}
	}
	return &t.Schemas[i]
}

func (s *schema) text() (string, error) {
	text, err := json.Marshal(s)
	return string(text), err
}

// column is the number of a column; 0 without one.
func (s *schema) column(name string) int {
	for _, c := range s.Fields {
		if c.Name == name {
			return c.ID
		}
	}
	return 0
}

// add has the table have these columns too. Numbers stay with names for ever.
func (t *table) add(columns []Column) error {
	next := schema{Type: "struct", ID: t.SchemaID, Fields: slices.Clone(t.current().Fields)}
	for _, c := range columns {
		if next.column(c.Name) == 0 {
			t.LastColumn++
			next.Fields = append(next.Fields, Column{ID: t.LastColumn, Name: c.Name, Type: c.Type})
		}
	}
	if len(next.Fields) == len(t.current().Fields) {
		return nil
	}
	if len(t.current().Fields) == 0 {
		t.Schemas = nil
	} else {
		next.ID++
	}
	t.Schemas, t.SchemaID = append(t.Schemas, next), next.ID
	type mapped struct {
		ID    int      `json:"field-id"`
		Names []string `json:"names"`
	}
	var mapping []mapped
	for _, c := range next.Fields {
		mapping = append(mapping, mapped{c.ID, []string{c.Name}})
	}
	text, err := json.Marshal(mapping)
	t.Properties[nameMapping] = string(text)
	return err
}

// next begins a snapshot of a table.
func (t *table) next(nowMS int64) snapshot {
	var r [8]byte
	rand.Read(r[:])
	t.LastSequence++
	// A reader that goes by time takes them in order.
	t.LastUpdatedMS = max(nowMS, t.LastUpdatedMS+1)
	s := snapshot{ID: int64(binary.BigEndian.Uint64(r[:]) >> 1), Sequence: t.LastSequence, TimestampMS: t.LastUpdatedMS, SchemaID: t.SchemaID}
	if t.CurrentSnapshot != nil {
		parent := *t.CurrentSnapshot
		s.Parent = &parent
	}
	return s
}

// keptSnapshots is how many a table has: files of older ones may be gone.
const keptSnapshots = 2

// take makes a snapshot the current one.
func (t *table) take(s snapshot) error {
	t.Snapshots = append(t.Snapshots, s)
	if n := len(t.Snapshots) - keptSnapshots; n > 0 {
		t.Snapshots = slices.Clone(t.Snapshots[n:])
	}
	t.Snapshots[0].Parent = nil
	id := s.ID
	t.CurrentSnapshot, t.Refs = &id, map[string]ref{"main": {id, "branch"}}
	t.SnapshotLog = []json.RawMessage{}
	for _, s := range t.Snapshots {
		text, err := json.Marshal(map[string]int64{"snapshot-id": s.ID, "timestamp-ms": s.TimestampMS})
		if err != nil {
			return err
		}
		t.SnapshotLog = append(t.SnapshotLog, text)
	}
	return nil
}
