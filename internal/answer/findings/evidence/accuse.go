package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// Outermost are the spans of the steps that match and lie in none that does.
func (r *Recording) Outermost(match func(timeline.Span) bool) Accused {
	all := Accused{}
	for _, g := range r.Graphs {
		for i, s := range g.Spans {
			if match(s) && !Within(g, i, match) {
				all[g] = append(all[g], i)
			}
		}
	}
	return all
}

// Within says whether a span that matches lies around the span.
func Within(g *timeline.StepGraph, span int, match func(timeline.Span) bool) bool {
	for p := g.Parent(span); p >= 0; p = g.Parent(p) {
		if match(g.Spans[p]) {
			return true
		}
	}
	return false
}

// Keep leaves out spans.
func (a Accused) Keep(good func(g *timeline.StepGraph, span int) bool) Accused {
	kept := Accused{}
	for g, all := range a {
		for _, i := range all {
			if good(g, i) {
				kept[g] = append(kept[g], i)
			}
		}
	}
	return kept
}

// Percent is the spans' share of the steps.
func (r *Recording) Percent(a Accused) float64 {
	var sum, all float64
	for g, spans := range a {
		for _, i := range spans {
			sum += float64(g.Spans[i].End - g.Spans[i].Begin)
		}
	}
	for _, p := range r.Periods {
		all += p
	}
	return 100 * sum / max(all, 1)
}

// Longest is the name that the most of the spans' time has.
func (a Accused) Longest() string {
	times := map[string]int64{}
	for g, spans := range a {
		for _, i := range spans {
			times[g.Spans[i].Name] += g.Spans[i].End - g.Spans[i].Begin
		}
	}
	best := ""
	for name, ns := range times {
		if ns > times[best] || ns == times[best] && name < best {
			best = name
		}
	}
	return best
}

// Gone replaces the spans, and all inside them, by nothing.
func (a Accused) Gone(g *timeline.StepGraph, t graph.Times) {
	for _, i := range a[g] {
		for _, n := range g.Under(i) {
			t.Own[n], t.Free[n] = min(t.Own[n], 0), true
		}
	}
}

// Interval is a stretch of the training thread, in the recording's time.
type Interval struct{ From, To int64 }

// IntervalsGone replaces stretches of the training thread by nothing.
func (r *Recording) IntervalsGone(intervals []Interval) func(*timeline.StepGraph, graph.Times) {
	slices.SortFunc(intervals, func(a, b Interval) int { return cmp.Compare(a.From, b.From) })
	// What overlaps is taken away once.
	var merged []Interval
	for _, v := range intervals {
		if n := len(merged); n > 0 && v.From <= merged[n-1].To {
			merged[n-1].To = max(merged[n-1].To, v.To)
		} else {
			merged = append(merged, v)
		}
	}
	return func(g *timeline.StepGraph, t graph.Times) {
		for n, s := range g.Segments {
			if s.Device || s.TID != r.Thread.TID {
				continue
			}
			from, to := s.From+g.Step.Begin, s.To+g.Step.Begin
			for _, v := range merged {
				if overlap := min(v.To, to) - max(v.From, from); overlap > 0 {
					t.Own[n] = max(t.Own[n]-float64(overlap), 0)
				}
			}
		}
	}
}

// InSteps is how long the intervals are inside steps, in percent of the steps.
func (r *Recording) InSteps(intervals []Interval) float64 {
	var sum, all float64
	for i, g := range r.Graphs {
		for _, v := range intervals {
			sum += float64(max(min(v.To, g.Step.Until())-max(v.From, g.Step.Begin), 0))
		}
		all += r.Periods[i]
	}
	return 100 * sum / max(all, 1)
}

// Loads says whether a span is the loop asking its data loader for the next batch.
func Loads(s timeline.Span) bool {
	return s.Layer == "scope" && strings.HasPrefix(s.Name, "enumerate(DataLoader)#")
}

func optimizes(s timeline.Span) bool {
	return s.Layer == "scope" && strings.HasPrefix(s.Name, "Optimizer.")
}

// OfTheLoop: neither the loader's own nor the optimizer's, by the scope around it or, as
// PyTorch 1.13 has none, by the code that it is called from.
func (r *Recording) OfTheLoop(g *timeline.StepGraph, span int) bool {
	if by := r.stacks[g.Spans[span].Stack]; by != nil && (by.optimizer || by.loader) {
		return false
	}
	return !Within(g, span, func(s timeline.Span) bool { return Loads(s) || optimizes(s) })
}

// Where is the condition of evidence: the process while its steps ran.
func (r *Recording) Where() string {
	return fmt.Sprintf("pid = %d AND ts_ns BETWEEN %d AND %d", r.Thread.PID, r.Graphs[0].Step.Begin,
		r.Graphs[len(r.Graphs)-1].Step.Until())
}

// SpansThat is evidence that adds up spans by name.
func (r *Recording) SpansThat(condition string) Evidence {
	where := r.Where() + " AND " + condition
	return Evidence{Table: "span", Where: where,
		SQL: "SELECT name, count(*) AS calls, sum(duration_ns) / 1e6 AS total_ms,\n  avg(duration_ns) / 1e3 AS mean_us\n" +
			"FROM span WHERE " + where + "\nGROUP BY name ORDER BY total_ms DESC LIMIT 20"}
}

// SamplesThat is evidence that adds up samples by the Python frames that they show.
func (r *Recording) SamplesThat(condition string) Evidence {
	where := fmt.Sprintf("s.pid = %d AND s.ts_ns BETWEEN %d AND %d AND %s", r.Thread.PID, r.Graphs[0].Step.Begin,
		r.Graphs[len(r.Graphs)-1].Step.Until(), condition)
	return Evidence{Table: "sample", Where: where,
		SQL: "SELECT f.file, f.line, f.\"function\", sum(weight_ns) / 1e6 AS total_ms, count(*) AS samples\n" +
			"FROM (SELECT unnest(list_filter(st.frames, x -> x.kind = 'python')[1:3]) AS f, s.*\n" +
			"      FROM sample s JOIN stack st USING (session_id, stack_id)\n" +
			"      WHERE " + where + ")\n" +
			"GROUP BY ALL ORDER BY total_ms DESC LIMIT 20"}
}

// Quoted are names as a list in SQL.
func Quoted(names []string) string {
	var all []string
	for _, n := range names {
		all = append(all, literal(n))
	}
	return strings.Join(all, ", ")
}

// literal is a text in SQL. People see evidence on terminals: characters that these obey
// are made by chr.
func literal(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		switch one := string(r); {
		case r == '\'':
			b.WriteString("''")
		case printable.Text(one) != one:
			fmt.Fprintf(&b, "' || chr(%d) || '", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// Named matches spans by their names.
func Named(names ...string) func(timeline.Span) bool {
	return func(s timeline.Span) bool { return slices.Contains(names, s.Name) }
}

// Duration is how long a span of a step took, in ns.
func Duration(g *timeline.StepGraph, span int) int64 { return g.Spans[span].End - g.Spans[span].Begin }
