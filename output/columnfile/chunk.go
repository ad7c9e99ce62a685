package columnfile

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/plain"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Encoder turns columns into column chunks. It holds buffers that are worth
// keeping from one row group and file to the next; it is not safe for
// concurrent use.
type Encoder struct {
	zstd       *zstd.Encoder
	words      wordDictionary
	codes      []int32
	narrow     []int32
	levels     []byte // encoded
	values     []byte // encoded
	compressed []byte
	header     bytes.Buffer
	chunk      []byte // the column chunk: dictionary page, data page
}

// NewEncoder returns an Encoder that compresses with zstd's fastest level.
func NewEncoder() (*Encoder, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	return &Encoder{zstd: z}, nil
}

// encode leaves the column chunk of v in e.chunk and returns its metadata;
// offsets count from the start of the chunk. One chunk is one data page: the
// row group is sized so that this is the customary megabyte, and a page index
// would say no more than the row group's statistics.
func (e *Encoder) encode(c leaf, v *Values, rows int) (format.ColumnMetaData, error) {
	m := format.ColumnMetaData{
		Type:         physicalType(c.Kind),
		Encoding:     thrift.Slice[format.Encoding]{format.RLE},
		PathInSchema: c.path,
		Codec:        format.Zstd,
		NumValues:    int64(v.entries()),
		Statistics:   format.Statistics{NullCount: int64(v.absent())},
	}
	e.chunk = e.chunk[:0]
	encoding, err := e.encodeValues(c.Column, v, &m)
	if err != nil {
		return m, err
	}
	repeats := 0
	if c.list {
		repeats, err = e.encodeListLevels(c, v)
	} else {
		err = e.encodeLevels(c.Column, v)
	}
	if err != nil {
		return m, err
	}
	m.Encoding = append(m.Encoding, encoding)
	return m, e.dataPage(&m, v, page{rows: rows, repeats: repeats, encoding: encoding})
}

// encodeValues encodes the values into e.values, after a dictionary page
// where there is a dictionary. A chunk without values is PLAIN: readers start
// the other encodings by reading a header.
func (e *Encoder) encodeValues(c Column, v *Values, m *format.ColumnMetaData) (encoding format.Encoding, err error) {
	e.values = e.values[:0]
	if v.len(c.Kind) == 0 {
		return format.Plain, nil
	}
	switch c.Kind {
	case String:
		textStatistics(&m.Statistics, v.texts.texts)
		return e.dictionaryPage(m, plainTexts(v.texts.texts), len(v.texts.texts), v.codes)
	case Double:
		floatStatistics(&m.Statistics, v.floats)
		if codes, ok := encodeWords(&e.words, e.codes, v.floats, math.Float64bits); ok {
			e.codes = codes
			return e.dictionaryPage(m, plainWords(c.Kind, e.words.words), len(e.words.words), codes)
		}
		for _, f := range v.floats {
			e.values = plain.AppendDouble(e.values, f)
		}
		return format.Plain, nil
	case Boolean:
		intStatistics(&m.Statistics, c.Kind, v.ints)
		for i, b := range v.ints {
			e.values = plain.AppendBoolean(e.values, i, b != 0)
		}
		return format.Plain, nil
	default:
		return e.encodeInts(c, v, m)
	}
}

func (e *Encoder) encodeInts(c Column, v *Values, m *format.ColumnMetaData) (encoding format.Encoding, err error) {
	intStatistics(&m.Statistics, c.Kind, v.ints)
	if !c.Delta {
		if codes, ok := encodeWords(&e.words, e.codes, v.ints, func(i int64) uint64 { return uint64(i) }); ok {
			e.codes = codes
			return e.dictionaryPage(m, plainWords(c.Kind, e.words.words), len(e.words.words), codes)
		}
	}
	var packed delta.BinaryPackedEncoding
	if c.Kind == Int64 {
		e.values, err = packed.EncodeInt64(e.values, v.ints)
		return format.DeltaBinaryPacked, err
	}
	e.narrow = e.narrow[:0]
	for _, i := range v.ints {
		e.narrow = append(e.narrow, int32(i))
	}
	e.values, err = packed.EncodeInt32(e.values, e.narrow)
	return format.DeltaBinaryPacked, err
}

func (e *Encoder) encodeLevels(c Column, v *Values) (err error) {
	e.levels = e.levels[:0]
	if !c.Nullable {
		return nil
	}
	if v.nulls == v.rows || v.nulls == 0 {
		e.levels = appendRun(e.levels, v.rows, v.nulls == 0)
		return nil
	}
	levels := rle.Encoding{BitWidth: 1}
	e.levels, err = levels.EncodeLevels(e.levels, v.levels)
	return err
}

// appendRun appends one run of n equal levels in the RLE/bit-packing hybrid.
func appendRun(dst []byte, n int, present bool) []byte {
	dst = binary.AppendUvarint(dst, uint64(n)<<1)
	if present {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// dictionaryPage appends the page of distinct values to the chunk and encodes
// the codes into e.values.
func (e *Encoder) dictionaryPage(m *format.ColumnMetaData, dictionary []byte, n int, codes []int32) (format.Encoding, error) {
	e.compressed = e.zstd.EncodeAll(dictionary, e.compressed[:0])
	header := format.PageHeader{
		Type:                 format.DictionaryPage,
		UncompressedPageSize: int32(len(dictionary)),
		CompressedPageSize:   int32(len(e.compressed)),
		DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: int32(n), Encoding: format.Plain}),
	}
	if err := e.page(m, &header, nil, e.compressed); err != nil {
		return 0, err
	}
	m.Encoding = append(m.Encoding, format.Plain)
	var err error
	var indexes rle.DictionaryEncoding
	e.values, err = indexes.EncodeInt32(e.values, codes)
	return format.RLEDictionary, err
}

// page describes a data page.
type page struct {
	rows     int
	repeats  int // bytes of its repetition levels
	encoding format.Encoding
}

func (e *Encoder) dataPage(m *format.ColumnMetaData, v *Values, p page) error {
	m.DataPageOffset = int64(len(e.chunk))
	body, isCompressed := e.values, false
	if len(e.values) > 0 {
		e.compressed = e.zstd.EncodeAll(e.values, e.compressed[:0])
		if len(e.compressed) < len(e.values) {
			body, isCompressed = e.compressed, true
		}
	}
	header := format.PageHeader{
		Type:                 format.DataPageV2,
		UncompressedPageSize: int32(len(e.levels) + len(e.values)),
		CompressedPageSize:   int32(len(e.levels) + len(body)),
		DataPageHeaderV2: thrift.New(format.DataPageHeaderV2{
			NumValues:                  int32(v.entries()),
			NumNulls:                   int32(v.absent()),
			NumRows:                    int32(p.rows),
			Encoding:                   p.encoding,
			RepetitionLevelsByteLength: int32(p.repeats),
			DefinitionLevelsByteLength: int32(len(e.levels) - p.repeats),
			IsCompressed:               thrift.New(isCompressed),
			Statistics:                 format.Statistics{NullCount: int64(v.absent())},
		}),
	}
	return e.page(m, &header, e.levels, body)
}

// page appends one page to the chunk and counts it.
func (e *Encoder) page(m *format.ColumnMetaData, header *format.PageHeader, levels, body []byte) error {
	e.header.Reset()
	var protocol thrift.CompactProtocol
	if err := thrift.NewEncoder(protocol.NewWriter(&e.header)).Encode(header); err != nil {
		return err
	}
	e.chunk = append(e.chunk, e.header.Bytes()...)
	e.chunk = append(e.chunk, levels...)
	e.chunk = append(e.chunk, body...)
	m.TotalUncompressedSize += int64(e.header.Len()) + int64(header.UncompressedPageSize)
	m.TotalCompressedSize += int64(e.header.Len()) + int64(header.CompressedPageSize)
	return nil
}

func plainTexts(texts []string) (dst []byte) {
	for _, t := range texts {
		dst = plain.AppendByteArrayString(dst, t)
	}
	return dst
}

func plainWords(k Kind, words []uint64) (dst []byte) {
	for _, w := range words {
		if k == Int32 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(w))
		} else {
			dst = binary.LittleEndian.AppendUint64(dst, w)
		}
	}
	return dst
}

func physicalType(k Kind) format.Type {
	return [...]format.Type{Int64: format.Int64, Int32: format.Int32, Double: format.Double, Boolean: format.Boolean,
		String: format.ByteArray}[k]
}
