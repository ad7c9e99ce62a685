package symbolize

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf/elftest"
)

const hiddenSource = `
.text
.type hidden,@function
hidden: .cfi_startproc
nop; nop; nop
.cfi_endproc
.size hidden, .-hidden
.globl shown
.type shown,@function
shown: .cfi_startproc
nop
.cfi_endproc
.size shown, .-shown
`

// splitDebug makes a library with its symbols, the same without, and the file
// of its debug information, as distributions ship them.
func splitDebug(t *testing.T) (whole, stripped, debug string) {
	t.Helper()
	if _, err := exec.LookPath("objcopy"); err != nil {
		t.Skip("no objcopy here: install binutils")
	}
	whole = testelf.Assemble(t, hiddenSource, "-Wl,--build-id=0x0123456789abcdef0123")
	stripped, debug = filepath.Join(t.TempDir(), "lib.so"), filepath.Join(t.TempDir(), "lib.debug")
	for to, flag := range map[string]string{stripped: "--strip-all", debug: "--only-keep-debug"} {
		if out, err := exec.Command("objcopy", flag, whole, to).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return whole, stripped, debug
}

func TestADebugFileNamesWhatWasStripped(t *testing.T) {
	whole, stripped, debug := splitDebug(t)
	hidden, ok := elftest.Open(t, whole).Lookup("hidden")
	if !ok {
		t.Fatal("no hidden")
	}
	name := func(path string) string {
		return NewFile(elftest.Open(t, path), "lib.so").Frame(hidden.Address + 2).Function
	}
	if got := name(whole); got != "hidden" {
		t.Errorf("with symbols: %q", got)
	}
	if got := name(stripped); !IsNameless(got) {
		t.Errorf("stripped: %q", got)
	}
	if got := name(debug); got != "hidden" {
		t.Errorf("debug information alone: %q", got)
	}
	e := elftest.Open(t, debug)
	if start, end, ok := e.Extent(hidden.Address); ok {
		t.Errorf("a file without code has the extent [%#x,%#x)", start, end)
	}
	if got := NewFile(e, "lib.so").Frame(hidden.Address + 3).Function; got == "hidden" {
		t.Error("the code behind hidden is named hidden")
	}
}

func place(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDebugFilesAreFoundByBuildIDInEveryLayout(t *testing.T) {
	const id = "0123456789abcdef0123"
	whole, stripped, debug := splitDebug(t)
	for _, at := range []string{".build-id/01/23456789abcdef0123.debug", "01/23456789abcdef0123.debug", "some/where/libx.so.debug"} {
		dir := t.TempDir()
		place(t, stripped, filepath.Join(dir, "a", "lib.so"))
		place(t, debug, filepath.Join(dir, at))
		d, err := OpenDebugDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		e, err := d.Open(id)
		if err != nil || e == nil {
			t.Errorf("%s: %v, %v", at, e, err)
			continue
		}
		if !e.HasSymbolTable() {
			t.Errorf("%s: the stripped file was chosen", at)
		}
		e.Close()
		if e, err := d.Open("00112233"); e != nil || err != nil {
			t.Errorf("an unknown id: %v, %v", e, err)
		}
	}
	dir := t.TempDir()
	place(t, whole, filepath.Join(dir, ".build-id/ff/ff.debug"))
	d, err := OpenDebugDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []string{"ffff", "../../etc/passwd", "", "file-", "file-0011", "zz"} {
		if e, err := d.Open(foreign); e != nil || err != nil {
			t.Errorf("%q: %v, %v", foreign, e, err)
		}
	}
}

func TestDirectoriesWithoutELFFilesSaySo(t *testing.T) {
	dir := t.TempDir()
	place(t, "debugdir_test.go", filepath.Join(dir, "notes.txt"))
	d, err := OpenDebugDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := d.Open("0011"); !errors.Is(err, ErrNoELFFiles) {
			t.Errorf("%v", err)
		}
	}
	if _, err := OpenDebugDir(filepath.Join(dir, "notes.txt")); err == nil {
		t.Error("a file is a directory")
	}
	if _, err := OpenDebugDir(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
