package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// pageSection is a section with the pictures that stand in it.
type pageSection struct {
	ID     string
	Title  string
	Notes  []template.HTML
	Header []pageCell
	Rows   []pageRow
	Left   int
	Bars   bool
	Of     string // what the bars are shares of
	Chart  template.HTML
}

type pageCell struct {
	HTML  template.HTML
	Whole string // the text, where HTML shows less of it
	Class string
}

type pageRow struct {
	Cells     []pageCell
	Share     float64 // in percent
	Color     template.CSS
	Low, Wide float64 // of the interval, in percent; Wide is 0 where there is none
	Below     template.HTML
	Even      bool
}

// Columns of a table: numbers and short words stay on one line, what is longer may be
// broken where its parts meet.
const (
	numberColumn = "n"
	wordColumn   = "w"
	longColumn   = "l"

	longestWord = 24 // runes of a word that need not be broken
	longestText = 150
)

func (t *table) classes() (all []string) {
	for i, left := range t.left {
		class := wordColumn
		for _, row := range t.rows {
			if len([]rune(row[i])) > longestWord {
				class = longColumn
			}
		}
		if !left {
			class = numberColumn
		}
		all = append(all, class)
	}
	return all
}

// unit is between a number and its unit: they stay on one line.
var unit = regexp.MustCompile(`(\d) (%|[mµn]?s\b|[KMGT]?i?B\b|[kMGTP]?FLOP)`)

func whole(text string) string { return unit.ReplaceAllString(text, "$1\u00a0$2") }

var (
	option = regexp.MustCompile(`--[a-z-]+`)
	quoted = regexp.MustCompile("`([^`]+)`")
)

// noteOf keeps options whole, and shows as code what stands in backquotes.
func noteOf(text string) template.HTML {
	text = template.HTMLEscapeString(whole(printable.Text(text)))
	text = option.ReplaceAllString(text, `<span class="w">$0</span>`)
	return template.HTML(quoted.ReplaceAllString(text, "<code>$1</code>"))
}

// breaks are where a path or the name of a function may be broken.
var breaks = strings.NewReplacer("/", "/<wbr>", "::", "::<wbr>", ",", ",<wbr>", "_", "_<wbr>", "&lt;", "<wbr>&lt;", ".", "<wbr>.")

// words are of a name that has them without anything between.
var words = regexp.MustCompile(`([a-z])([A-Z])`)

func cellOf(text, class string) pageCell {
	text = printable.Text(text)
	c := pageCell{Class: class}
	if number, interval, is := strings.Cut(text, " ("); is && class == numberColumn {
		// Where the page is narrow the interval stands under its number.
		c.Class += " r"
		c.HTML = template.HTML(template.HTMLEscapeString(number + " (" + strings.ReplaceAll(interval, " ", "\u00a0")))
		return c
	}
	if class != longColumn {
		c.HTML = template.HTML(template.HTMLEscapeString(whole(text)))
		return c
	}
	shown := shorten(text, longestText)
	if shown != text {
		c.Whole = text
	}
	c.HTML = template.HTML(words.ReplaceAllString(breaks.Replace(template.HTMLEscapeString(whole(shown))), "$1<wbr>$2"))
	return c
}

func (t *table) page(p *pageSection) {
	p.Bars, p.Of = t.share != nil, t.of
	classes := t.classes()
	for i, h := range t.header {
		p.Header = append(p.Header, cellOf(h, classes[i]))
	}
	percent := func(share float64) float64 { return math.Round(1000*min(max(share, 0), 1)) / 10 }
	for n, row := range t.rows {
		pr := pageRow{Even: n%2 == 1}
		for i, cell := range row {
			pr.Cells = append(pr.Cells, cellOf(cell, classes[i]))
		}
		if p.Bars {
			pr.Share = percent(t.share[n])
		}
		if t.colors != nil {
			pr.Color = template.CSS(t.colors[n])
		}
		if t.ranges != nil {
			pr.Low = percent(t.ranges[n].low)
			pr.Wide = percent(t.ranges[n].high) - pr.Low
		}
		if t.below != nil {
			pr.Below = template.HTML(template.HTMLEscapeString(whole(printable.Text(t.below[n]))))
		}
		p.Rows = append(p.Rows, pr)
	}
}

// writeHTML writes one file: styles and pictures are in it, and nothing is
// fetched from anywhere.
func (r *Report) writeHTML(w io.Writer, style Style) error {
	var sections []pageSection
	for i, s := range r.document(style) {
		p := pageSection{ID: fmt.Sprintf("s%d", i), Title: s.title, Left: s.left}
		for _, n := range s.notes {
			p.Notes = append(p.Notes, noteOf(n))
		}
		if t := s.table; t != nil && len(t.rows) > 0 {
			t.page(&p)
		}
		switch {
		case s.title == "Steps":
			p.Chart = r.stepChart()
		case s.title == "Memory":
			p.Chart = r.memoryChart()
		case s.title == r.phaseTitle():
			p.Chart = r.phaseChart()
		}
		sections = append(sections, p)
	}
	return page.Execute(w, map[string]any{"Verdict": whole(printable.Text(r.Verdict)), "Sections": sections, "Flame": r.flameCharts(),
		"Dataset": r.Dataset})
}
