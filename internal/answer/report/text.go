package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

const barWidth = 20

func (r *Report) writeText(w io.Writer, style Style) error {
	out := bufio.NewWriter(w)
	r.writeParagraphs(out, style)
	for _, s := range r.document(style) {
		s.write(out, style)
	}
	return out.Flush()
}

// WriteFirst writes what the report begins with, the verdict and the hottest lines, as text.
func (r *Report) WriteFirst(w io.Writer, style Style) error {
	out := bufio.NewWriter(w)
	r.writeParagraphs(out, style)
	hot := r.hotLineSection().title
	for _, s := range r.document(style) {
		if s.title == hot || s.title == standingTitle {
			s.write(out, style)
		}
	}
	return out.Flush()
}

func (r *Report) writeParagraphs(out *bufio.Writer, style Style) {
	bold, plain := style.bold()
	for i, line := range wrap(printable.Text(r.first), readingWidth(style.Width)) {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s%s%s", bold, line, plain)
	}
	fmt.Fprintln(out)
	if r.second != "" {
		fmt.Fprintln(out)
		for _, line := range wrap(printable.Text(r.second), readingWidth(style.Width)) {
			fmt.Fprintln(out, line)
		}
	}
}

func (s section) write(out *bufio.Writer, style Style) {
	bold, plain := style.bold()
	fmt.Fprintf(out, "\n%s%s%s\n", bold, s.title, plain)
	for _, n := range s.notes {
		fmt.Fprintf(out, "  %s\n", printable.Text(n))
	}
	if s.table != nil && len(s.table.rows) > 0 {
		s.table.write(out, style.Width)
	}
	if s.left > 0 {
		fmt.Fprintf(out, "  … %d more\n", s.left)
	}
}

func (s Style) bold() (on, off string) {
	if s.Color {
		return "\x1b[1m", "\x1b[0m"
	}
	return "", ""
}

// readingWidth is how wide prose is: lines much longer than that are hard to read. A pipe has each paragraph on one line.
func readingWidth(terminal int) int {
	if terminal <= 0 {
		return math.MaxInt
	}
	return min(terminal, 120)
}

// write aligns the columns; the widest text column gives way to the terminal.
func (t *table) write(out *bufio.Writer, width int) {
	if width <= 0 {
		width = 140
	}
	widths := make([]int, len(t.header))
	rows := append([][]string{t.header}, t.rows...)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	total := 2 + 2*(len(widths)-1)
	widest := 0
	for i, n := range widths {
		total += n
		if n > widths[widest] {
			widest = i
		}
	}
	bars := t.share != nil
	if bars {
		total += 2 + barWidth
	}
	if total > width {
		widths[widest] = max(16, widths[widest]-(total-width))
	}
	for n, row := range rows {
		fmt.Fprint(out, "  ")
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(out, "  ")
			}
			cell = shortened(printable.Text(cell), widths[i])
			pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			switch {
			case !t.left[i]:
				fmt.Fprint(out, pad, cell)
			case i == len(row)-1 && !bars:
				fmt.Fprint(out, cell)
			default:
				fmt.Fprint(out, cell, pad)
			}
		}
		if bars && n > 0 {
			if b := bar(t.share[n-1]); b != "" {
				fmt.Fprint(out, "  ", b)
			}
		} else if bars {
			fmt.Fprint(out, "  ", t.of)
		}
		fmt.Fprintln(out)
		if n > 0 && t.below != nil {
			for _, line := range wrap(printable.Text(t.below[n-1]), width-6) {
				fmt.Fprintf(out, "      %s\n", line)
			}
		}
	}
}

// line is a place in a file.
var line = regexp.MustCompile(`/.*:\d+$`)

// shortened keeps the end of a place, which says the file and the line, and both ends of
// anything else.
func shortened(text string, width int) string {
	runes := []rune(text)
	if len(runes) > width && width > 1 && line.MatchString(text) {
		return "…" + string(runes[len(runes)-width+1:])
	}
	return shorten(text, width)
}

// wrap cuts a sentence into lines, between words.
func wrap(text string, width int) (lines []string) {
	at := ""
	for _, word := range strings.Fields(text) {
		if at != "" && utf8.RuneCountInString(at)+1+utf8.RuneCountInString(word) > width {
			lines, at = append(lines, at), ""
		}
		at = strings.TrimPrefix(at+" "+word, " ")
	}
	return append(lines, at)
}

// bar is a share as a bar, to an eighth of a character.
func bar(share float64) string {
	eighths := int(min(max(share, 0), 1)*barWidth*8 + 0.5)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return text
}

func (r *Report) writeMarkdown(w io.Writer, style Style) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "**%s**\n", markdown(r.first))
	if r.second != "" {
		fmt.Fprintf(out, "\n%s\n", markdown(r.second))
	}
	for _, s := range r.document(style) {
		fmt.Fprintf(out, "\n## %s\n\n", s.title)
		for _, n := range s.notes {
			fmt.Fprintf(out, "- %s\n", markdown(n))
		}
		if t := s.table; t != nil && len(t.rows) > 0 {
			if len(s.notes) > 0 {
				fmt.Fprintln(out)
			}
			header, left := t.header, t.left
			if t.below != nil {
				header, left = append(slices.Clone(header), t.about), append(slices.Clone(left), true)
			}
			fmt.Fprintf(out, "| %s |\n|", strings.Join(header, " | "))
			for _, left := range left {
				fmt.Fprint(out, map[bool]string{true: " --- |", false: " ---: |"}[left])
			}
			fmt.Fprintln(out)
			for n, row := range t.rows {
				if t.below != nil {
					row = append(slices.Clone(row), t.below[n])
				}
				cells := make([]string, len(row))
				for i, cell := range row {
					cells[i] = markdown(cell)
				}
				fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
			}
		}
		if s.left > 0 {
			fmt.Fprintf(out, "\n… %d more\n", s.left)
		}
	}
	return out.Flush()
}

var markdownEscapes = strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`)

func markdown(s string) string { return markdownEscapes.Replace(printable.Text(s)) }
