package importer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
)

// scanner takes the objects of a large JSON document one by one. Its window
// grows with the largest object, not with the document.
type scanner struct {
	ctx  context.Context
	in   io.Reader
	buf  []byte
	pos  int
	end  int
	read int64 // bytes taken from in
	eof  bool
	// begin is where the last value begins in buf, also of one that value could not take.
	begin int
	// mended values had quotation marks in their texts.
	mended int64
}

const (
	window       = 1 << 20
	largestValue = 64 << 20
)

var errEnd = errors.New("it was cut off before its first whole event")

// syntaxError is a place where a file is not JSON.
type syntaxError struct {
	at   int64 // byte of the text
	what string
}

func (e *syntaxError) Error() string { return e.what }

var errLargeValue = fmt.Errorf("it has a value of more than %d MB", largestValue>>20)

func newScanner(ctx context.Context, in io.Reader) *scanner {
	return &scanner{ctx: ctx, in: in, buf: make([]byte, window)}
}

// more makes room and reads on; what stands before from may go. It returns
// where from is now.
func (s *scanner) more(from int) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	if s.eof {
		return 0, errEnd
	}
	if from > 0 {
		copy(s.buf, s.buf[from:s.end])
		s.begin = max(0, s.begin-from)
		s.pos -= from
		s.end -= from
	} else if s.end == len(s.buf) {
		if len(s.buf) >= largestValue {
			return 0, errLargeValue
		}
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	n, err := s.in.Read(s.buf[s.end:])
	s.end += n
	s.read += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		s.eof = true
		if n == 0 {
			return 0, errEnd
		}
	} else if err != nil {
		return 0, err
	}
	return 0, nil
}

// next skips white space and returns the byte there without taking it.
func (s *scanner) next() (byte, error) {
	for {
		for s.pos < s.end {
			switch c := s.buf[s.pos]; c {
			case ' ', '\t', '\r', '\n':
				s.pos++
			default:
				return c, nil
			}
		}
		if _, err := s.more(s.pos); err != nil {
			return 0, err
		}
	}
}

func (s *scanner) take(want byte) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c != want {
		return &syntaxError{s.offset(), fmt.Sprintf("got %q, expected %q", c, want)}
	}
	s.pos++
	return nil
}

func (s *scanner) offset() int64 { return s.read - int64(s.end-s.pos) }

// value takes one value whole. The bytes are good until the next call.
func (s *scanner) value() ([]byte, error) {
	c, err := s.next()
	if err != nil {
		return nil, err
	}
	from, depth := s.pos, 0
	i := s.pos
	s.begin = from
	if c != '{' && c != '[' && c != '"' {
		for {
			for i < s.end && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(s.buf[i])) {
				i++
			}
			if i < s.end {
				break
			}
			if from, i, err = s.grow(from, i); err != nil {
				return nil, err
			}
		}
		if i == from {
			return nil, &syntaxError{s.offset(), fmt.Sprintf("unexpected %q", c)}
		}
		s.pos = i
		return s.buf[from:i], nil
	}
	for {
		for i < s.end {
			switch s.buf[i] {
			case '"':
				i++
				for {
					j := bytes.IndexByte(s.buf[i:s.end], '"')
					for j < 0 {
						i = s.end
						if from, i, err = s.grow(from, i); err != nil {
							return nil, err
						}
						j = bytes.IndexByte(s.buf[i:s.end], '"')
					}
					i += j + 1
					if !escaped(s.buf[from : i-1]) {
						break
					}
				}
				if depth == 0 {
					s.pos = i
					return s.buf[from:i], nil
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
				if depth == 0 {
					s.pos = i + 1
					return s.buf[from:s.pos], nil
				}
			}
			i++
		}
		if from, i, err = s.grow(from, i); err != nil {
			return nil, err
		}
	}
}

func (s *scanner) grow(from, i int) (int, int, error) {
	now, err := s.more(from)
	if err != nil {
		return 0, 0, err
	}
	return now, i - from + now, nil
}

// escaped says whether what follows b stands behind an odd number of backslashes.
func escaped(b []byte) bool {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// skip passes over one value of any size.
func (s *scanner) skip() error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c != '{' && c != '[' {
		_, err := s.value()
		return err
	}
	depth := 0
	for {
		c, err := s.next()
		if err != nil {
			return err
		}
		switch c {
		case '"':
			if _, err := s.value(); err != nil {
				return err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.pos++
		if depth == 0 {
			return nil
		}
	}
}

// list calls f for each element of an array.
func (s *scanner) list(f func([]byte) error) error {
	if err := s.take('['); err != nil {
		return err
	}
	for {
		c, err := s.next()
		switch {
		case err != nil:
			return err
		case c == ']':
			s.pos++
			return nil
		case c == ',':
			s.pos++
			continue
		}
		if s.mended > 0 { // strict JSON would read on to the end of the file at each odd quotation mark
			s.begin = s.pos
			if done, err := s.mend(f); done || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		v, err := s.value()
		if err == nil {
			err = f(v)
		}
		var syntax *syntaxError
		if errors.As(err, &syntax) || errors.Is(err, errEnd) || errors.Is(err, errLargeValue) {
			done, failed := s.mend(f)
			if done && failed == nil {
				continue
			}
			err = cmp.Or(failed, err)
		}
		if err != nil {
			return s.place(err)
		}
	}
}

// mend takes the value at begin as an event with quotation marks in its texts; without success it stays
// where it is.
func (s *scanner) mend(f func([]byte) error) (done bool, err error) {
	s.pos = s.begin
	if s.begin < s.end && s.buf[s.begin] != '{' {
		return false, nil
	}
	for {
		event, length, short := mendEvent(s.buf[s.begin:s.end])
		if event != nil {
			if s.pos = s.begin + length; !bytes.Equal(event, s.buf[s.begin:s.pos]) {
				s.mended++
			}
			return true, f(event)
		}
		if !short || s.end-s.begin >= mostMended {
			return false, nil
		}
		if _, err := s.more(s.begin); err != nil {
			return false, nil // what was wrong with the value is the error
		}
	}
}

// place makes a place in a value one in the text.
func (s *scanner) place(err error) error {
	var syntax *syntaxError
	if errors.As(err, &syntax) && syntax.at < 0 {
		return &syntaxError{s.read - int64(s.end-s.begin) + ^syntax.at, syntax.what}
	}
	return err
}

// members calls f for each member of an object that is there whole: key and
// value as they stand, without white space around them.
func members(object []byte, f func(key, value []byte)) bool { return invalidAt(object, f) < 0 }

// invalidAt is members; it returns where the object is no JSON, −1 if it is.
func invalidAt(object []byte, f func(key, value []byte)) int {
	i := 0
	space := func() {
		for i < len(object) && (object[i] == ' ' || object[i] == '\n' || object[i] == '\t' || object[i] == '\r') {
			i++
		}
	}
	if len(object) == 0 || object[0] != '{' {
		return i
	}
	i++
	for {
		space()
		if i >= len(object) {
			return i
		}
		switch object[i] {
		case '}':
			if i+1 < len(object) {
				return i + 1
			}
			return -1
		case ',':
			i++
			continue
		case '"':
		default:
			return i
		}
		key := text(object[i:])
		if key == nil {
			return i
		}
		i += len(key)
		space()
		if i >= len(object) || object[i] != ':' {
			return i
		}
		i++
		space()
		n := valueLength(object[i:])
		if n <= 0 {
			return i
		}
		f(key[1:len(key)-1], object[i:i+n])
		i += n
	}
}

// text is the string that b begins with, quotes included.
func text(b []byte) []byte {
	i := 1
	for {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			return nil
		}
		i += j + 1
		if b[i-2] != '\\' || !escaped(b[:i-1]) {
			return b[:i]
		}
	}
}

func valueLength(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '"':
		return len(text(b))
	case '{', '[':
		depth := 0
		for i := 0; i < len(b); i++ {
			switch b[i] {
			case '"':
				t := text(b[i:])
				if t == nil {
					return 0
				}
				i += len(t) - 1
			case '{', '[':
				depth++
			case '}', ']':
				depth--
				if depth == 0 {
					return i + 1
				}
			}
		}
		return 0
	}
	for i, c := range b {
		if c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t' {
			return i
		}
	}
	return len(b)
}
