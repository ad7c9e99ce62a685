package symbolize

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf/elftest"
)

// shifted is a library whose code does not lie at the same place in the file
// and in memory, as lld and patchelf make them.
func shifted(t *testing.T) (path string, e *elf.File, f elf.Symbol) {
	path = testelf.Assemble(t, ".text\n.globl f\n.type f,@function\nf: nop; nop; nop; nop\n.size f, .-f\n",
		"-Wl,-Ttext-segment=0x40000", "-Wl,--build-id=0xabcdef")
	e = elftest.Open(t, path)
	f, ok := e.Lookup("f")
	if offset, mapped := e.FileOffset(f.Address); !ok || !mapped || offset == f.Address {
		t.Fatalf("f at %#x, file offset %#x: the linker did not move it", f.Address, offset)
	}
	return path, e, f
}

func fileMapping(path string, start, end, offset uint64) Mapping {
	return Mapping{Start: start, End: end, FileOffset: offset, Path: path, Key: FileKey{Inode: start},
		Open: func() (*elf.File, error) { return elf.Open(path) }}
}

func TestAddressesGoThroughTheProgramHeaders(t *testing.T) {
	path, e, f := shifted(t)
	offset, _ := e.FileOffset(f.Address)
	page := offset &^ 0xfff
	names := NewNames()
	defer names.Close()
	space := names.Space([]Mapping{fileMapping(path, 0x7f0000001000, 0x7f0000002000, page)})
	at := 0x7f0000001000 + offset - page
	want := Frame{Kind: Native, Function: "f", Module: "lib.so", BuildID: "abcdef", Offset: int64(f.Address)}
	for range 2 { // made, and cached
		if got := space.Named(at, false); got.Frame != want || got.Folded != want.FoldedLabel() || got.Folded != Fold([]Frame{want}) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if got := space.Frame(at, false); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	want.Offset += 3
	if got := space.Frame(at+4, true); got != want {
		t.Errorf("a call at its end that does not return: %+v, want %+v", got, want)
	}
	if got := space.Frame(at+4, false).Function; got == "f" {
		t.Error("the instruction behind f is named f")
	}
}

func TestNamesOutliveTheFileAndItsMapping(t *testing.T) {
	path, e, f := shifted(t)
	offset, _ := e.FileOffset(f.Address)
	names := NewNames()
	defer names.Close()
	space := names.Space([]Mapping{fileMapping(path, 0x10000, 0x11000, offset&^0xfff)})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	space.Update([]Mapping{fileMapping(path, 0x90000, 0x91000, 0)})
	if got := space.Frame(0x10000+offset&0xfff, false).Function; got != "f" {
		t.Errorf("after the library was unmapped: %q", got)
	}
	if got := space.Frame(0x90000, false); got.Module != "lib.so" || got.Function != "" || got.BuildID != "" || got.Offset != -1 {
		t.Errorf("a file that cannot be opened: %+v", got)
	}
	space.Update([]Mapping{{Start: 0x10000, End: 0x10001}})
	if got := space.Frame(0x10000+offset&0xfff, false).Function; got != "" {
		t.Errorf("after something else was mapped there: %q", got)
	}
}

// A build id and a size are what whoever made the file wanted them to be: another
// file of both must not name a genuine one's functions, which came first or not.
func TestABuildIDLendsNoNames(t *testing.T) {
	path, e, f := shifted(t)
	contents, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	forged := filepath.Join(t.TempDir(), "lib.so")
	contents = bytes.ReplaceAll(contents, []byte("\x00f\x00"), []byte("\x00g\x00"))
	if err := os.WriteFile(forged, contents, 0o644); err != nil {
		t.Fatal(err)
	}
	if other := elftest.Open(t, forged); other.BuildID() != e.BuildID() || other.Size() != e.Size() {
		t.Fatal("the forged file does not pass for the genuine one")
	}
	offset, _ := e.FileOffset(f.Address)
	names := NewNames()
	defer names.Close()
	names.Space([]Mapping{fileMapping(forged, 0x20000, 0x21000, offset&^0xfff)})
	space := names.Space([]Mapping{fileMapping(path, 0x10000, 0x11000, offset&^0xfff)})
	if got := space.Frame(0x10000+offset&0xfff, false).Function; got != "f" {
		t.Errorf("f of the genuine file is named %q", got)
	}
}

func TestCodeThatIsInNoFileSaysWhatItIs(t *testing.T) {
	names := NewNames()
	defer names.Close()
	space := names.Space([]Mapping{{Start: 0x1000, End: 0x2000}, {Start: 0x3000, End: 0x4000, Path: "[heap]"}, {Start: 0x5000, End: 0x6000,
		Path: "//anon"}})
	for address, want := range map[uint64]string{0x1800: "[anon]", 0x3000: "[heap]", 0x5fff: "[anon]", 0x4000: "[unknown]", 0: "[unknown]"} {
		if got := space.Frame(address, false); got.Module != want || got.Function != "" || got.Offset != -1 || got.Kind != Native {
			t.Errorf("%#x: %+v, want module %s", address, got, want)
		}
	}
	if !space.Known(0x1000) || space.Known(0x2000) {
		t.Error("Known")
	}
}

func TestTheVDSOHasNames(t *testing.T) {
	e, err := readVDSO()
	if errors.Is(err, errNoVDSO) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	functions := e.FunctionsWithPrefixes([]string{"__vdso_", "__kernel_"})
	names := NewNames()
	space := names.Space([]Mapping{{Start: 0x7fff0000, End: 0x7fff4000, Path: vdsoPath}})
	if len(functions) == 0 {
		t.Fatal("no functions")
	}
	for _, f := range functions {
		offset, _ := e.FileOffset(f.Address)
		if got := space.Frame(0x7fff0000+offset, false); got.Function == "" || IsNameless(got.Function) || got.Module != vdsoPath ||
			got.BuildID == "" {
			t.Errorf("%s: %+v", f.Name, got)
		}
	}
}

func TestNamelessCodeIsNamedAfterItsFrameDescription(t *testing.T) {
	e := elftest.New(t, testelf.Tiny(t, "tiny-stripped.so"))
	f := NewFile(e, "/some/where/tiny.so")
	functions := map[string]bool{}
	nameless := 0
	for _, start := range e.FunctionStarts() {
		_, end, _ := e.Extent(start)
		if s, ok := e.IndexFunctions().Covering(start); ok {
			functions[s.Name] = true
			continue
		}
		nameless++
		first, last := f.Frame(start).Function, f.Frame(end-1).Function
		if first != last && !strings.HasSuffix(last, "@plt") || !strings.HasPrefix(first, "tiny.so+0x") && !strings.HasSuffix(first, "@plt") {
			t.Errorf("[%#x,%#x) is %q to %q", start, end, first, last)
		}
		if strings.HasPrefix(first, "tiny.so+") != IsNameless(first) {
			t.Errorf("IsNameless(%q) = %v", first, IsNameless(first))
		}
	}
	if nameless == 0 || len(functions) == 0 {
		t.Fatalf("%d nameless functions, %d named", nameless, len(functions))
	}
	if got := f.Frame(1 << 40).Function; got != "" {
		t.Errorf("an address outside of the file is %q", got)
	}
}

func TestAFileThatIsCutShortKeepsItsFrames(t *testing.T) {
	path, _, f := shifted(t)
	e := elftest.Open(t, path)
	file := NewFile(e, path)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	got := file.Frame(f.Address)
	if got.Function != "" || got.Offset != int64(f.Address) || got.BuildID != "abcdef" || !errors.Is(file.Err(), elf.ErrTruncated) {
		t.Errorf("%+v, %v", got, file.Err())
	}
}

// A process may map as many files as it likes: those of which nothing is asked are
// closed, and opened again when it is.
func TestAFileThatWasClosedForOthersIsOpenedAgain(t *testing.T) {
	path, e, f := shifted(t)
	offset, _ := e.FileOffset(f.Address)
	names := NewNames()
	names.open.limit = 4
	defer names.Close()
	opened := 0
	mapping := func(path string, start uint64) Mapping {
		m := fileMapping(path, start, start+0x1000, offset&^0xfff)
		m.Open = func() (*elf.File, error) { opened++; return elf.Open(path) }
		return m
	}
	space := names.Space([]Mapping{mapping(path, 0x10000)})
	at := 0x10000 + offset&0xfff
	if got := space.Frame(at, false).Function; got != "f" {
		t.Fatalf("named %q", got)
	}
	contents, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	others := []Mapping{mapping(path, 0x10000)}
	for i := range 40 {
		other := filepath.Join(t.TempDir(), "other.so")
		if err := os.WriteFile(other, contents, 0o644); err != nil {
			t.Fatal(err)
		}
		others = append(others, mapping(other, uint64(i+2)<<16))
	}
	space.Update(others)
	if n := names.open.order.Len(); n > 4 || names.open.evicted < 36 {
		t.Errorf("%d files are open, %d were closed", n, names.open.evicted)
	}
	for _, m := range others {
		if got := space.Frame(m.Start+offset&0xfff+1, false).Function; got != "f" {
			t.Errorf("%s: named %q", m.Path, got)
		}
	}
	before := opened
	if space.Update(others); opened != before {
		t.Errorf("%d files were opened though nothing has changed", opened-before)
	}
	// The inode is given to another file while it is closed.
	if err := os.WriteFile(path, contents, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := space.Frame(at+2, false).Function; got != "" {
		t.Errorf("the code of a file that was written anew is named %q", got)
	}
	space.Update(others)
	if got := space.Frame(at+2, false).Function; got != "f" {
		t.Errorf("and then, %q", got)
	}
}
