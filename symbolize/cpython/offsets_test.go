package cpython

import (
	"errors"
	"os/exec"
	"reflect"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// equalOffsets holds offsets against those that the C compiler computes.
func equalOffsets(t *testing.T, python pythons.Python, got Offsets) {
	t.Helper()
	want, err := pythons.Offsets(python)
	if errors.Is(err, pythons.ErrNoHeaders) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(got)
	for i := range v.NumField() {
		name, offset := v.Type().Field(i).Name, int(v.Field(i).Int())
		measured, has := want[name]
		if !has {
			measured = Absent
		}
		if offset != measured {
			t.Errorf("%s is %d, offsetof says %d", name, offset, measured)
		}
		delete(want, name)
	}
	for name := range want {
		if name != "Version" {
			t.Errorf("offsetof.c prints %s, which Offsets has not", name)
		}
	}
}

func TestTablesEqualOffsetof(t *testing.T) {
	for _, python := range pythons.Installed() {
		t.Run(python.Name(), func(t *testing.T) {
			v, err := ParseVersion(python.Version)
			if err != nil {
				t.Fatal(err)
			}
			table := Lookup(v)
			if table == nil {
				t.Fatalf("no table for %s", v)
			}
			equalOffsets(t, python, table.Offsets)
		})
	}
}

// No free-threaded 3.14 is packaged where this is tested, but its headers are those of 3.14.
func TestTheTableOfFreeThreaded314EqualsItsHeaders(t *testing.T) {
	for _, python := range pythons.Installed() {
		if python.Minor != 14 || python.Include == "" {
			continue
		}
		want, err := pythons.Offsets(python, "-DPy_GIL_DISABLED=1")
		if err != nil {
			t.Fatal(err)
		}
		v, compared := reflect.ValueOf(table314t.Offsets), 0
		for i := range v.NumField() {
			name, offset := v.Type().Field(i).Name, int(v.Field(i).Int())
			if offset == Absent { // the build itself says it, or it has none
				continue
			}
			if measured, ok := want[name]; !ok || offset != measured {
				t.Errorf("%s is %d, offsetof says %d (%v)", name, offset, measured, ok)
			}
			compared++
		}
		t.Logf("%d offsets are compared", compared)
		return
	}
	t.Skip("no Python 3.14 with headers is here: make python fetches it")
}

func TestOffsetsThatABuildSaysOfItselfEqualOffsetof(t *testing.T) {
	for _, python := range pythons.Installed() {
		if python.Minor < 13 {
			continue
		}
		t.Run(python.Name(), func(t *testing.T) {
			debug := debugOffsetsOf(t, python)
			// What the build does not say stays as the table has it.
			table := *Lookup(debug.Version)
			equalOffsets(t, python, debug.Apply(table.Offsets))
		})
	}
}

const libraryOf = `import sysconfig, os, sys
v = sysconfig.get_config_vars()
library = os.path.join(v["LIBDIR"], v.get("INSTSONAME") or "")
print(library if v.get("Py_ENABLE_SHARED") and os.path.exists(library) else os.path.realpath(sys.executable))`

func debugOffsetsOf(t *testing.T, python pythons.Python) *DebugOffsets {
	t.Helper()
	out, err := exec.Command(python.Path, "-c", libraryOf).Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.Open(string(out[:len(out)-1]))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_, contents, err := locate(file)
	if err != nil {
		t.Fatal(err)
	}
	debug, err := ParseDebugOffsets(contents)
	if err != nil {
		t.Fatal(err)
	}
	if debug.Version.String() != python.Version {
		t.Errorf("the offsets say they are of %s, the interpreter %s", debug.Version, python.Version)
	}
	return debug
}

func TestEveryTableSaysWhereItIsFrom(t *testing.T) {
	for _, table := range tables {
		if len(table.Measured) == 0 && table.Source == "" {
			t.Errorf("the table of 3.%d has no provenance", table.Minor)
		}
	}
	if !slices.IsSortedFunc(tables, func(a, b *Table) int {
		if a.Minor == b.Minor && a.FreeThreaded == b.FreeThreaded {
			return b.FirstPatch - a.FirstPatch
		}
		return a.Minor - b.Minor
	}) {
		t.Error("a later patch's table comes after an earlier one's: it would never be used")
	}
}

func TestOtherVersionsHaveNoTable(t *testing.T) {
	for _, version := range []string{"2.7.18", "3.7.16", "3.15.0"} {
		v, err := ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		if Lookup(v) != nil {
			t.Errorf("%s has a table", v)
		}
	}
	if Lookup(Version{3, 13, 0, true}) != nil {
		t.Error("3.13t has a table")
	}
}

func TestVersionsAreParsed(t *testing.T) {
	for text, want := range map[string]Version{
		"3.11.7": {3, 11, 7, false}, "3.10": {3, 10, 0, false}, "3.13.0rc2": {3, 13, 0, false}, "3.12.1+": {3, 12, 1, false},
	} {
		if v, err := ParseVersion(text); err != nil || v != want {
			t.Errorf("%s: %v, %v", text, v, err)
		}
	}
	for _, text := range []string{"", "3", "three.four", "3.x.1", "3.11.x"} {
		if v, err := ParseVersion(text); err == nil {
			t.Errorf("%q: %v", text, v)
		}
	}
}
