package columnfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"syscall"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// longestFooter is far beyond what a file of any use has.
const longestFooter = 64 << 20

// Summary is what the footer of a file says.
type Summary struct {
	Rows     int64
	Bytes    int64
	Metadata map[string]string
	// Columns is a hash of the columns, their types and their order: equal in files that have the same.
	Columns uint64
}

// Check reads the footer of a Parquet file and holds it against the file's
// size, so that a truncated or foreign file is found out without reading its
// data. Any damage is an error, never a panic; so is what is no regular file, which
// is neither waited for nor read.
func Check(path string) (Summary, error) {
	// Opening a FIFO would wait for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Summary{}, err
	}
	defer f.Close()
	return CheckFile(f)
}

// CheckFile is Check for a file that is open.
func CheckFile(f *os.File) (Summary, error) {
	info, err := f.Stat()
	if err != nil {
		return Summary{}, err
	}
	if !info.Mode().IsRegular() {
		return Summary{}, errors.New("not a regular file")
	}
	return check(f, info.Size())
}

func check(f io.ReaderAt, size int64) (Summary, error) {
	footer, err := readFooter(f, size)
	if err != nil {
		return Summary{}, err
	}
	var m format.FileMetaData
	if err := decodeFooter(footer, &m); err != nil {
		return Summary{}, fmt.Errorf("unreadable footer: %w", err)
	}
	s := Summary{Rows: m.NumRows, Bytes: size, Metadata: map[string]string{}}
	for _, kv := range m.KeyValueMetadata {
		s.Metadata[kv.Key] = kv.Value
	}
	columns, err := thrift.Marshal(new(thrift.CompactProtocol), m.Schema)
	if err != nil {
		return s, fmt.Errorf("unreadable footer: %w", err)
	}
	h := fnv.New64a()
	h.Write(columns)
	s.Columns = h.Sum64()
	return s, checkRowGroups(&m, size-8-int64(len(footer)))
}

// readFooter returns the bytes between the data and the last eight.
func readFooter(f io.ReaderAt, size int64) ([]byte, error) {
	if size < int64(len(magic))*2+4 {
		return nil, fmt.Errorf("not a Parquet file: only %d bytes long", size)
	}
	var head [4]byte
	var tail [8]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return nil, err
	}
	if _, err := f.ReadAt(tail[:], size-8); err != nil && err != io.EOF {
		return nil, err
	}
	if string(head[:]) != magic {
		return nil, errors.New("not a Parquet file: it does not begin like one")
	}
	if string(tail[4:]) != magic {
		return nil, errors.New("truncated: the file does not end in a Parquet footer")
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if length > size-12 || length > longestFooter {
		return nil, fmt.Errorf("truncated: its footer would be %d bytes long", length)
	}
	footer := make([]byte, length)
	if _, err := f.ReadAt(footer, size-8-length); err != nil {
		return nil, err
	}
	return footer, nil
}

func decodeFooter(footer []byte, m *format.FileMetaData) (err error) {
	w := walk{rest: footer}
	if err := w.structure(0); err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return thrift.Unmarshal(new(thrift.CompactProtocol), footer, m)
}

// checkRowGroups holds what the footer says against itself and against where
// the data ends.
func checkRowGroups(m *format.FileMetaData, end int64) error {
	var rows int64
	for i := range m.RowGroups {
		g := &m.RowGroups[i]
		if g.NumRows < 0 {
			return fmt.Errorf("row group %d has %d rows", i, g.NumRows)
		}
		rows += g.NumRows
		for j := range g.Columns {
			c := &g.Columns[j].MetaData
			if c.TotalCompressedSize == 0 {
				continue // some writers give an empty column no place
			}
			start := c.DataPageOffset
			if c.DictionaryPageOffset > 0 {
				start = min(start, c.DictionaryPageOffset)
			}
			if start < int64(len(magic)) || start > end || c.TotalCompressedSize < 0 || c.TotalCompressedSize > end-start {
				return fmt.Errorf("the data of column %v in row group %d lies outside the file", c.PathInSchema, i)
			}
		}
	}
	if rows != m.NumRows {
		return fmt.Errorf("the footer counts %d rows, its row groups %d", m.NumRows, rows)
	}
	return nil
}
