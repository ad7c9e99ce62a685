package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/graph"
	"github.com/ebpfprof/ebpfprof/internal/printable"
	"github.com/ebpfprof/ebpfprof/internal/timeline"
)

// outermost are the spans of the steps that match and lie in none that does.
func (r *recording) outermost(match func(timeline.Span) bool) accused {
	all := accused{}
	for _, g := range r.graphs {
		for i, s := range g.Spans {
			if match(s) && !within(g, i, match) {
				all[g] = append(all[g], i)
			}
		}
	}
	return all
}

// within says whether a span that matches lies around the span.
func within(g *timeline.StepGraph, span int, match func(timeline.Span) bool) bool {
	for p := g.Parent(span); p >= 0; p = g.Parent(p) {
		if match(g.Spans[p]) {
			return true
		}
	}
	return false
}

// keep leaves out spans.
func (a accused) keep(good func(g *timeline.StepGraph, span int) bool) accused {
	kept := accused{}
	for g, all := range a {
		for _, i := range all {
			if good(g, i) {
				kept[g] = append(kept[g], i)
			}
		}
	}
	return kept
}

// percent is the spans' share of the steps.
func (r *recording) percent(a accused) float64 {
	var sum, all float64
	for g, spans := range a {
		for _, i := range spans {
			sum += float64(g.Spans[i].End - g.Spans[i].Begin)
		}
	}
	for _, p := range r.periods {
		all += p
	}
	return 100 * sum / max(all, 1)
}

// longest is the name that the most of the spans' time has.
func (a accused) longest() string {
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

// gone replaces the spans, and all inside them, by nothing.
func (a accused) gone(g *timeline.StepGraph, t graph.Times) {
	for _, i := range a[g] {
		for _, n := range g.Under(i) {
			t.Own[n], t.Free[n] = min(t.Own[n], 0), true
		}
	}
}

// interval is a stretch of the training thread, in the recording's time.
type interval struct{ from, to int64 }

// intervalsGone replaces stretches of the training thread by nothing.
func (r *recording) intervalsGone(intervals []interval) func(*timeline.StepGraph, graph.Times) {
	slices.SortFunc(intervals, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	// What overlaps is taken away once.
	var merged []interval
	for _, v := range intervals {
		if n := len(merged); n > 0 && v.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, v.to)
		} else {
			merged = append(merged, v)
		}
	}
	return func(g *timeline.StepGraph, t graph.Times) {
		for n, s := range g.Segments {
			if s.Device || s.TID != r.thread.TID {
				continue
			}
			from, to := s.From+g.Step.Begin, s.To+g.Step.Begin
			for _, v := range merged {
				if overlap := min(v.to, to) - max(v.from, from); overlap > 0 {
					t.Own[n] = max(t.Own[n]-float64(overlap), 0)
				}
			}
		}
	}
}

// inSteps is how long the intervals are inside steps, in percent of the steps.
func (r *recording) inSteps(intervals []interval) float64 {
	var sum, all float64
	for i, g := range r.graphs {
		for _, v := range intervals {
			sum += float64(max(min(v.to, g.Step.Until())-max(v.from, g.Step.Begin), 0))
		}
		all += r.periods[i]
	}
	return 100 * sum / max(all, 1)
}

func loads(s timeline.Span) bool {
	return s.Layer == "scope" && strings.HasPrefix(s.Name, "enumerate(DataLoader)#")
}

func optimizes(s timeline.Span) bool {
	return s.Layer == "scope" && strings.HasPrefix(s.Name, "Optimizer.")
}

// ofTheLoop: neither the loader's own nor the optimizer's, by the scope around it or, as
// PyTorch 1.13 has none, by the code that it is called from.
func (r *recording) ofTheLoop(g *timeline.StepGraph, span int) bool {
	if by := r.stacks[g.Spans[span].Stack]; by != nil && (by.optimizer || by.loader) {
		return false
	}
	return !within(g, span, func(s timeline.Span) bool { return loads(s) || optimizes(s) })
}

// where is the condition of evidence: the process while its steps ran.
func (r *recording) where() string {
	return fmt.Sprintf("pid = %d AND ts_ns BETWEEN %d AND %d", r.thread.PID, r.graphs[0].Step.Begin,
		r.graphs[len(r.graphs)-1].Step.Until())
}

// spansSQL is evidence that adds up spans by name.
func (r *recording) spansSQL(condition string) string {
	return fmt.Sprintf("SELECT name, count(*) AS calls, sum(duration_ns) / 1e6 AS total_ms,\n  avg(duration_ns) / 1e3 AS mean_us\n"+
		"FROM span WHERE %s AND %s\nGROUP BY name ORDER BY total_ms DESC LIMIT 20", r.where(), condition)
}

// samplesSQL is evidence that adds up samples by the Python frames that they show.
func (r *recording) samplesSQL(condition string) string {
	return fmt.Sprintf("SELECT f.file, f.line, f.\"function\", sum(weight_ns) / 1e6 AS total_ms, count(*) AS samples\n"+
		"FROM (SELECT unnest(list_filter(st.frames, x -> x.kind = 'python')[1:3]) AS f, s.*\n"+
		"      FROM sample s JOIN stack st USING (session_id, stack_id)\n"+
		"      WHERE s.pid = %d AND s.ts_ns BETWEEN %d AND %d AND %s)\n"+
		"GROUP BY ALL ORDER BY total_ms DESC LIMIT 20", r.thread.PID, r.graphs[0].Step.Begin,
		r.graphs[len(r.graphs)-1].Step.Until(), condition)
}

func quoted(names []string) string {
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

// named matches spans by their names.
func named(names ...string) func(timeline.Span) bool {
	return func(s timeline.Span) bool { return slices.Contains(names, s.Name) }
}
