package columnfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	// longestHeader is of a page, with its statistics: those of long texts are cut by
	// every writer that there is.
	longestHeader = 64 << 10
	// largestPage is many times what writers make, 1 MiB to some 10.
	largestPage = 256 << 20
)

// CheckPages is CheckFile, and holds the header of every page against the file, for
// a reader that makes room for whatever a header claims: a page has to be there, and
// no column of a row group may have more than so many values.
func CheckPages(f *os.File, values int64) error {
	if _, err := CheckFile(f); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	footer, err := readFooter(f, info.Size())
	if err != nil {
		return err
	}
	var m format.FileMetaData
	if err := decodeFooter(footer, &m); err != nil {
		return fmt.Errorf("unreadable footer: %w", err)
	}
	if m.NumRows > values {
		return errors.New("more rows than a file of its size can have")
	}
	end := info.Size() - 8 - int64(len(footer))
	for i := range m.RowGroups {
		for j := range m.RowGroups[i].Columns {
			c := &m.RowGroups[i].Columns[j].MetaData
			if err := checkChunk(f, c, end, values); err != nil {
				return fmt.Errorf("column %v of row group %d: %w", c.PathInSchema, i, err)
			}
		}
	}
	return nil
}

// checkChunk goes from page to page, from where a reader would begin.
func checkChunk(f io.ReaderAt, c *format.ColumnMetaData, end, values int64) error {
	if c.TotalCompressedSize == 0 {
		return nil
	}
	at := c.DataPageOffset
	if c.DictionaryPageOffset != 0 {
		at = c.DictionaryPageOffset
	}
	if at < int64(len(magic)) || at > end || c.TotalCompressedSize > end-at {
		return errors.New("its data lies outside the file")
	}
	pages := window{f: f, end: at + c.TotalCompressedSize}
	for at < pages.end {
		b, err := pages.at(at)
		if err != nil {
			return err
		}
		w := walk{rest: b}
		if err := w.structure(0); err != nil {
			return fmt.Errorf("a page's header at byte %d: %w", at, err)
		}
		length := len(b) - len(w.rest)
		var h format.PageHeader
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), b[:length], &h); err != nil {
			return fmt.Errorf("a page's header at byte %d: %w", at, err)
		}
		at += int64(length)
		size := int64(h.CompressedPageSize)
		if size < 0 || size > pages.end-at || h.UncompressedPageSize < 0 || h.UncompressedPageSize > largestPage {
			return fmt.Errorf("a page of %d bytes, of %d when it is unpacked, at byte %d", size, h.UncompressedPageSize, at)
		}
		at += size
		if values -= valuesOf(&h); values < 0 {
			return errors.New("more values than a file of its size can have")
		}
	}
	return nil
}

// valuesOf is how many a page says that it has; those of a dictionary are not of rows.
func valuesOf(h *format.PageHeader) int64 {
	switch {
	case h.DataPageHeader.Valid:
		return max(0, int64(h.DataPageHeader.V.NumValues))
	case h.DataPageHeaderV2.Valid:
		return max(0, int64(h.DataPageHeaderV2.V.NumValues))
	case h.DictionaryPageHeader.Valid:
		return max(0, int64(h.DictionaryPageHeader.V.NumValues))
	}
	return 0
}

// window reads the headers of small pages together.
type window struct {
	f      io.ReaderAt
	end    int64
	buffer []byte
	from   int64
}

// at returns what follows an offset, as far as a header may reach.
func (w *window) at(offset int64) ([]byte, error) {
	want := min(longestHeader, w.end-offset)
	if offset < w.from || offset+want > w.from+int64(len(w.buffer)) {
		w.from = offset
		w.buffer = append(w.buffer[:0], make([]byte, min(2*longestHeader, w.end-offset))...)
		if _, err := w.f.ReadAt(w.buffer, offset); err != nil {
			return nil, err
		}
	}
	return w.buffer[offset-w.from:][:want], nil
}
