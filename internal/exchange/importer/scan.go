package importer

import (
	"bytes"
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
}

const (
	window       = 1 << 20
	largestValue = 64 << 20
)

var errEnd = errors.New("it ends in the middle: was it cut off?")

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
		s.pos -= from
		s.end -= from
	} else if s.end == len(s.buf) {
		if len(s.buf) >= largestValue {
			return 0, fmt.Errorf("it has a value of more than %d MB", largestValue>>20)
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
		return fmt.Errorf("invalid JSON: got %q, expected %q, after %d bytes", c, want, s.offset())
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
			return nil, fmt.Errorf("it is not JSON: %q after %d bytes", c, s.offset())
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
		v, err := s.value()
		if err != nil {
			return err
		}
		if err := f(v); err != nil {
			return err
		}
	}
}

// members calls f for each member of an object that is there whole: key and
// value as they stand, without white space around them.
func members(object []byte, f func(key, value []byte)) bool {
	i := 0
	space := func() {
		for i < len(object) && (object[i] == ' ' || object[i] == '\n' || object[i] == '\t' || object[i] == '\r') {
			i++
		}
	}
	if len(object) == 0 || object[0] != '{' {
		return false
	}
	i++
	for {
		space()
		if i >= len(object) {
			return false
		}
		switch object[i] {
		case '}':
			return true
		case ',':
			i++
			continue
		case '"':
		default:
			return false
		}
		key := text(object[i:])
		if key == nil {
			return false
		}
		i += len(key)
		space()
		if i >= len(object) || object[i] != ':' {
			return false
		}
		i++
		space()
		n := valueLength(object[i:])
		if n <= 0 {
			return false
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
