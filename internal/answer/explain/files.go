package explain

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// ioCalls are system calls on files.
var ioCalls = []string{"fsync", "fdatasync", "sync", "syncfs", "msync", "write", "pwrite64", "writev", "read", "pread64", "readv", "openat",
	"open", "rename", "renameat2",
	"unlink", "unlinkat", "newfstatat", "stat", "ftruncate", "fallocate", "sendfile", "copy_file_range", "getdents64"}

// inputOutput: the thread reads, writes or syncs files, on the CPU or waiting, and writes checkpoints.
func inputOutput(r *Recording) ([]Explanation, error) {
	onPipe := signPipe | signSelect | signHTTP | signSubprocess | signLoaderNext | signPool
	is := func(row *Row) bool {
		if row.Stack.Has(signSave) {
			return true
		}
		if row.Cause == "fault" {
			return !row.OnCPU
		}
		return slices.Contains(ioCalls, row.Syscall) && !row.Stack.Has(onPipe) && !row.Stack.below(signDatabase)
	}
	claims := r.rows(is)
	if r.share(claims) < leastShare/2 {
		return nil, nil
	}
	calls := heaviest(r.Rows, claims, func(row *Row) string { return row.Syscall }, strings.Compare)
	saves := r.rows(func(row *Row) bool { return row.Stack.Has(signSave) })
	syncs := r.rows(func(row *Row) bool { return strings.Contains(row.Syscall, "sync") && is(row) })
	at := r.top(claims, innermost)
	e := Explanation{claims: claims, title: "files"}
	var doing []string
	if r.share(saves) > r.share(claims)/4 {
		doing = append(doing, "saving a checkpoint")
	}
	if r.share(syncs) > r.share(claims)/10 {
		doing = append(doing, "fsync")
	}
	if len(doing) == 0 && len(calls) > 0 {
		doing = append(doing, calls[0].of)
	}
	if len(doing) == 0 {
		doing = []string{"page faults on files"}
	}
	e.title = strings.Join(doing, " and ")
	where := ""
	if at != nil {
		e.Place = at.place()
		where = " at " + at.at()
		if second := heaviest(r.Rows, claims, innermost, byPlace); len(second) > 1 && second[1].ns > r.sum(claims)/5 {
			where += fmt.Sprintf(" and line %d", second[1].of.Line)
		}
	}
	e.sentence = fmt.Sprintf("%s of the time is %s%s.", percent(r.share(claims)), e.title, where)
	reader, err := r.slowReader(doing[0])
	if err != nil {
		return nil, err
	}
	if reader != "" {
		e.title = "writing to " + reader
		e.sentence = fmt.Sprintf("%s of the time is writing to %s%s, whose reader is slower than the job writes.", percent(r.share(claims)),
			reader, where)
		e.Advice = "Write less (a higher log level, fewer or shorter lines), make the reader faster, or write from another thread " +
			"(logging's QueueHandler)."
		return []Explanation{e}, nil
	}
	if n := r.heavyPart(claims); n != "" {
		e.Evidence = n
	}
	switch {
	case len(doing) > 0 && strings.Contains(doing[0], "checkpoint"):
		e.Advice = "Save less often, save only what changes, or copy the state and write it from another thread or process."
	case r.share(syncs) > r.share(claims)/10:
		e.Advice = "Sync less often, or write and sync from another thread."
	default:
		e.Advice = "Read ahead or cache what is read, write in larger pieces, or do it from another thread."
	}
	return []Explanation{e}, nil
}

// slowReader is what most of a thread's time in writes goes to, where that is no file: a write there waits until another
// process has read; "" else.
func (r *Recording) slowReader(call string) (string, error) {
	if r.db == nil || !strings.Contains(call, "write") {
		return "", nil
	}
	var kind sql.NullString
	if err := r.db.Row(r.ctx, `SELECT max_by(kind, ns) FROM (SELECT kind, sum(waited_ns) AS ns FROM io
		WHERE pid = ? AND tid = ? AND operation = 'write' GROUP BY kind)`, []any{r.Pace.PID, r.Pace.TID}, &kind); err != nil {
		return "", err
	}
	return map[string]string{"pipe": "a pipe", "socket": "a socket"}[kind.String], nil
}

// heavyPart says in which rare steps most of a claim lies, "" if it lies in all.
func (r *Recording) heavyPart(claims map[int]float64) string {
	heavy := 0.0
	for i, part := range claims {
		if r.Rows[i].Heavy {
			heavy += part * r.Rows[i].NS
		}
	}
	if len(r.steps.heavy) == 0 || heavy < r.sum(claims)/2 {
		return ""
	}
	return fmt.Sprintf("It falls into %d of %d steps%s.", len(r.steps.heavy), len(r.steps.all), r.every())
}
