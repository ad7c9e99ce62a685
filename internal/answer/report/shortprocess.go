package report

import (
	"database/sql"
	"fmt"
)

// ShortProcess are the children of one command that ended before they were looked at.
type ShortProcess struct {
	Command  string  `json:"command"`
	Executed bool    `json:"executed"` // else they are copies of their parent, whose thread's name the command is
	Count    int64   `json:"count"`
	Failed   int64   `json:"failed"`
	MS       float64 `json:"ms"` // that they lived, of all together
	CPUMS    float64 `json:"cpu_ms"`
}

// mostShort commands have a row.
const mostShort = 10

// shortProcesses adds them up, what lived the longest first.
func (b *builder) shortProcesses() error {
	where := "true"
	if b.part.From > 0 {
		where += fmt.Sprintf(" AND end_ns > %d", b.part.From)
	}
	if b.part.Until > 0 {
		where += fmt.Sprintf(" AND ts_ns < %d", b.part.Until)
	}
	if b.options.Rank != nil {
		where += fmt.Sprintf(" AND (session_id, parent_pid) IN (SELECT (session_id, pid) FROM process WHERE rank = %d)", *b.options.Rank)
	}
	b.report.ShortProcesses = []ShortProcess{}
	return b.each(`SELECT command, executed, sum(count)::BIGINT, sum(failed)::BIGINT, sum(wall_ns) / 1e6, sum(cpu_ns) / 1e6
		FROM short_process WHERE `+where+` GROUP BY ALL ORDER BY 5 DESC, 1, 2`, func(scan scan) error {
		var row ShortProcess
		var executed sql.NullBool
		if err := scan(&row.Command, &executed, &row.Count, &row.Failed, &row.MS, &row.CPUMS); err != nil {
			return err
		}
		row.Executed = executed.Bool
		b.report.ShortProcesses = append(b.report.ShortProcesses, row)
		return nil
	})
}

func (r *Report) shortSection() section {
	t := &table{
		header: []string{"command", "processes", "failed", "s", "s on a CPU", "ms each"},
		left:   []bool{true, false, false, false, false, false},
		of:     "of s",
	}
	var count int64
	all := 0.0
	for _, p := range r.ShortProcesses {
		count, all = count+p.Count, all+p.MS
	}
	for i, p := range r.ShortProcesses {
		if i == mostShort {
			break
		}
		command := p.Command
		if !p.Executed {
			command = "copies of " + command
		}
		t.rows = append(t.rows, []string{
			command, fmt.Sprint(p.Count), fmt.Sprint(p.Failed), fmt.Sprintf("%.1f", p.MS/1e3), fmt.Sprintf("%.1f", p.CPUMS/1e3),
			number(p.MS / float64(max(p.Count, 1))),
		})
		t.share = append(t.share, p.MS/max(all, 1e-9))
	}
	s := section{title: "Short processes (that ended before they were looked at)", table: t}
	if len(r.ShortProcesses) > 0 {
		s.notes = []string{fmt.Sprintf("%d short processes of %d commands, %.0f s", count, len(r.ShortProcesses), all/1e3)}
	}
	return s
}
