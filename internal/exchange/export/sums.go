package export

import (
	"cmp"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/model/profile"
	"github.com/ebpfprof/ebpfprof/internal/model/stacks"
	"github.com/ebpfprof/ebpfprof/symbolize"
)

// group is what is added up. A group without SQL adds up samples.
type group struct {
	name, title string
	pprof       string // the name of its time in pprof
	otlp        string // and in OTLP
	offCPU      bool
	// sql selects the id of a stack, the operator and the name below it (or ''), the
	// nanoseconds and the number of rows.
	sql string
}

var groups = []group{
	{name: "cpu", title: "time on the CPU", pprof: PprofCPU, otlp: "cpu"},
	{name: "wait", title: "time off the CPU", pprof: PprofDelay, otlp: "off_cpu", offCPU: true},
	{name: "device", title: "time on the device", pprof: "device", otlp: "device", sql: `
		SELECT coalesce(l.stack_id, l.python_stack_id, p.stack_id),
			coalesce(CASE WHEN l.layer = 'op' THEN l.name WHEN p.layer = 'op' THEN p.name END, ''), d.name, sum(d.duration_ns)::BIGINT, count(*)
		FROM export_span d LEFT JOIN export_span l ON l.session_id = d.session_id AND l.span_id = d.launch_id
		LEFT JOIN export_span p ON p.session_id = l.session_id AND p.span_id = l.parent_id
		WHERE d.layer = 'device' AND d.category IN ('kernel', 'collective', 'copy', 'set')
			AND d.duration_ns > 0 AND d.duration_ns < 604800000000000 GROUP BY ALL`},
	{name: "operator", title: "operators' own time on the host", pprof: "operator", otlp: "operator", sql: `
		WITH inside AS (SELECT session_id, parent_id AS span_id, sum(duration_ns) AS ns FROM export_span
			WHERE layer <> 'device' GROUP BY ALL)
		SELECT coalesce(o.stack_id, o.python_stack_id), '', o.name,
			sum(greatest(o.duration_ns - coalesce(i.ns, 0), 0) * o.weight)::BIGINT, sum(o.weight)::BIGINT
		FROM export_span o LEFT JOIN inside i USING (session_id, span_id) WHERE o.layer = 'op' AND o.duration_ns < 604800000000000 GROUP BY ALL`},
}

// Groups are the names that GroupBy takes for the formats of kind Sums.
func Groups() []string {
	names := make([]string, len(groups))
	for i, g := range groups {
		names[i] = g.name
	}
	return names
}

// sums are the call stacks of a dataset, those with the most time first.
type sums struct {
	group   group
	profile profile.Profile
}

// addUp sets sums.
func (s *stream) addUp() error {
	by, err := s.groupBy()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(groups, func(g group) bool { return g.name == by })
	if i < 0 {
		return fmt.Errorf("cannot group by %q: choose one of %s", by, strings.Join(Groups(), ", "))
	}
	g := groups[i]
	var p profile.Profile
	if g.sql == "" {
		p, err = stacks.Load(s.ctx, s.db, stacks.Filter{OffCPU: g.offCPU})
	} else {
		p, err = s.spanStacks(g.sql)
	}
	if err != nil && !errors.Is(err, stacks.ErrNoSamples) {
		return err
	}
	p = slices.DeleteFunc(p, func(x profile.Stack) bool { return x.WeightNS <= 0 })
	if len(p) == 0 {
		return fmt.Errorf("the dataset has no %s to add up", g.title)
	}
	slices.SortStableFunc(p, func(a, b profile.Stack) int { return cmp.Compare(b.WeightNS, a.WeightNS) })
	s.sums = &sums{g, p}
	s.result.Slices = int64(len(p))
	s.result.LeftOut = append(s.result.LeftOut, fmt.Sprintf("added up: %s of %d rows, %d different stacks", g.title, p.Samples(), len(p)))
	return nil
}

// groupBy is the group to add up: by default the device's time, then the CPU's.
func (s *stream) groupBy() (string, error) {
	if s.options.GroupBy != "" {
		return s.options.GroupBy, nil
	}
	var samples, device int64
	err := s.db.Row(s.ctx, "SELECT (SELECT count(*) FROM sample), count(*) FILTER (layer = 'device') FROM export_span", nil, &samples, &device)
	switch {
	case err != nil:
		return "", err
	case device > 0:
		return "device", nil
	case samples > 0:
		return "cpu", nil
	}
	return "operator", nil
}

// spanStacks adds up spans. The operator and the name are the leaves of the stack that
// their spans were launched from.
func (s *stream) spanStacks(sql string) (p profile.Profile, err error) {
	err = s.db.Exec(s.ctx, `CREATE OR REPLACE TEMP TABLE export_sum AS
		SELECT * FROM (`+sql+`) AS x(stack_id, operator, name, ns, n) WHERE ns > 0`)
	if err != nil {
		return nil, err
	}
	known, err := stacks.Read(s.ctx, s.db, "SELECT stack_id FROM export_sum")
	if err != nil {
		return nil, err
	}
	rows := "SELECT stack_id, operator, name, ns, n FROM export_sum ORDER BY ns DESC, name, operator, stack_id"
	err = s.db.Each(s.ctx, rows, func(row []driver.Value) error {
		var x profile.Stack
		for _, leaf := range []any{row[2], row[1]} {
			if name, _ := leaf.(string); name != "" {
				x.Frames = append(x.Frames, known.Frames.Of(symbolize.Frame{Kind: symbolize.Op, Function: name, Offset: -1}))
			}
		}
		if id, ok := row[0].(int64); ok {
			frames, cut := known.Of(id)
			x.Frames, x.Cut = append(x.Frames, frames...), cut
		}
		if len(x.Frames) == 0 {
			x.Cut = stacks.CutNone
		}
		x.WeightNS, _ = row[3].(int64)
		x.Samples, _ = row[4].(int64)
		p = append(p, x)
		return nil
	})
	return p, err
}
