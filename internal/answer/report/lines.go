package report

import (
	"database/sql"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/model/usercode"
)

// places finds, for each stack, the innermost frame of the user's code; where
// there is none, the innermost Python frame that has a line.
var places = `
	CREATE OR REPLACE TEMP TABLE stack_place AS
	WITH f AS (
		SELECT session_id, stack_id, i, frames[i].file AS file, frames[i].line AS line, frames[i]."function" AS function, frames[i].kind AS kind
		FROM stack, unnest(range(1, len(frames) + 1)) AS u(i)),
	ranked AS (
		SELECT session_id, stack_id, file, line, function, row_number() OVER (PARTITION BY session_id, stack_id
		ORDER BY NOT ` + usercode.SQL("f.file") + `, i) AS n
		FROM f WHERE kind = 'python' AND line IS NOT NULL)
	SELECT session_id, stack_id, file, line, function FROM ranked WHERE n = 1`

func (b *builder) lines() error {
	var stacks int64
	if err := b.db.Row(b.ctx, "SELECT count(*) FROM stack", nil, &stacks); err != nil {
		return err
	}
	if stacks == 0 {
		b.untold("lines: there are no call stacks%s", b.atLevel("record at --level window, or profile with with_stack=True"))
		return nil
	}
	if err := b.db.Exec(b.ctx, places); err != nil {
		return err
	}
	return b.each(fmt.Sprintf(`
		WITH sampled AS (
			SELECT p.file, p.line, p.function, sum(weight_ns) FILTER (state = 'on_cpu') AS cpu, sum(weight_ns) FILTER (state = 'off_cpu') AS off
			FROM sample s JOIN stack_place p USING (session_id, stack_id) GROUP BY ALL),
		hosted AS (SELECT p.file, p.line, p.function, sum(ns) AS host FROM hosted_stack JOIN stack_place p USING (session_id, stack_id)
		GROUP BY ALL),
		computed AS (
			SELECT p.file, p.line, p.function, sum(`+launchedNS+`) AS device FROM rows d JOIN launch_owner o USING (session_id, launch_id)
			JOIN stack_place p ON p.session_id = o.session_id AND p.stack_id = o.stack_id
			WHERE d.layer = 'device' AND d.category IN ('kernel', 'collective', 'copy', 'set') GROUP BY ALL)
		SELECT coalesce(file, ''), line, coalesce(function, ''), cpu::DOUBLE, off::DOUBLE, host::DOUBLE, device::DOUBLE
		FROM sampled FULL JOIN hosted USING (file, line, function) FULL JOIN computed USING (file, line, function)
		ORDER BY %s DESC NULLS LAST, 1, 2, 3 LIMIT 10000`, map[bool]string{true: "device", false: "coalesce(cpu, host)"}[b.devicesLead()]),
		func(scan scan) error {
			var l Line
			var cpu, off, host, device sql.NullFloat64
			if err := scan(&l.File, &l.Line, &l.Function, &cpu, &off, &host, &device); err != nil {
				return err
			}
			l.CPUMS, l.WaitMS, l.HostMS, l.DeviceMS = msOf(cpu), msOf(off), msOf(host), msOf(device)
			b.report.Lines = append(b.report.Lines, l)
			return nil
		})
}

func (b *builder) threads() error {
	if b.samples == 0 {
		b.untold("time on and off the CPU: no thread was sampled (imported, or recorded with --frequency 0)")
		return nil
	}
	return b.each(`
		SELECT s.pid, s.tid, coalesce(any_value(t.name), ''), coalesce(sum(weight_ns) FILTER (state = 'on_cpu'), 0)::DOUBLE / 1e6,
			coalesce(sum(weight_ns) FILTER (state = 'off_cpu'), 0)::DOUBLE / 1e6
		FROM sample s LEFT JOIN thread t ON t.session_id = s.session_id AND t.pid = s.pid AND t.tid = s.tid
		GROUP BY s.session_id, s.pid, s.tid ORDER BY 4 DESC, 5 DESC, 1, 2`, func(scan scan) error {
		var t Thread
		err := scan(&t.PID, &t.TID, &t.Name, &t.CPUMS, &t.OffMS)
		b.report.Threads = append(b.report.Threads, t)
		return err
	})
}

func (r *Report) lineSection() section {
	t := &table{header: []string{"line", "function"}, left: []bool{true, true}}
	columns := []struct {
		name string
		of   func(Line) *float64
	}{
		{"device ms", func(l Line) *float64 { return l.DeviceMS }}, {"CPU ms", func(l Line) *float64 { return l.CPUMS }},
		{"wait ms", func(l Line) *float64 { return l.WaitMS }}, {"operators ms", func(l Line) *float64 { return l.HostMS }},
	}
	if r.Profiled != nil { // of a part of the time: the last column, and not the order
		columns = append(columns[1:], columns[0])
		columns[len(columns)-1].name = "device ms, profiled"
	}
	var used []func(Line) *float64
	for _, c := range columns {
		for _, l := range r.Lines {
			if c.of(l) != nil {
				t.header, t.left, used = append(t.header, c.name), append(t.left, false), append(used, c.of)
				break
			}
		}
	}
	// The first column that there is decides: the lines are in its order.
	all := 0.0
	for _, l := range r.Lines {
		if len(used) > 0 {
			all += orZero(used[0](l))
		}
	}
	if all > 0 {
		t.of = "of " + t.header[2]
	}
	for _, l := range r.Lines {
		row := []string{fmt.Sprintf("%s:%d", l.File, l.Line), l.Function}
		for _, of := range used {
			row = append(row, optional(of(l)))
		}
		t.rows = append(t.rows, row)
		if all > 0 {
			t.share = append(t.share, orZero(used[0](l))/all)
		}
	}
	return section{title: "Lines of all threads (innermost frame of your code)", table: t}
}
