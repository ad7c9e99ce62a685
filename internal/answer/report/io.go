package report

import (
	"database/sql"
	"fmt"
)

// IO is what the processes read or wrote of one kind, by system calls.
type IO struct {
	Operation  string   `json:"operation"` // "" where a thread had too many kinds to tell apart
	Kind       string   `json:"kind"`
	FileSystem *string  `json:"file_system"`
	Mount      *string  `json:"mount"`
	Calls      int64    `json:"calls"`
	Bytes      int64    `json:"bytes"`
	MS         float64  `json:"ms"`
	WaitedMS   *float64 `json:"waited_ms"` // of MS off the CPU; null where waits were not recorded
	Threads    int64    `json:"threads"`
}

// transfers adds up what was read and written, what took the longest first.
func (b *builder) transfers() error {
	where := "true"
	if b.part.From > 0 {
		where += fmt.Sprintf(" AND ts_ns >= %d", b.part.From)
	}
	if b.part.Until > 0 {
		where += fmt.Sprintf(" AND ts_ns < %d", b.part.Until)
	}
	if b.options.Rank != nil {
		where += fmt.Sprintf(" AND (session_id, pid) IN (SELECT (session_id, pid) FROM process WHERE rank = %d)", *b.options.Rank)
	}
	b.report.IO = []IO{}
	return b.each(`SELECT coalesce(operation, ''), coalesce(kind, ''), file_system, mount, sum(calls)::BIGINT, coalesce(sum(bytes), 0)::BIGINT,
		coalesce(sum(duration_ns), sum(waited_ns), 0) / 1e6,
		sum(waited_ns) / 1e6, count(DISTINCT (session_id, pid, tid)) FROM io
		WHERE `+where+` GROUP BY ALL ORDER BY 7 DESC, 1, 2, 3, 4`, func(scan scan) error {
		var row IO
		var system, mount sql.NullString
		var waited sql.NullFloat64
		if err := scan(&row.Operation, &row.Kind, &system, &mount, &row.Calls, &row.Bytes, &row.MS, &waited, &row.Threads); err != nil {
			return err
		}
		if system.Valid {
			row.FileSystem = &system.String
		}
		if mount.Valid {
			row.Mount = &mount.String
		}
		if waited.Valid {
			row.WaitedMS = &waited.Float64
		}
		b.report.IO = append(b.report.IO, row)
		return nil
	})
}

func (r *Report) ioSection() section {
	t := &table{
		header: []string{"IO", "file system", "mount", "calls", "bytes", "ms", "ms waiting", "threads"},
		left:   []bool{true, true, true, false, false, false, false, false},
		of:     "of ms",
	}
	all := 0.0
	for _, x := range r.IO {
		all += x.MS
	}
	for _, x := range r.IO {
		waited := ""
		if x.WaitedMS != nil {
			waited = number(*x.WaitedMS)
		}
		what := x.Operation + " " + x.Kind
		if x.Operation == "" {
			what = "of further kinds"
		}
		t.rows = append(t.rows, []string{
			what, textOf(x.FileSystem), textOf(x.Mount), fmt.Sprint(x.Calls), bytesText(float64(x.Bytes)), number(x.MS), waited,
			fmt.Sprint(x.Threads),
		})
		t.share = append(t.share, x.MS/max(all, 1e-9))
	}
	s := section{title: "Reads and writes (of all threads)", table: t}
	return s
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
