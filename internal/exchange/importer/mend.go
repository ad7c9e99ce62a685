package importer

import (
	"bytes"
	"slices"
)

// Kineto before PyTorch 1.13 wrote names of Python functions as they are, with quotation marks in
// them. Strict JSON ends the name at the first; mendEvent ends it where the rest of the event
// follows, and puts backslashes before those inside.

// mostMended is the length of an event that is mended.
const mostMended = 1 << 20

// eventKeys are the members that an event of Chrome's format can have.
var eventKeys = []string{
	"ph", "cat", "name", "pid", "tid", "ts", "dur", "tts", "tdur", "id", "id2", "bp", "s", "args", "cname", "sf", "esf", "stack", "estack",
	"scope", "bind_id",
}

// mender reads one event.
type mender struct {
	in, out []byte
	at      int
	short   bool // in ends too early to tell
}

// mendEvent returns the event that in begins with as JSON, and its length in in. short says that more of
// the file may help.
func mendEvent(in []byte) (event []byte, length int, short bool) {
	m := &mender{in: in}
	if !m.object(true) {
		return nil, 0, m.short
	}
	return m.out, m.at, false
}

// space copies white space and returns the byte after it, 0 at the end.
func (m *mender) space() byte {
	for m.at < len(m.in) {
		c := m.in[m.at]
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
		m.out = append(m.out, c)
		m.at++
	}
	m.short = true
	return 0
}

func (m *mender) take(c byte) bool {
	if m.space() != c {
		return false
	}
	m.at++
	m.out = append(m.out, c)
	return true
}

// object reads an event (top) or an object in one.
func (m *mender) object(top bool) bool {
	if !m.take('{') {
		return false
	}
	if m.space() == '}' {
		return m.take('}')
	}
	for {
		key := text(m.in[min(m.at, len(m.in)):])
		if m.space() != '"' || key == nil {
			m.short = m.short || key == nil
			return false
		}
		m.at += len(key)
		m.out = append(m.out, key...)
		if !m.take(':') || !m.value(top, false) {
			return false
		}
		if m.space() == '}' {
			return m.take('}')
		}
		if !m.take(',') {
			return false
		}
		m.space()
	}
}

func (m *mender) value(top, list bool) bool {
	switch m.space() {
	case '"':
		return m.string(top, list)
	case '{':
		return m.object(false)
	case '[':
		return m.list()
	}
	n := valueLength(m.in[m.at:])
	if n == 0 || m.at+n == len(m.in) {
		m.short = true
		return false
	}
	m.out = append(m.out, m.in[m.at:m.at+n]...)
	m.at += n
	return true
}

func (m *mender) list() bool {
	if !m.take('[') {
		return false
	}
	for m.space() != ']' {
		if !m.value(false, true) {
			return false
		}
		if c := m.space(); c != ',' {
			if c != ']' {
				return false
			}
			break
		}
		m.take(',')
	}
	return m.take(']')
}

// string reads a text up to the first quotation mark after which the rest of an event follows.
func (m *mender) string(top, list bool) bool {
	from := m.at + 1
	for end := from; ; end++ {
		j := bytes.IndexByte(m.in[min(end, len(m.in)):], '"')
		if j < 0 {
			m.short = true
			return false
		}
		end += j
		if !m.ends(end+1, top, list) {
			continue
		}
		m.out = append(m.out, '"')
		m.out = appendEscaped(m.out, m.in[from:end])
		m.out = append(m.out, '"')
		m.at = end + 1
		return true
	}
}

// ends reports whether a text that ends before at can be the end of a member's value.
func (m *mender) ends(at int, top, list bool) bool {
	peek := &mender{in: m.in, at: at}
	c := peek.space()
	peek.at++
	switch {
	case c == '}' && top: // the end of the event: another one or the end of their list follows
		next := peek.space()
		if next == ']' || next == ',' {
			return true
		}
	case c == '}' && !list:
		next := peek.space()
		return next == ',' || next == '}' || next == ']'
	case c == ']' && list:
		return true
	case c == ',' && list:
		return true
	case c == ',':
		if peek.space() != '"' {
			m.short = m.short || peek.short
			return false
		}
		key := text(m.in[peek.at:])
		if key == nil {
			m.short = true
			return false
		}
		peek.at += len(key)
		if top && !slices.Contains(eventKeys, string(key[1:len(key)-1])) {
			return false
		}
		return peek.space() == ':'
	}
	m.short = m.short || peek.short
	return false
}

// appendEscaped appends a text with a backslash before each quotation mark that has none, and
// before a backslash at the end.
func appendEscaped(out, text []byte) []byte {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			out = append(out, '\\', '"')
		case c == '\\' && i+1 < len(text):
			out = append(out, c, text[i+1])
			i++
		case c == '\\':
			out = append(out, '\\', '\\')
		default:
			out = append(out, c)
		}
	}
	return out
}
