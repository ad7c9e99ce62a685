package explain

import (
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
