// Package printable makes text of what a job calls its things. Names of programs,
// threads, functions, files and scopes are the job's own, and a name with an escape
// sequence in it would move the cursor, hide a line, or answer for whoever reads it.
// Every writer of text sends such names through here; datasets keep the bytes.
package printable

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Text is s on one line: control characters (C0, DEL, C1), characters that
// turn the direction of a line around or break it, and bytes that are no UTF-8 are
// written as escapes: \x1b, \u202e, \xff.
func Text(s string) string { return escape(s, "") }

// mostShort is how much of a name Short shows, bytes.
const mostShort = 200

// Short is Text of a name of which nothing bounds the length: of one of more than 200
// bytes its beginning.
func Short(s string) string {
	if len(s) <= mostShort {
		return Text(s)
	}
	end := mostShort
	for end > mostShort-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return Text(s[:end]) + "…"
}

// Lines is Text of a text that may have several lines.
func Lines(s string) string { return escape(s, "\n") }

func escape(s, keep string) string {
	first := 0
	for first < len(s) && ' ' <= s[first] && s[first] <= '~' {
		first++
	}
	if first == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:first])
	for rest := s[first:]; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, rest[0])
		case !hidden(r) || strings.ContainsRune(keep, r):
			b.WriteString(rest[:size])
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		rest = rest[size:]
	}
	return b.String()
}

// hidden are the characters that do something instead of being something.
func hidden(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f: // C0, DEL, C1
		return true
	case r == 0x2028, r == 0x2029: // line and paragraph separators
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // direction
		return true
	}
	return false
}

// JSON passes JSON on to w, with those characters that JSON allows and a terminal
// obeys (DEL, C1, directions) escaped. Each Write has whole values.
func JSON(w io.Writer) io.Writer { return jsonWriter{w} }

type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(p []byte) (int, error) {
	if _, err := j.w.Write(jsonControl.ReplaceAllFunc(p, func(c []byte) []byte {
		r, _ := utf8.DecodeRune(c)
		return fmt.Appendf(nil, `\u%04x`, r)
	})); err != nil {
		return 0, err
	}
	return len(p), nil
}

// jsonControl are characters that JSON has only in strings.
var jsonControl = regexp.MustCompile(`[\x{7f}-\x{9f}\x{61c}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}]`)
