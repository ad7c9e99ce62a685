package column

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// Absent is the value of a row that has none.
const Absent = int64(-1 << 62)

// Words numbers the texts of a row group, of which there are few.
type Words struct {
	numbers map[string]int64
	all     []string
}

// NewWords knows no text yet.
func NewWords() *Words { return &Words{numbers: map[string]int64{}} }

func (w *Words) number(text []byte) int64 {
	n, is := w.numbers[string(text)]
	if !is {
		n = int64(len(w.all))
		w.numbers[string(text)] = n
		w.all = append(w.all, string(text))
	}
	return n
}

// Text is that of a number; of Absent it is none.
func (w *Words) Text(number int64) string {
	if number == Absent {
		return ""
	}
	return w.all[number]
}

// Cursor goes through a column of a row group. It takes what a page has as it lies
// there: value by value, ten million rows would take longer than all that is done
// with them.
type Cursor struct {
	pages      parquet.Pages // nil: the file does not have the column
	most       byte          // the definition level of a value that is there
	words      *Words
	dictionary parquet.Dictionary
	meanings   []int64 // of the dictionary's values

	page   parquet.Page // whose memory the following is
	left   int          // rows of it
	levels []byte       // of these; nil where all rows have a value
	codes  []int32      // their values, by the dictionary's numbers
	values []int64      // or as they are
	held   []int64      // scratch for values that a page has in another form
}

// Open begins with the first row of a row group's column. All values are held as 64
// bits: a text as its number among the words, a float as its bits. Of the kinds Int64
// stands for Int32, too.
func Open(schema *parquet.Schema, group parquet.RowGroup, name string, kind parquet.Kind, w *Words) (*Cursor, error) {
	c := &Cursor{words: w}
	leaf, is := schema.Lookup(name)
	if !is {
		return c, nil
	}
	has := leaf.Node.Type().Kind()
	if has == parquet.Int32 {
		has = parquet.Int64
	}
	if has != kind || leaf.MaxRepetitionLevel > 0 || leaf.MaxDefinitionLevel > 1 {
		return nil, fmt.Errorf("column %s: it is no column of one %v a row", name, kind)
	}
	c.most, c.pages = byte(leaf.MaxDefinitionLevel), group.ColumnChunks()[leaf.ColumnIndex].Pages()
	return c, nil
}

// Close ends it. It may be called again.
func (c *Cursor) Close() error {
	if c.pages == nil {
		return nil
	}
	c.release()
	pages := c.pages
	c.pages = nil
	return pages.Close()
}

func (c *Cursor) release() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page = nil
	}
}

var errShortPage = errors.New("a page has fewer values than its header declares")

// Fill takes the values of the next rows. Rows that the column does not have have none.
func (c *Cursor) Fill(to []int64) error {
	for len(to) > 0 {
		for c.left == 0 {
			err := c.next()
			if err == io.EOF {
				for i := range to {
					to[i] = Absent
				}
				return nil
			}
			if err != nil {
				return err
			}
		}
		n := min(len(to), c.left)
		if err := c.some(to[:n]); err != nil {
			return err
		}
		to, c.left = to[n:], c.left-n
	}
	return nil
}

// some takes rows of the page.
func (c *Cursor) some(to []int64) error {
	if c.levels == nil {
		if len(c.codes)+len(c.values) < len(to) {
			return errShortPage
		}
		return c.here(to)
	}
	there := 0
	for _, l := range c.levels[:len(to)] {
		if l >= c.most {
			there++
		}
	}
	if there > len(c.codes)+len(c.values) {
		return errShortPage
	}
	if err := c.here(to[:there]); err != nil {
		return err
	}
	// From the end on, so that none is overwritten before it is moved.
	for i := len(to) - 1; i >= 0; i-- {
		if c.levels[i] < c.most {
			to[i] = Absent
			continue
		}
		there--
		to[i] = to[there]
	}
	c.levels = c.levels[len(to):]
	return nil
}

// here takes values that are there.
func (c *Cursor) here(to []int64) error {
	if c.codes == nil {
		c.values = c.values[copy(to, c.values):]
		return nil
	}
	for i, code := range c.codes[:len(to)] {
		if uint(code) >= uint(len(c.meanings)) {
			return errors.New("a value that is not in the dictionary")
		}
		to[i] = c.meanings[code]
	}
	c.codes = c.codes[len(to):]
	return nil
}

// next takes a page.
func (c *Cursor) next() (err error) {
	if c.pages == nil {
		return io.EOF
	}
	c.release()
	if c.page, err = c.pages.ReadPage(); err != nil {
		c.page = nil
		return err
	}
	c.left, c.levels, c.codes, c.values = int(c.page.NumValues()), nil, nil, nil
	if c.most > 0 {
		// A page without a value has no levels.
		if c.levels = c.page.DefinitionLevels(); len(c.levels) < c.left {
			c.levels = make([]byte, c.left)
		}
	}
	data := c.page.Data()
	if d := c.page.Dictionary(); d != nil {
		c.lookUp(d)
		if data.Kind() != encoding.Undefined {
			c.codes = data.Int32()
		}
		return nil
	}
	return c.take(data)
}

// take reads the values of a page that are there.
func (c *Cursor) take(data encoding.Values) error {
	c.held = c.held[:0]
	switch data.Kind() {
	case encoding.Undefined: // a page of nothing
	case encoding.Int64:
		c.values = data.Int64()
		return nil
	case encoding.Int32:
		for _, v := range data.Int32() {
			c.held = append(c.held, int64(v))
		}
	case encoding.Double:
		for _, v := range data.Double() {
			c.held = append(c.held, int64(math.Float64bits(v)))
		}
	case encoding.ByteArray:
		texts, offsets := data.ByteArray()
		for i := 1; i < len(offsets); i++ {
			c.held = append(c.held, c.words.number(texts[offsets[i-1]:offsets[i]]))
		}
	default:
		return fmt.Errorf("a page of %v", data.Kind())
	}
	c.values = c.held
	return nil
}

// lookUp reads what the values of a dictionary are, unless they are known.
func (c *Cursor) lookUp(d parquet.Dictionary) {
	if d == c.dictionary {
		return
	}
	c.dictionary, c.meanings = d, c.meanings[:0]
	for i := range d.Len() {
		v := d.Index(int32(i))
		switch v.Kind() {
		case parquet.Int32:
			c.meanings = append(c.meanings, int64(v.Int32()))
		case parquet.ByteArray:
			c.meanings = append(c.meanings, c.words.number(v.ByteArray()))
		default: // Int64, and a Double's bits
			c.meanings = append(c.meanings, int64(v.Uint64()))
		}
	}
}
