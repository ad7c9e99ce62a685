package joiner

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"

	"github.com/ebpfprof/ebpfprof/internal/dataset/keys"
	"github.com/ebpfprof/ebpfprof/output"
)

// rewriting is a file on its way into the joined dataset.
type rewriting struct {
	*joining
	sessions map[string]*recording
	session  int // which column is session_id
	process  int // which is process_id, -1 without
	offset   int // which is clock_offset_ns, -1 without
	kinds    []keys.Kind
	last     string // session of the row before, and what it is
	of       *recording
	shift    keys.Shift
}

// rewrite writes the rows of a file with the numbers and the clock that they have among others.
// The reader was not made for files of others: it may panic.
func (j *joining) rewrite(f source, to io.Writer) (rows int64, err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("it is damaged: %v", what)
		}
	}()
	in, err := os.Open(f.path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return 0, err
	}
	file, err := parquet.OpenFile(in, info.Size())
	if err != nil {
		return 0, err
	}
	r, err := j.columns(f, file.Schema())
	if err != nil {
		return 0, err
	}
	writer := parquet.NewGenericWriter[any](to, r.options(file, f.table)...)
	for _, group := range file.RowGroups() {
		n, err := r.group(group, writer)
		if rows += n; err != nil {
			return rows, err
		}
		if err := writer.Flush(); err != nil {
			return rows, err
		}
	}
	if rows != file.NumRows() {
		return rows, fmt.Errorf("%d of %d rows can be read", rows, file.NumRows())
	}
	return rows, writer.Close()
}

// columns says what the numbers in the columns mean. Members of lists mean nothing among recordings.
func (j *joining) columns(f source, schema *parquet.Schema) (*rewriting, error) {
	r := &rewriting{joining: j, sessions: j.of[f.dataset], session: -1, process: -1, offset: -1}
	for i, path := range schema.Columns() {
		kind := keys.None
		if len(path) == 1 {
			kind = keys.Of(path[0])
			switch path[0] {
			case "session_id":
				r.session = i
			case "process_id":
				r.process = i
			case "clock_offset_ns":
				r.offset = i
			}
		}
		r.kinds = append(r.kinds, kind)
	}
	if r.session < 0 {
		return nil, errors.New("it has no column session_id")
	}
	return r, nil
}

func (r *rewriting) options(file *parquet.File, table string) []parquet.WriterOption {
	options := []parquet.WriterOption{parquet.NewSchema(file.Schema().Name(), again{file.Root()}),
		parquet.Compression(&parquet.Zstd), parquet.CreatedBy("ebpfprof", "join", ""),
		parquet.KeyValueMetadata(output.MetadataTable, table)}
	for _, key := range []string{output.MetadataSchemaVersion, output.MetadataToolVersion} {
		if value, has := file.Lookup(key); has {
			options = append(options, parquet.KeyValueMetadata(key, value))
		}
	}
	if session, has := file.Lookup(output.MetadataSession); has {
		if of := r.sessions[session]; of != nil {
			session = of.renamed
		}
		options = append(options, parquet.KeyValueMetadata(output.MetadataSession, session))
	}
	if _, has := file.Schema().Lookup("ts_ns"); has {
		options = append(options, parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending("ts_ns"))))
	}
	return options
}

// rowsAtOnce bounds what of a row group is in memory as rows.
const rowsAtOnce = 512

func (r *rewriting) group(group parquet.RowGroup, to *parquet.GenericWriter[any]) (written int64, err error) {
	from := group.Rows()
	defer from.Close()
	rows := make([]parquet.Row, rowsAtOnce)
	for {
		n, err := from.ReadRows(rows)
		for _, row := range rows[:n] {
			if err := r.row(row); err != nil {
				return written, err
			}
		}
		if _, werr := to.WriteRows(rows[:n]); werr != nil {
			return written, werr
		}
		written += int64(n)
		if errors.Is(err, io.EOF) {
			return written, nil
		}
		if err != nil {
			return written, err
		}
	}
}

func (r *rewriting) row(row parquet.Row) error {
	for i, v := range row {
		if v.Column() != r.session {
			continue
		}
		if session := string(v.ByteArray()); r.of == nil || session != r.last {
			if r.of = r.sessions[session]; r.of == nil {
				return fmt.Errorf("it has a row of session %q, which table session does not have", session)
			}
			r.last, r.shift = session, r.shifts[r.of.renamed]
		}
		row[i] = parquet.ByteArrayValue([]byte(r.of.renamed)).Level(0, v.DefinitionLevel(), v.Column())
		break
	}
	if r.of == nil {
		return errors.New("it has a row without a session")
	}
	for i, v := range row {
		c := v.Column()
		if v.IsNull() || r.kinds[c] == keys.None && c != r.process {
			continue
		}
		if v.Kind() != parquet.Int64 && v.Kind() != parquet.Int32 {
			return fmt.Errorf("column %d: it is no whole number", c)
		}
		row[i] = r.value(v, c)
	}
	return nil
}

// value is what a number becomes.
func (r *rewriting) value(v parquet.Value, column int) parquet.Value {
	old := v.Int64()
	if v.Kind() == parquet.Int32 {
		old = int64(v.Int32())
	}
	now := old
	switch kind := r.kinds[column]; {
	case column == r.process:
		if r.twice[old] {
			now = processID(r.of.renamed, old)
		}
	case column == r.offset: // no time, but what all times of the recording have in them
		now += r.of.clock.onReference(r.of.started) - r.of.started
	case kind == keys.Time && old != 0:
		now = r.of.clock.onReference(old)
	default:
		now += r.shift.By(kind, old)
	}
	if v.Kind() == parquet.Int32 {
		return parquet.Int32Value(int32(now)).Level(0, v.DefinitionLevel(), column)
	}
	return parquet.Int64Value(now).Level(0, v.DefinitionLevel(), column)
}

// processID is that of a process whose id one of another recording has, as importers give them
// to files of one name.
func processID(session string, id int64) int64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%d", session, id)
	return int64(h.Sum64() >> 1)
}

// again is a node of a file's schema to be written once more: a file says of its columns what
// their levels are encoded by, which is no encoding of values.
type again struct{ parquet.Node }

func (a again) Encoding() encoding.Encoding { return encodingOf(a.Node) }

func (a again) Fields() []parquet.Field { return fieldsOf(a.Node) }

type againField struct{ parquet.Field }

func (a againField) Encoding() encoding.Encoding { return encodingOf(a.Field) }

func (a againField) Fields() []parquet.Field { return fieldsOf(a.Field) }

func fieldsOf(n parquet.Node) (all []parquet.Field) {
	for _, f := range n.Fields() {
		all = append(all, againField{f})
	}
	return all
}

// encodingOf is as the dataset's own writer has it: what repeats by its number in a dictionary,
// numbers by what they differ by.
func encodingOf(n parquet.Node) encoding.Encoding {
	if !n.Leaf() {
		return nil
	}
	switch n.Type().Kind() {
	case parquet.ByteArray, parquet.Double:
		return &parquet.RLEDictionary
	case parquet.Int32, parquet.Int64:
		return &parquet.DeltaBinaryPacked
	}
	return &parquet.Plain
}
