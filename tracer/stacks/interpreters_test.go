package stacks

import (
	"io"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/python"
)

// zeros is a memory without contents.
type zeros struct{}

func (zeros) ReadAt(b []byte, _ int64) (int, error) { clear(b); return len(b), nil }

// misleading is an interpreter whose offsets lie beyond what is read of its code objects, as if
// nobody had checked them.
func misleading(memory io.ReaderAt) *interpreter {
	rt := &cpython.Runtime{Version: cpython.Version{Major: 3, Minor: 13}, Offsets: cpython.Lookup(cpython.Version{Major: 3,
		Minor: 13}).Offsets}
	rt.Offsets.CodeQualname = 200
	return &interpreter{python: &python.Interpreter{Runtime: rt, Resolver: cpython.NewResolver(rt, memory)}}
}

func TestAPanicEndsThePythonStacksOfItsProcessAlone(t *testing.T) {
	var warnings []event.Warning
	table := NewTable(NewSpaces(), &Totals{})
	table.interpreters.warn = func(w event.Warning) { warnings = append(warnings, w) }
	table.interpreters.kernel = nil
	table.interpreters.set(10, misleading(zeros{}))
	neighbour := &interpreter{}
	table.interpreters.set(11, neighbour)
	record := &stackRecord{SampleStackRecord: &bpf.SampleStackRecord{Tgid: 10}, python: []bpf.SamplePythonFrame{{Code: 8, Checksum: 0}}}
	for range 2 {
		if table.namePython(record, table.interpreters.of(10)) || len(table.naming.python) != 1 {
			t.Fatalf("%d frames are named", len(table.naming.python))
		}
	}
	if found := table.interpreters.of(10); found == nil || found.python != nil || !table.interpreters.has(10) {
		t.Error("the interpreter is asked again, or looked for again")
	}
	if table.interpreters.of(11) != neighbour {
		t.Error("another process lost its interpreter")
	}
	table.interpreters.warnBroken()
	table.interpreters.warnBroken()
	if len(warnings) != 1 || warnings[0].Source != "10" || warnings[0].Kind != "python" || !strings.Contains(warnings[0].Detail,
		"no Python frames") {
		t.Errorf("warnings: %+v", warnings)
	}
	table.interpreters.forget(10)
}
