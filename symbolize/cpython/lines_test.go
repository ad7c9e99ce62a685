package cpython

import (
	"encoding/binary"
	"os/exec"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
)

func TestLineTableMatchesTheInterpreterOverTheStandardLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector, which has nothing to find in it: make test-kernel runs it without")
	}
	installed := pythons.Installed()
	if len(installed) == 0 {
		t.Fatal("no CPython is installed")
	}
	for _, python := range installed {
		t.Run(python.Name(), func(t *testing.T) {
			out, err := exec.Command(python.Path, "-W", "ignore", "testdata/lines.py").Output()
			if err != nil {
				t.Fatal(err)
			}
			compareLines(t, python.Minor, out)
		})
	}
}

// compareLines holds LineTable against what testdata/lines.py wrote.
func compareLines(t *testing.T, minor int, out []byte) {
	next := func() int {
		v := int(int32(binary.LittleEndian.Uint32(out)))
		out = out[4:]
		return v
	}
	objects, units, lineless := 0, 0, 0
	for len(out) > 0 {
		first, size := next(), next()
		table := NewLineTable(minor, first, out[:size])
		out = out[size:]
		got := linesByUnit(table, next())
		for unit, line := range got {
			want := next()
			if line != want {
				t.Errorf("first line %d, unit %d: line %d, the interpreter says %d", first, unit, line, want)
			}
			if want == -1 {
				lineless++
			}
		}
		objects, units = objects+1, units+len(got)
		if t.Failed() {
			return
		}
	}
	if objects < 1000 {
		t.Errorf("only %d code objects: the standard library was not found", objects)
	}
	if minor >= 11 && lineless == 0 {
		t.Error("no code unit without a line: the rule for them was not tested")
	}
	t.Logf("%d code objects, %d code units, %d of them without a line: no difference", objects, units, lineless)
}

// linesByUnit decodes the table once, and some units on their own.
func linesByUnit(table LineTable, units int) []int {
	lines := make([]int, units)
	for unit := range lines {
		lines[unit] = -2
	}
	table.ranges(func(r lineRange) bool {
		for unit := r.start; unit < min(r.end, units); unit++ {
			lines[unit] = -1
			if r.known {
				lines[unit] = r.line
			}
		}
		return true
	})
	for _, unit := range []int{0, units / 3, units - 1} {
		if line, known := table.Line(unit); known && line != lines[unit] || !known && lines[unit] != -1 {
			lines[unit] = -3
		}
	}
	return lines
}

func TestLineOfAFrameThatHasNotBegunIsTheFirst(t *testing.T) {
	for _, minor := range []int{8, 10, 11, 14} {
		if line, known := NewLineTable(minor, 42, nil).Line(-1); line != 42 || !known {
			t.Errorf("3.%d: line %d, %v", minor, line, known)
		}
	}
}

func TestALocationWithoutALineKeepsTheRunningOne(t *testing.T) {
	table := NewLineTable(12, 10, []byte{
		0x80 | (locationOneLine+1)<<3, 0, 0, // one unit, a line further
		0x80 | locationNone<<3,          // one unit
		0x80 | locationOneLine<<3, 0, 0, // one unit, the same line as before
	})
	for unit, want := range []struct {
		line  int
		known bool
	}{{11, true}, {11, false}, {11, true}} {
		if line, known := table.Line(unit); known != want.known || known && line != want.line {
			t.Errorf("unit %d: line %d, %v", unit, line, known)
		}
	}
}
