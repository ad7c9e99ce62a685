package main

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A run replaces on the page what it measured and leaves the rest: sections of parts
// that it left out (-only), and those that other programs' figures are in (the soak).

// merge puts the page of this run into the one that was there.
func (r *results) merge(old, written string) string {
	was, now := split(old), split(written)
	sections := now
	for i, s := range was[1:] {
		at := sectionOf(sections, s.title)
		switch {
		case at < 0:
			// After the section that it stood behind.
			after := max(0, sectionOf(sections, was[i].title))
			sections = slices.Insert(sections, after+1, s)
		case keyed(s.title):
			sections[at].text = mergeRows(s.text, sections[at].text)
		}
	}
	var b strings.Builder
	for _, s := range sections {
		b.WriteString(s.text)
	}
	return b.String()
}

// keyed sections have rows of several parts: each row is replaced by itself.
func keyed(title string) bool { return title == "Targets" || title == paidTitle }

// dated says below the title of each section when it was measured, but for those that
// are put together of rows of several runs, and the words about how.
func (r *results) dated(page string) string {
	sections := split(page)
	for i, s := range sections[1:] {
		if keyed(s.title) || strings.HasPrefix(s.title, "How") {
			continue
		}
		title, rest, _ := strings.Cut(s.text, "\n")
		sections[i+1].text = title + "\n\n" + r.measured() + "\n" + rest
	}
	var b strings.Builder
	for _, s := range sections {
		b.WriteString(s.text)
	}
	return b.String()
}

// columns is how wide lines of a document are (internal/dev/columns).
const columns = 120

// wrap breaks the lines of a document, but for titles, tables and program output.
func wrap(page string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if fenced || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") {
			b.WriteString(line + "\n")
			continue
		}
		indent := ""
		if strings.HasPrefix(line, "- ") {
			indent = "  "
		}
		width := 0
		for i, word := range strings.Split(line, " ") {
			n := utf8.RuneCountInString(word)
			switch {
			case i == 0:
			case width+1+n > columns:
				b.WriteString("\n" + indent)
				width = len(indent)
			default:
				b.WriteByte(' ')
				width++
			}
			b.WriteString(word)
			width += n
		}
		b.WriteByte('\n')
	}
	return b.String()
}

type section struct{ title, text string }

func split(page string) []section {
	sections := []section{{}}
	for line := range strings.Lines(page) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			sections = append(sections, section{title: strings.TrimSpace(title)})
		}
		sections[len(sections)-1].text += line
	}
	return sections
}

func sectionOf(sections []section, title string) int {
	for i := range sections {
		if sections[i].title == title {
			return i
		}
	}
	return -1
}

// mergeRows puts the rows of an old table and those of a new one together, the new ones
// in the places of those whose first two cells are the same. Words and header are the
// new ones.
func mergeRows(old, written string) string {
	key := func(row string) string { return strings.Join(strings.SplitN(row, "|", 4)[:3], "|") }
	head, rows := tableOf(written)
	_, merged := tableOf(old)
	for _, row := range rows {
		same := slices.IndexFunc(merged, func(r string) bool { return key(r) == key(row) })
		if same < 0 {
			merged = append(merged, row)
			continue
		}
		merged[same] = row
	}
	return head + strings.Join(merged, "") + "\n"
}

// tableOf cuts a section with one table behind the table's rule: what is above, and the rows.
func tableOf(section string) (head string, rows []string) {
	ruled := false
	for line := range strings.Lines(section) {
		switch row := strings.HasPrefix(line, "| "); {
		case !ruled:
			head += line
			ruled = strings.HasPrefix(line, "| ---")
		case row:
			rows = append(rows, line)
		}
	}
	return head, rows
}
