// Package instance reads planning problems in the public CSV format of
// MiniMalloc's and idealloc's benchmarks: a header with id, lower, upper and
// size in any order, a block a line. It owns what can be wrong in such a file.
package instance

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
)

// Instance is a file's blocks, in its order.
type Instance struct {
	IDs    []string
	Blocks []solve.Block
	// Empty is how many blocks live for no time at all and so take no memory.
	Empty int
}

// LineError is a mistake in a file.
type LineError struct {
	Line   int // from 1
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// ErrNoBlocks is returned for a file with a header and nothing else.
var ErrNoBlocks = errors.New("the file has no blocks")

// columns that a file must have, and the others that are understood.
var columns = []string{"id", "lower", "upper", "size"}

// Read reads a file of blocks. Lifetimes are [lower, upper). Columns other than
// the four are ignored.
func Read(r io.Reader) (*Instance, error) {
	t, err := newTable(r, columns)
	if err != nil {
		return nil, err
	}
	in, lines, total := &Instance{}, map[string]int{}, int64(0)
	for {
		fields, err := t.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		id := fields[0]
		if first, is := lines[id]; is {
			return nil, t.mistake("id %q is used before, in line %d", id, first)
		}
		lines[id] = t.line
		b := solve.Block{}
		for at, to := range []*int64{&b.Lower, &b.Upper, &b.Size} {
			if *to, err = t.number(columns[at+1], fields[at+1]); err != nil {
				return nil, err
			}
		}
		switch {
		case b.Lower < 0:
			return nil, t.mistake("lower is %d: a lifetime begins at 0 or later", b.Lower)
		case b.Upper < b.Lower:
			return nil, t.mistake("the lifetime [%d, %d) ends before it begins", b.Lower, b.Upper)
		case b.Size < 0:
			return nil, t.mistake("size is %d: it is negative", b.Size)
		case b.Size > solve.MaxTotal-total:
			return nil, t.mistake("the sizes add up to more than 2 EiB")
		case b.Lower == b.Upper:
			in.Empty++
		}
		total += b.Size
		in.IDs, in.Blocks = append(in.IDs, id), append(in.Blocks, b)
	}
	if len(in.Blocks) == 0 {
		return nil, ErrNoBlocks
	}
	return in, nil
}

// ReadFixed reads the offsets that a plan must keep: columns id and offset.
func (in *Instance) ReadFixed(r io.Reader) (solve.Fixed, error) {
	t, err := newTable(r, []string{"id", "offset"})
	if err != nil {
		return nil, err
	}
	at := make(map[string]int, len(in.IDs))
	for i, id := range in.IDs {
		at[id] = i
	}
	fixed := solve.Fixed{}
	for {
		fields, err := t.next()
		if err == io.EOF {
			return fixed, nil
		}
		if err != nil {
			return nil, err
		}
		i, is := at[fields[0]]
		if !is {
			return nil, t.mistake("there is no block with id %q", fields[0])
		}
		if _, twice := fixed[i]; twice {
			return nil, t.mistake("id %q is fixed twice", fields[0])
		}
		offset, err := t.number("offset", fields[1])
		if err != nil {
			return nil, err
		}
		if offset < 0 {
			return nil, t.mistake("offset is %d: it is negative", offset)
		}
		if offset > solve.MaxTotal-in.Blocks[i].Size {
			return nil, t.mistake("offset %d is above 2 EiB", offset)
		}
		fixed[i] = offset
	}
}

// table reads some columns of a CSV file.
type table struct {
	reader *csv.Reader
	places []int // of the wanted columns
	fields []string
	line   int
}

func newTable(r io.Reader, wanted []string) (*table, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	if mark, err := in.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		in.Discard(3) // the byte order mark that spreadsheets write
	}
	t := &table{reader: csv.NewReader(in), fields: make([]string, len(wanted))}
	t.reader.ReuseRecord, t.reader.TrimLeadingSpace = true, true
	header, err := t.reader.Read()
	if err == io.EOF {
		return nil, &LineError{1, "the file is empty; it begins with " + strings.Join(wanted, ",")}
	}
	if err != nil {
		return nil, sentence(err)
	}
	var names, missing []string
	for _, name := range header {
		names = append(names, strings.ToLower(strings.TrimSpace(name)))
	}
	for _, name := range wanted {
		place := slices.Index(names, name)
		if place < 0 {
			missing = append(missing, name)
		} else if slices.Contains(names[place+1:], name) {
			return nil, &LineError{1, "the header has two columns named " + name}
		}
		t.places = append(t.places, place)
	}
	if len(missing) > 0 {
		return nil, &LineError{1, fmt.Sprintf("the header has no column %s; it needs %s, in any order",
			strings.Join(missing, " and no "), strings.Join(wanted, ","))}
	}
	return t, nil
}

// next are the wanted fields of the next line. They are valid until the one after.
func (t *table) next() ([]string, error) {
	record, err := t.reader.Read()
	if err == io.EOF {
		return nil, err
	}
	if err != nil {
		return nil, sentence(err)
	}
	t.line, _ = t.reader.FieldPos(0)
	for i, place := range t.places {
		t.fields[i] = strings.TrimSpace(record[place])
	}
	return t.fields, nil
}

func (t *table) mistake(format string, values ...any) error {
	return &LineError{t.line, fmt.Sprintf(format, values...)}
}

func (t *table) number(column, text string) (int64, error) {
	value, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil:
		return value, nil
	case errors.Is(err, strconv.ErrRange):
		return 0, t.mistake("%s is %s, which does not fit into 64 bits", column, shortened(text))
	case text == "":
		return 0, t.mistake("%s is missing", column)
	}
	return 0, t.mistake("%s is %q: give a whole number", column, shortened(text))
}

func shortened(text string) string {
	if len(text) > 40 {
		return text[:37] + "..."
	}
	return text
}

// sentence says what package csv found in this package's words.
func sentence(err error) error {
	var parse *csv.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	if errors.Is(parse.Err, csv.ErrFieldCount) {
		return &LineError{parse.Line, "it has not as many fields as the header"}
	}
	return &LineError{parse.Line, parse.Err.Error()}
}
