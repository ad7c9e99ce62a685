package export

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/ebpfprof/ebpfprof/symbolize"
)

// stack is a path, root first, with the time that was spent at its end.
type stack struct {
	frames []frame
	full   []symbolize.Frame // leaf first, with all that is known
	ns     int64
	count  int64
}

type frame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int64  `json:"line,omitempty"`
}

// What is added up, by GroupBy: samples on and off the CPU, work on devices below
// the line and operator that launched it, operators' own time below the line.
var groups = map[string]struct{ title, sql string }{
	"cpu":  {"time on the CPU", `SELECT x.stack_id, '', '', sum(weight_ns)::BIGINT, count(*) FROM sample x WHERE state = 'on_cpu' GROUP BY ALL`},
	"wait": {"time off the CPU", `SELECT x.stack_id, '', '', sum(weight_ns)::BIGINT, count(*) FROM sample x WHERE state = 'off_cpu' GROUP BY ALL`},
	"device": {"time on the device", `
		SELECT coalesce(l.stack_id, l.python_stack_id, p.stack_id), coalesce(CASE WHEN l.layer = 'op' THEN l.name WHEN p.layer = 'op' THEN p.name END, ''), d.name, sum(d.duration_ns)::BIGINT, count(*)
		FROM export_span d LEFT JOIN export_span l ON l.session_id = d.session_id AND l.span_id = d.launch_id
		LEFT JOIN export_span p ON p.session_id = l.session_id AND p.span_id = l.parent_id
		WHERE d.layer = 'device' AND d.category IN ('kernel', 'collective', 'copy', 'set') AND d.duration_ns > 0 AND d.duration_ns < 604800000000000 GROUP BY ALL`},
	"operator": {"operators' own time on the host", `
		WITH inside AS (SELECT session_id, parent_id AS span_id, sum(duration_ns) AS ns FROM export_span WHERE layer <> 'device' GROUP BY ALL)
		SELECT coalesce(o.stack_id, o.python_stack_id), '', o.name, sum(greatest(o.duration_ns - coalesce(i.ns, 0), 0) * o.weight)::BIGINT, sum(o.weight)::BIGINT
		FROM export_span o LEFT JOIN inside i USING (session_id, span_id) WHERE o.layer = 'op' AND o.duration_ns < 604800000000000 GROUP BY ALL`},
}

// Groups are the names that GroupBy takes for pprof, speedscope and folded.
func Groups() []string { return []string{"cpu", "wait", "device", "operator"} }

// profile adds up and writes one of the forms that hold stacks.
func (s *stream) profile(w io.Writer, format string) error {
	by := s.options.GroupBy
	if by == "" {
		var samples, device int64
		if err := s.db.Row(s.ctx, "SELECT (SELECT count(*) FROM sample), count(*) FILTER (layer = 'device') FROM export_span", nil, &samples, &device); err != nil {
			return err
		}
		switch {
		case device > 0:
			by = "device"
		case samples > 0:
			by = "cpu"
		default:
			by = "operator"
		}
	}
	group, ok := groups[by]
	if !ok {
		return fmt.Errorf("cannot group by %q: one of %s", by, strings.Join(Groups(), ", "))
	}
	all, err := s.stacks(group.sql)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("the dataset has no %s to add up", group.title)
	}
	s.result.Slices = int64(len(all))
	s.result.LeftOut = append(s.result.LeftOut, fmt.Sprintf("added up: %s of %d rows, %d different stacks", group.title, rowsOf(all), len(all)))
	switch format {
	case "pprof":
		return writePprof(w, all, by)
	case "otlp":
		return s.otlp(w, all, by)
	case "speedscope":
		return s.speedscope(w, all, group.title)
	}
	return s.folded(w, all)
}

func rowsOf(all []stack) (n int64) {
	for _, x := range all {
		n += x.count
	}
	return n
}

// stacks reads what a group adds up, the most time first. The name and the
// operator stand below the call stack.
func (s *stream) stacks(sql string) (all []stack, err error) {
	rows, err := s.db.Query(s.ctx, `WITH x(stack_id, operator, name, ns, n) AS (`+sql+`),
		named AS (SELECT stack_id, any_value(frames) AS frames FROM stack GROUP BY stack_id)
		SELECT operator, name, ns, n, coalesce(list_transform(frames, f -> f."function"), []), coalesce(list_transform(frames, f -> f.file), []),
			coalesce(list_transform(frames, f -> f.line), []), coalesce(list_transform(frames, f -> f.kind), []), coalesce(list_transform(frames, f -> f.module), []),
			coalesce(list_transform(frames, f -> f.build_id), []), coalesce(list_transform(frames, f -> f."offset"), []) FROM x LEFT JOIN named USING (stack_id) WHERE ns > 0 ORDER BY ns DESC, name, operator, stack_id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var x stack
		var operator, name string
		var functions, files, lines, kinds, modules, builds, offsets any
		if err := rows.Scan(&operator, &name, &x.ns, &x.count, &functions, &files, &lines, &kinds, &modules, &builds, &offsets); err != nil {
			return nil, err
		}
		f, _ := functions.([]any)
		g, _ := files.([]any)
		l, _ := lines.([]any)
		for i := len(f) - 1; i >= 0; i-- {
			x.frames = append(x.frames, frameOf(f[i], g[i], l[i]))
		}
		x.full = fullFrames(x.frames, kinds, modules, builds, offsets)
		for _, below := range []string{operator, name} {
			if below != "" {
				x.frames = append(x.frames, frame{Name: below})
				x.full = slices.Insert(x.full, 0, symbolize.Frame{Kind: symbolize.Op, Function: below, Offset: -1})
			}
		}
		if len(x.frames) == 0 {
			x.frames = []frame{{Name: "[no stack]"}}
		}
		all = append(all, x)
	}
	return all, rows.Err()
}

func frameOf(function, file, line any) frame {
	f := frame{Name: "[unknown]"}
	if name, ok := function.(string); ok && name != "" {
		f.Name = name
	}
	f.File, _ = file.(string)
	if n, ok := line.(int32); ok {
		f.Line = int64(n)
	}
	return f
}

func (s *stream) folded(w io.Writer, all []stack) error {
	out := bufio.NewWriter(w)
	for _, x := range all {
		for i, f := range x.frames {
			if i > 0 {
				out.WriteByte(';')
			}
			out.WriteString(strings.NewReplacer(";", ":", "\n", " ", "\r", " ").Replace(f.Name))
		}
		fmt.Fprintf(out, " %d\n", x.ns)
	}
	return out.Flush()
}

// speedscope's own loader keeps the whole file and a tree of it in memory, and
// fails above a few hundred megabytes: the largest stacks come first, and the
// rest is one frame that says so.
const speedscopeBytes = 256 << 20

func (s *stream) speedscope(w io.Writer, all []stack, title string) error {
	limit := s.options.MaxBytes
	if limit <= 0 {
		limit = speedscopeBytes
	}
	frames := []frame{}
	numbers := map[frame]int{}
	number := func(f frame) int {
		id, ok := numbers[f]
		if !ok {
			id = len(frames)
			numbers[f] = id
			frames = append(frames, f)
			limit -= int64(len(f.Name) + len(f.File) + 40)
		}
		return id
	}
	samples, weights := [][]int{}, []int64{}
	var total, rest, cut int64
	for _, x := range all {
		total += x.ns
		if limit < 0 {
			rest += x.ns
			cut++
			continue
		}
		path := make([]int, len(x.frames))
		for i, f := range x.frames {
			path[i] = number(f)
		}
		limit -= int64(8*len(path) + 16)
		samples, weights = append(samples, path), append(weights, x.ns)
	}
	if cut > 0 {
		samples = append(samples, []int{number(frame{Name: fmt.Sprintf("[%d smaller stacks, which did not fit]", cut)})})
		weights = append(weights, rest)
		s.result.leave(cut, "smaller stacks did not fit: they are one frame together")
	}
	return json.NewEncoder(w).Encode(map[string]any{
		"$schema":  "https://www.speedscope.app/file-format-schema.json",
		"exporter": "ebpfprof",
		"name":     title,
		"shared":   map[string]any{"frames": frames},
		"profiles": []any{map[string]any{
			"type": "sampled", "name": title, "unit": "nanoseconds", "startValue": 0, "endValue": total, "samples": samples, "weights": weights,
		}},
	})
}

func writePprof(w io.Writer, all []stack, kind string) error {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: kind, Unit: "nanoseconds"}}, DefaultSampleType: kind,
		PeriodType: &profile.ValueType{Type: kind, Unit: "nanoseconds"},
	}
	functions, locations := map[[2]string]*profile.Function{}, map[frame]*profile.Location{}
	for _, x := range all {
		sample := &profile.Sample{Value: []int64{x.count, x.ns}}
		for _, f := range slices.Backward(x.frames) {
			l := locations[f]
			if l == nil {
				key := [2]string{f.Name, f.File}
				if functions[key] == nil {
					functions[key] = &profile.Function{ID: uint64(len(functions) + 1), Name: f.Name, SystemName: f.Name, Filename: f.File}
					p.Function = append(p.Function, functions[key])
				}
				l = &profile.Location{ID: uint64(len(locations) + 1), Line: []profile.Line{{Function: functions[key], Line: f.Line}}}
				locations[f] = l
				p.Location = append(p.Location, l)
			}
			sample.Location = append(sample.Location, l)
		}
		p.Sample = append(p.Sample, sample)
	}
	slices.SortFunc(p.Location, func(a, b *profile.Location) int { return cmp.Compare(a.ID, b.ID) })
	if err := p.CheckValid(); err != nil {
		return fmt.Errorf("making a pprof profile: %w", err)
	}
	return p.Write(w)
}
