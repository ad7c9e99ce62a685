package results

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/numbers"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

// Formats are the names that Write knows.
func Formats() []string { return []string{"text", "markdown", "csv", "json", "junit", "html"} }

// Write writes the session in one of the Formats.
func (s *Session) Write(w io.Writer, format string) error {
	switch format {
	case "text":
		return s.writeText(w, false)
	case "markdown":
		return s.writeText(w, true)
	case "csv":
		return s.writeCSV(w)
	case "json":
		return s.writeJSON(w)
	case "junit":
		return s.writeJUnit(w)
	case "html":
		return s.writeHTML(w)
	}
	return fmt.Errorf("unknown format %q: one of %s", format, strings.Join(Formats(), ", "))
}

func (s *Session) writeText(w io.Writer, markdown bool) error {
	var out strings.Builder
	for i, b := range s.Benchmarks {
		if i > 0 {
			out.WriteString("\n")
		}
		if markdown {
			fmt.Fprintf(&out, "## %s\n\n", b.Name)
		}
		out.WriteString(b.sentence() + "\n\n")
		b.table(&out, markdown)
		b.references(&out, markdown)
		b.failures(&out)
		if len(b.Inventory) > 0 {
			var facts []string
			for _, item := range b.Inventory {
				facts = append(facts, item.Key+" "+item.Value)
			}
			fmt.Fprintf(&out, "\nRan with: %s\n", strings.Join(facts, "; "))
		}
		if absent := b.unavailable(); absent != "" {
			fmt.Fprintf(&out, "Not available: %s\n", absent)
		}
	}
	fmt.Fprintf(&out, "\nsession %s in %s", s.ID, s.Store)
	if len(s.Benchmarks) > 1 || s.Verdict != NoReference {
		fmt.Fprintf(&out, ": %s", s.Verdict)
	}
	out.WriteString("\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// sentence says the most important first.
func (b *Benchmark) sentence() string {
	var parts []string
	if n, ok := numbers.Find(b.Numbers, numbers.Throughput); ok && n.Value != nil {
		parts = append(parts, Figure(*n.Value)+" samples/s")
	} else if n, ok := numbers.Find(b.Numbers, numbers.StepsPerSecond); ok && n.Value != nil {
		parts = append(parts, Figure(*n.Value)+" steps/s")
	}
	step, _ := numbers.Find(b.Numbers, numbers.StepTime)
	for _, of := range []struct{ name, text string }{{numbers.ExposedIO, "waiting for data"}, {numbers.Exposed, "communication"}} {
		n, _ := numbers.Find(b.Numbers, of.name)
		if n.Value != nil && step.Value != nil && *n.Value >= 0.01**step.Value {
			parts = append(parts, fmt.Sprintf("%.0f %% of a step is %s", 100**n.Value / *step.Value, of.text))
		}
	}
	if n, ok := numbers.Find(b.Numbers, numbers.EpochTime); ok && n.Value != nil {
		parts = append(parts, "an epoch takes "+Figure(*n.Value)+" s")
	}
	text := b.Name
	if b.Verdict != NoReference {
		text += ": " + string(b.Verdict)
	}
	if len(parts) == 0 {
		parts = append(parts, "no numbers")
	}
	text += ": " + strings.Join(parts, ", ")
	switch {
	case len(b.Runs) == 1:
		text += "; 1 run, so that intervals are of its steps (--repeat 5 tells how runs differ)"
	case b.RunSpreadPercent != nil:
		text += fmt.Sprintf("; %d runs, whose step times spread by %.1f %%", len(b.Runs), *b.RunSpreadPercent)
	}
	return text + "."
}

// Figure is a number of four digits, for people.
func Figure(v float64) string {
	switch a := math.Abs(v); {
	case v == 0:
		return "0"
	case a < 1e15 && v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.IsInf(v, 0) || math.IsNaN(v):
		return fmt.Sprint(v)
	case a >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a >= 0.01:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func interval(n numbers.Number) string {
	if n.Lo == nil || n.Hi == nil {
		return ""
	}
	return Figure(*n.Lo) + " to " + Figure(*n.Hi)
}

func (b *Benchmark) table(out *strings.Builder, markdown bool) {
	t := terminal.PlainTable("number", "value", "unit", "95 % interval", "of", "what it is")
	for _, n := range b.Numbers {
		if n.Value == nil {
			continue
		}
		kind, _ := numbers.KindOf(n.Name)
		meaning := kind.Meaning
		if n.Why != "" {
			meaning = n.Why
		}
		of := ""
		if n.From != "" {
			of = fmt.Sprintf("%d %s", n.Of, n.From)
			if n.Of == 1 && strings.HasSuffix(n.From, "s") && !strings.Contains(n.From, " ") {
				of = "1 " + strings.TrimSuffix(n.From, "s")
			}
		}
		if n.Name == numbers.Batch {
			of = n.From
		}
		t.AppendRow(table.Row{n.Name, Figure(*n.Value), n.Unit, interval(n), of, meaning})
	}
	terminal.RightAlign(t, 2, 2)
	render(out, t, markdown)
}

func render(out *strings.Builder, t table.Writer, markdown bool) {
	if markdown {
		out.WriteString(t.RenderMarkdown() + "\n")
		return
	}
	terminal.Render(out, t)
}

func (b *Benchmark) references(out *strings.Builder, markdown bool) {
	if len(b.References) == 0 {
		return
	}
	out.WriteString("\n")
	t := terminal.PlainTable("reference", "value", "expected", "between", "and", "result")
	for _, r := range b.References {
		result := string(r.Result)
		if !r.Certain {
			result += ", but the interval reaches over a bound"
		}
		t.AppendRow(table.Row{r.Name, pointer(r.Value), Figure(r.Ref), pointer(r.Lower), pointer(r.Upper), result})
	}
	terminal.RightAlign(t, 2, 5)
	render(out, t, markdown)
}

func pointer(v *float64) string {
	if v == nil {
		return "-"
	}
	return Figure(*v)
}

func (b *Benchmark) failures(out *strings.Builder) {
	for _, r := range b.Runs {
		if r.Stage != "" {
			fmt.Fprintf(out, "\nRun %d, attempt %d: %s in stage %s: %s\n", r.Repeat+1, r.Attempt, r.Result, r.Stage, r.Reason)
		}
	}
}

// unavailable are the numbers without a value, those with the same reason together.
func (b *Benchmark) unavailable() string {
	var order []string
	byReason := map[string][]string{}
	for _, n := range b.Numbers {
		if n.Value == nil {
			if byReason[n.Why] == nil {
				order = append(order, n.Why)
			}
			byReason[n.Why] = append(byReason[n.Why], n.Name)
		}
	}
	var parts []string
	for _, why := range order {
		parts = append(parts, strings.Join(byReason[why], ", ")+": "+why)
	}
	return strings.Join(parts, "; ")
}
