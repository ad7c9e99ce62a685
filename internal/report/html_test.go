package report

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/timeline"
)

// TestThePageIsWholeAndFetchesNothing with names that would be markup.
func TestThePageIsWholeAndFetchesNothing(t *testing.T) {
	hostile := `</svg><script>alert(1)</script>&"'` + "\x1b[31m"
	r := &Report{
		Verdict: hostile, Steps: &Steps{Count: 3, MeanMS: 2, PeriodMS: []float64{1, 2, 3}, Method: hostile},
		Phases:    []Phase{{Phase: timeline.Forward, MSPerStep: 1, Percent: 60}, {Phase: timeline.OtherPhase, MSPerStep: 1, Percent: 40}},
		Operators: []Operator{{Name: hostile, Calls: 1}}, Warnings: []string{hostile},
		Memory: []Memory{{Space: hostile, PeakBytes: 5, series: []point{{0, 1}, {1, 5}, {2, 3}}}},
		flame:  &flame{name: hostile, ns: 5, children: map[string]*flame{hostile: {name: hostile, ns: 4}}},
	}
	var b strings.Builder
	if err := r.Write(&b, "html", Style{}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if strings.Contains(page, "<script") || strings.Contains(page, "ZgotmplZ") || strings.Contains(page, "\x1b") {
		t.Error("a name became markup")
	}
	for _, fetched := range regexp.MustCompile(`(?i)(src|href|url\(|@import|https?:)[^;]{0,40}`).FindAllString(page, -1) {
		if !strings.HasPrefix(fetched, "src 'unsafe-inline'") && !strings.HasPrefix(fetched, "src data:") && !strings.HasPrefix(fetched, "src 'none'") {
			t.Errorf("the page fetches %s", fetched)
		}
	}
	pictures := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
	if len(pictures) != 4 {
		t.Errorf("%d pictures: steps, phases, memory and the flame graph are four", len(pictures))
	}
	for _, svg := range pictures {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in %s", err, svg)
			}
		}
	}
}

func TestTextShowsNothingThatATerminalWouldAct(t *testing.T) {
	r := &Report{Verdict: "a\x1b[31m\x07", Operators: []Operator{{Name: "b\x1b]0;x\x07\nc"}}, Warnings: []string{"d\x9b1m"}}
	for _, format := range []string{"text", "markdown"} {
		var b strings.Builder
		if err := r.Write(&b, format, Style{}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(b.String(), "\x1b\x07\u009b") {
			t.Errorf("%s: %q", format, b.String())
		}
	}
}
