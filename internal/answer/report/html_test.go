package report

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// TestThePageIsWholeAndFetchesNothing with names that would be markup.
func TestThePageIsWholeAndFetchesNothing(t *testing.T) {
	hostile := `</svg><script>alert(1)</script>&"'` + "\x1b[31m"
	r := &Report{
		Verdict: hostile, Steps: &Steps{Count: 3, MeanMS: 2, PeriodMS: []float64{1, 2, 3}, Method: hostile},
		Phases:    []Phase{{Phase: timeline.Forward, MSPerStep: 1, Percent: 60}, {Phase: timeline.OtherPhase, MSPerStep: 1, Percent: 40}},
		Operators: []Operator{{Name: hostile, Calls: 1}}, Warnings: []string{hostile},
		Memory:   []Memory{{Space: hostile, PeakBytes: 5, series: []point{{0, 1}, {1, 5}, {2, 3}}}},
		Findings: []findings.Finding{{Rule: "hotspot", Name: hostile}},
		flames: []flameGraph{{hostile, &flame{name: hostile, ns: 5, children: map[string]*flame{hostile: {name: hostile, ns: 4}}},
			&flame{name: hostile, ns: 5}}},
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
		if !strings.HasPrefix(fetched, `href="#`) && !strings.HasPrefix(fetched, "src 'unsafe-inline'") && !strings.HasPrefix(fetched,
			"src data:") && !strings.HasPrefix(fetched, "src 'none'") {
			t.Errorf("the page fetches %s", fetched)
		}
	}
	pictures := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
	if len(pictures) != 5 {
		t.Errorf("%d pictures: steps, phases, memory and the flame graph in both directions are five", len(pictures))
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

// TestAFlameGraphHasBothDirectionsAndShowsWhatFindingsName: the function that a finding names has an edge in both, a
// namesake in another file has none.
func TestAFlameGraphHasBothDirectionsAndShowsWhatFindingsName(t *testing.T) {
	g := flameGraph{"time on the CPU", &flame{name: "all"}, &flame{name: "all"}}
	for path, ns := range map[string]float64{"main (train.py);step (train.py);mm": 6, "main (train.py);load (data.py)": 3,
		"main (train.py);step (other.py)": 1} {
		names := strings.Split(path, ";")
		g.down.add(names, ns)
		slices.Reverse(names)
		g.up.add(names, ns)
	}
	file, function := "/job/train.py", "step"
	r := &Report{flames: []flameGraph{g}, Findings: []findings.Finding{{Rule: "hotspot", Name: "step", File: &file, Function: &function},
		{Rule: "fusion", Name: "mm"}}}
	text := string(r.flameCharts())
	down, up, both := strings.Cut(text, "bottom-up")
	if !both || !strings.Contains(down, "<title>mm: ") || !strings.Contains(up, "<title>main (train.py): ") {
		t.Fatal(text)
	}
	for _, chart := range []string{down, up} {
		accused := regexp.MustCompile(`<title>([^<]*)</title><rect class="frame accused"`).FindAllStringSubmatch(chart, -1)
		if len(accused) != 2 || !strings.Contains(chart, "60.0 %); hotspot") && !strings.Contains(chart, "60 %); hotspot") ||
			!strings.Contains(chart, "%); fusion") {
			t.Errorf("%q", accused)
		}
	}
	if at := strings.Index(up, "<title>mm: "); at < 0 || at > strings.Index(up, "<title>step (train.py): ") {
		t.Error("bottom-up mm comes before its caller")
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

// TestNoWordOfAPageIsCut: a short word and a number with its unit stay on one line; what
// is long may be broken where its parts meet, and nowhere else.
func TestNoWordOfAPageIsCut(t *testing.T) {
	percent, ms, low, high := 20.0, 2.0, 1.0, 3.0
	file, line := "/home/somebody/a_long_directory/of_the_model/train.py", 17
	kernel := "void at::native::" + strings.Repeat("vectorized_elementwise_kernel<", 9) + "int>"
	r := &Report{
		Verdict: "A step takes 5.00 ms, 60 % of it backward.", Phases: []Phase{{Phase: timeline.Forward, MSPerStep: 1, Percent: 60}},
		Kernels: []Kernel{{Name: kernel, Calls: 1, DeviceMS: 1, Percent: 50, Operator: "aten::add"}},
		Findings: []findings.Finding{{Rule: "layout", Severity: findings.High, HeadroomMS: &ms, HeadroomPercent: &percent, LowMS: &low,
			HighMS: &high,
			File:   &file, Line: &line, Advice: "Copy less."}},
	}
	var b strings.Builder
	if err := r.Write(&b, "html", Style{}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		"5.00\u00a0ms, 60\u00a0% of it", `<td class="w">high</td><td class="w">layout</td>`,
		"<td class=\"n r\">2.000 (1.000\u00a0to\u00a03.000)</td>",
		`<td class="l">/<wbr>home/<wbr>somebody/<wbr>a_<wbr>long_<wbr>directory/<wbr>of_<wbr>the_<wbr>model/<wbr>train<wbr>.py:17</td>`,
		`style="left:10%;width:20%"`, `colspan="20">Copy less.</td>`, `title="void at::native::`, `style="width:60%;background:#2563eb"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if regexp.MustCompile(`t[dh][^}]*anywhere`).MatchString(page) {
		t.Error("words of a table are broken anywhere")
	}
}

// TestFindingsWithoutHeadroomHaveNoColumnsForIt.
func TestFindingsWithoutHeadroomHaveNoColumnsForIt(t *testing.T) {
	s := (&Report{Findings: []findings.Finding{{Rule: "hotspot", Severity: findings.Info, Name: "step",
		Advice: "Look here."}}}).findingSection()
	if got := strings.Join(s.table.rows[0], "|"); got != "info|hotspot|step" || len(s.table.header) != 3 || len(s.table.left) != 3 ||
		s.table.share != nil || len(s.notes) > 0 {
		t.Errorf("%q %+v", got, s)
	}
}

// TestTextHasTheAdviceWhole under its finding, however narrow the terminal is.
func TestTextHasTheAdviceWhole(t *testing.T) {
	percent, ms, low, high := 20.0, 2.0, 1.0, 3.0
	advice := strings.TrimSpace(strings.Repeat("Copy less in the loop. ", 20))
	file, line := "/home/somebody/projects/"+strings.Repeat("nested/", 20)+"train.py", 17
	r := &Report{Findings: []findings.Finding{{Rule: "layout", Severity: findings.High, HeadroomMS: &ms, HeadroomPercent: &percent,
		LowMS: &low, HighMS: &high, Advice: advice, File: &file, Line: &line}}}
	var b strings.Builder
	if err := r.Write(&b, "text", Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(got, advice) || !strings.Contains(got,
		"2.000 (1.000 to 3.000)") || !strings.Contains(got, "/train.py:17") {
		t.Errorf("%s", b.String())
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if strings.HasPrefix(line, "      ") && len(line) > 80 {
			t.Errorf("%q is wider than the terminal", line)
		}
	}
}
