package doctor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// nativeFiles counts what the native frames of a process stand on.
type nativeFiles struct {
	files, compiled, rows int
	tableBytes            int
	stripped              int // only what they export has a name
	problems              []check
}

// nativeChecks say whether stacks will have native frames, and which of them
// names; if not, why. A file's table is compiled, unless the cache has it:
// attach will find it there.
func nativeChecks(p *process.Process, libraries []*process.Library) []check {
	var n nativeFiles
	for _, library := range libraries {
		n.add(library)
	}
	checks := []check{n.unwindCheck(), n.nameCheck()}
	checks = append(checks, n.problems...)
	return append(checks, walkChecks(p)...)
}

func (n *nativeFiles) add(library *process.Library) {
	e, err := library.OpenELF()
	if errors.Is(err, elf.ErrNotELF) {
		return // mapped executable by mistake: nothing runs there
	}
	n.files++
	if err != nil {
		n.problem(library, "cannot be opened, so its frames are followed by frame pointer and have no names: "+err.Error())
		return
	}
	defer e.Close()
	var table *unwind.Table
	cut := elf.Guard(func() { table, err = stacks.UnwindCache().Table(e) })
	switch err = errors.Join(cut, err); {
	case errors.Is(err, unwind.ErrNoFrames) && !hasFunctions(e):
		n.files-- // a library of data, or one that only names others
		return
	case errors.Is(err, unwind.ErrNoFrames):
		n.problem(library, "no .eh_frame: its frames are followed by frame pointer, and a stack may end there")
	case err != nil:
		n.problem(library, "no unwind table, so its frames are followed by frame pointer: "+err.Error())
	default:
		n.compiled++
		n.rows += table.Rows
		n.tableBytes += len(table.Leaves)
		if table.Skipped > 0 {
			n.problem(library, fmt.Sprintf("%d functions whose .eh_frame could not be read: stacks end there", table.Skipped))
		}
		_ = table.Close()
	}
	if !e.HasSymbolTable() {
		n.stripped++
	}
}

// hasFunctions reports a file without .eh_frame in which a stack can have a
// frame all the same: a program, or a library with functions of a size.
func hasFunctions(e *elf.File) (has bool) {
	err := elf.Guard(func() {
		functions := e.FunctionsWithPrefixes([]string{""})
		has = e.Interpreter() != "" || slices.ContainsFunc(functions, func(s elf.Symbol) bool { return s.Size > 0 })
	})
	return has || err != nil
}

func (n *nativeFiles) problem(library *process.Library, why string) {
	n.problems = append(n.problems, check{library.Name(), stateDegraded, why})
}

func (n *nativeFiles) unwindCheck() check {
	k := check{"native frames", stateOK, fmt.Sprintf("%d of %d files have unwind tables: %s rows, %s in the kernel",
		n.compiled, n.files, amount.Count(uint64(n.rows)), amount.Bytes(int64(n.tableBytes)))}
	if n.compiled < n.files {
		k.State = stateDegraded
	}
	return k
}

func (n *nativeFiles) nameCheck() check {
	return check{"native names", stateInfo, fmt.Sprintf("%d of %d files have all their symbols, the others what they export; "+
		"ebpfprof symbolize --debug-dir names the rest", n.files-n.stripped, n.files)}
}
