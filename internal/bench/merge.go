package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A run of some parts only (-only) replaces on the page what it measured and
// leaves the rest.

// merge puts a partial page into a whole one.
func (r *results) merge(old, partial string) string {
	sections := split(old)
	var again []string
	for _, s := range split(partial)[1:] {
		i := sectionOf(sections, s.title)
		switch {
		case s.title == "Targets" && i >= 0:
			sections[i].text = mergeRows(sections[i].text, s.text)
		case strings.HasPrefix(s.title, "How"):
		case i >= 0:
			sections[i].text = s.text
			again = append(again, strings.ToLower(s.title))
		case s.title != "Targets": // a part that the page had not yet
			last := len(sections) - 1
			sections = slices.Insert(sections, last, s)
			again = append(again, strings.ToLower(s.title))
		}
	}
	note := fmt.Sprintf("Measured again on %s, at load averages of %s, with `%s`: %s.\n\n",
		time.Now().UTC().Format("2006-01-02 15:04"), loads(r.load), r.command, strings.Join(again, "; "))
	sections[0].text += note
	var b strings.Builder
	for _, s := range sections {
		b.WriteString(s.text)
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

// mergeRows replaces the rows of a table whose first two cells are the same.
func mergeRows(old, partial string) string {
	key := func(line string) string {
		cells := strings.SplitN(line, "|", 4)
		if len(cells) < 4 {
			return ""
		}
		return cells[1] + "|" + cells[2]
	}
	lines := slices.Collect(strings.Lines(old))
	for line := range strings.Lines(partial) {
		if key(line) == "" {
			continue
		}
		same := slices.IndexFunc(lines, func(l string) bool { return key(l) == key(line) })
		if same >= 0 {
			lines[same] = line
			continue
		}
		last := len(lines) // a target that the page had not yet
		for last > 0 && key(lines[last-1]) == "" {
			last--
		}
		lines = slices.Insert(lines, last, line)
	}
	return strings.Join(lines, "")
}
