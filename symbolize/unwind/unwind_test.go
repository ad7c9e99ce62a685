package unwind

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

func compileFile(t testing.TB, path string) *Table {
	t.Helper()
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	table, err := Compile(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestLookupFindsTheRowThatCoversAnAddress(t *testing.T) {
	for _, path := range oracleFiles(t)[:2] {
		table := compileFile(t, path)
		rows := rowsOf(table)
		for i, r := range rows {
			end := r.address + 1
			if i+1 < len(rows) {
				end = rows[i+1].address
			}
			for _, address := range []uint64{r.address, (r.address + end) / 2, end - 1} {
				if got := table.Lookup(address); got != r.rule {
					t.Fatalf("%s: Lookup(%#x) = %+v, want %+v", path, address, got, r.rule)
				}
			}
		}
		for _, outside := range []uint64{0, rows[0].address - 1, rows[len(rows)-1].address + 1<<20, ^uint64(0)} {
			if got := table.Lookup(outside); got.Kind != None {
				t.Errorf("%s: Lookup(%#x) = %+v outside of every function", path, outside, got)
			}
		}
	}
}

func TestCachedTableIsTheCompiledOne(t *testing.T) {
	cache := Cache{Directory: t.TempDir()}
	for _, path := range oracleFiles(t)[:2] {
		e, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		compiled, err := cache.Table(e)
		if err != nil {
			t.Fatal(err)
		}
		key := keyOf(t, e)
		cached, err := cache.Load(key)
		if err != nil {
			t.Fatal(err)
		}
		defer cached.Close()
		if cached.release == nil {
			t.Error("the cached table is not mapped")
		}
		plain := *cached
		plain.release = nil
		if !reflect.DeepEqual(*compiled, plain) {
			t.Errorf("%s: the cached table differs from the compiled one", path)
		}
	}
}

func keyOf(t *testing.T, e *elf.File) Key {
	t.Helper()
	hold, held := e.Hold()
	if !held {
		t.Skip("a file's contents can not be held here: run as root")
	}
	defer hold.Release()
	key, ok := KeyOf(hold, e)
	if !ok {
		t.Fatal("no key")
	}
	return key
}

func TestDamagedCacheIsRefused(t *testing.T) {
	cache := Cache{Directory: t.TempDir()}
	e, err := elf.Open(oracleFiles(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	table, err := cache.Table(e)
	if err != nil {
		t.Fatal(err)
	}
	key := keyOf(t, e)
	path := filepath.Join(cache.Directory, string(key)+".unwind")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, contents := range map[string][]byte{
		"flipped bit": flipped, "cut": whole[:len(whole)-1], "short": whole[:100], "empty": nil, "longer": append(bytes.Clone(whole), 0),
	} {
		if err := os.WriteFile(path, contents, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := cache.Load(key); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
	}
	if again, err := cache.Table(e); err != nil || again.Rows != table.Rows {
		t.Errorf("a damaged cache is not replaced: %v", err)
	}
	if repaired, err := os.ReadFile(path); err != nil || !bytes.Equal(repaired, whole) {
		t.Errorf("the cache was not written anew: %v", err)
	}
}

// A file with the build id, the size and the length of .eh_frame of another one is
// made by any user. Its table must not become the other's.
func TestAForgedFileDoesNotGiveItsTableToTheGenuineOne(t *testing.T) {
	contents, err := os.ReadFile(oracleFiles(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	cache := Cache{Directory: t.TempDir()}
	table := func(contents []byte) (*Table, Key) {
		path := filepath.Join(t.TempDir(), "lib.so")
		if err := os.WriteFile(path, contents, 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		made, err := cache.Table(e)
		if err != nil {
			t.Fatal(err)
		}
		return made, keyOf(t, e)
	}
	e, err := elf.New(bytes.NewReader(contents))
	if err != nil {
		t.Fatal(err)
	}
	want, err := Compile(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	frames, _, _ := e.UnwindFrames()
	at := bytes.Index(contents, frames)
	forged := bytes.Clone(contents)
	for i := at; i+2 < at+len(frames); i++ {
		if forged[i] == cfaDefOffset && forged[i+1] == 16 { // where a function has pushed one register
			forged[i+1] = 24
		}
	}
	if wrong, _ := table(forged); bytes.Equal(wrong.Leaves, want.Leaves) && reflect.DeepEqual(wrong.Rules, want.Rules) {
		t.Fatal("the forged file's table is the genuine one's")
	}
	if got, key := table(contents); !bytes.Equal(got.Leaves, want.Leaves) || !reflect.DeepEqual(got.Rules, want.Rules) {
		t.Error("the genuine file got the table of the forged one")
	} else if _, err := cache.Load(key); err != nil {
		t.Errorf("it was not kept: %v", err)
	}
}

func TestFileWithoutFramesIsRefused(t *testing.T) {
	e, err := elf.New(bytes.NewReader(append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x3e\x00"),
		make([]byte, 64)...)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(e, nil); !errors.Is(err, ErrNoFrames) {
		t.Errorf("%v, want ErrNoFrames", err)
	}
}

// section writes an .eh_frame by hand.
type section struct{ bytes.Buffer }

func (s *section) record(body []byte) {
	for len(body)%4 != 0 {
		body = append(body, cfaNop)
	}
	s.Write(le.AppendUint32(nil, uint32(len(body))))
	s.Write(body)
}

// armCommon is a CIE as compilers write it for arm64: CFA = sp, addresses relative.
func (s *section) armCommon(augmentation string) {
	body := append([]byte{0, 0, 0, 0, 1}, augmentation...)
	body = append(body, 0, 4, 0x78, 30)
	if augmentation != "" {
		body = append(body, 1, 0x1b)
	}
	s.record(append(body, cfaDefCFA, 31, 0))
}

func (s *section) function(start, size uint32, instructions ...byte) {
	at := s.Len()
	body := le.AppendUint32(nil, uint32(at+4)) // back to the CIE at 0
	body = le.AppendUint32(body, start-uint32(at+8))
	body = le.AppendUint32(body, size)
	body = append(body, 0)
	s.record(append(body, instructions...))
}

func armRows(t *testing.T, s *section) []oracleRow {
	t.Helper()
	c := newCompiler(s.Bytes(), 0, elf.MachineARM64)
	rows, err := c.rows()
	if err != nil {
		t.Fatal(err)
	}
	table := &Table{Machine: elf.MachineARM64, Rules: c.rules}
	if err := table.layOut(rows); err != nil {
		t.Fatal(err)
	}
	if !table.sound() {
		t.Error("an unsound table")
	}
	return rowsOf(table)
}

// What gcc writes with -mbranch-protection=standard: paciasp, stp x29, x30,
// [sp, -32]!, mov x29, sp; and the way back.
func TestArm64WithPointerAuthentication(t *testing.T) {
	s := &section{}
	s.armCommon("zR")
	s.function(0x10000, 0x20,
		cfaAdvance|1, cfaNegateRAState,
		cfaAdvance|1, cfaDefOffset, 32, cfaOffset|29, 4, cfaOffset|30, 3,
		cfaAdvance|1, cfaDefRegister, 29,
		cfaAdvance|3, cfaRememberState, cfaDefCFA, 31, 0, cfaRestore|29, cfaRestore|30,
		cfaAdvance|1, cfaRestoreState)
	leaf := Rule{Kind: Offset, ReturnAddress: Link}
	framed := Rule{Kind: Offset, CFA: 32, FramePointer: AtCFA, FPOffset: -32, Aux: -24}
	byFP := framed
	byFP.Register = FP
	want := []oracleRow{{0x10000, leaf}, {0x10008, framed}, {0x1000c, byFP}, {0x10018, leaf}, {0x1001c, byFP}, {0x10020, Rule{}}}
	if got := armRows(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestArm64SignalFrame(t *testing.T) {
	s := &section{}
	s.armCommon("zRS")
	s.function(0x10000, 8, cfaDefCFA, 29, 0, cfaOffset|29, 0, cfaOffset|30, 1)
	want := []oracleRow{{0x10000, Rule{Kind: Signal}}, {0x10008, Rule{}}}
	if got := armRows(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestOutermostFrameIsMarked(t *testing.T) {
	s := &section{}
	s.armCommon("zR")
	s.function(0x10000, 8, cfaUndefined, 30)
	want := []oracleRow{{0x10000, Rule{Kind: Offset, ReturnAddress: End}}, {0x10008, Rule{}}}
	if got := armRows(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// What the kernel calls first has no caller, though glibc describes no frame of it: the
// dynamic linker's entry. Of a library that is where its code begins.
func TestTheDynamicLinkersEntryIsOutermost(t *testing.T) {
	nothing := func([]byte, uint64) []InferredRule { return nil }
	for pattern, want := range map[string]ReturnAddress{"/lib*/ld-linux-*.so.*": End, "/lib/*/libz.so.1": Saved} {
		paths, _ := filepath.Glob(pattern)
		if len(paths) == 0 {
			t.Skipf("no %s here", pattern)
		}
		e, err := elf.Open(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		table, err := Compile(e, nothing)
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Lookup(e.Entry()); got.ReturnAddress != want {
			t.Errorf("%s: at its entry, %#x, is %+v", paths[0], e.Entry(), got)
		}
	}
}

func TestGapBetweenFunctionsSaysNothing(t *testing.T) {
	s := &section{}
	s.armCommon("zR")
	s.function(0x10000, 8)
	s.function(0x10100, 8) // a gap
	s.function(0x10110, 8) // padding
	s.function(0x90000, 4) // pages away
	leaf := Rule{Kind: Offset, ReturnAddress: Link}
	want := []oracleRow{{0x10000, leaf}, {0x10008, Rule{}}, {0x10100, leaf}, {0x10118, Rule{}}, {0x90000, leaf}, {0x90004, Rule{}}}
	if got := armRows(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestUnknownInstructionMakesTheFunctionUnknown(t *testing.T) {
	s := &section{}
	s.armCommon("zR")
	s.function(0x10000, 8, cfaAdvance|1, 0x3f)
	want := []oracleRow{{0x10000, Rule{Kind: Expression}}, {0x10008, Rule{}}}
	if got := armRows(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// FuzzFrames: no .eh_frame makes the compiler panic, and its table is sound:
// the kernel searches it without another look.
func FuzzFrames(f *testing.F) {
	s := &section{}
	s.armCommon("zR")
	s.function(0x10000, 0x20, cfaAdvance|1, cfaDefOffset, 32, cfaOffset|29, 4, cfaOffset|30, 3, cfaRememberState, cfaAdvance|2,
		cfaRestoreState)
	s.function(0x20000, 0x20, cfaDefExpression, 2, opBreg0+29, 8)
	f.Add(s.Bytes(), uint64(0), true)
	f.Add([]byte("\x14\x00\x00\x00\x00\x00\x00\x00\x01zR\x00\x01x\x10\x01\x1b\x0c\x07\x08\x90\x01\x00\x00"+
		"\x14\x00\x00\x00\x1c\x00\x00\x00\x00\x10\x00\x00\x26\x00\x00\x00\x00\x44\x07\x10\x00\x00\x00\x00"+
		"\x24\x00\x00\x00\x34\x00\x00\x00\x00\x20\x00\x00\x60\x00\x00\x00\x00\x0e\x10\x46\x0e\x18\x4a\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22\x00\x00\x00\x00"), uint64(0x1000), false)
	f.Fuzz(func(t *testing.T, data []byte, address uint64, arm bool) {
		of := elf.MachineX86_64
		if arm {
			of = elf.MachineARM64
		}
		c := newCompiler(data, address, of)
		rows, err := c.rows()
		if err != nil {
			return
		}
		table := &Table{Machine: of, Rules: c.rules}
		if err := table.layOut(rows); err != nil {
			return
		}
		if !table.sound() {
			t.Fatal("an unsound table")
		}
		for _, r := range rows[:min(len(rows), 100)] {
			table.Lookup(r.address)
		}
	})
}

// FuzzCachedTable: no file in the cache makes the loader panic.
func FuzzCachedTable(f *testing.F) {
	s := &section{}
	s.armCommon("zR")
	s.function(0x10000, 0x20)
	c := newCompiler(s.Bytes(), 0, elf.MachineARM64)
	rows, err := c.rows()
	if err != nil {
		f.Fatal(err)
	}
	table := &Table{Machine: elf.MachineARM64, Rules: c.rules}
	if err := table.layOut(rows); err != nil {
		f.Fatal(err)
	}
	f.Add(encode(table))
	f.Fuzz(func(t *testing.T, data []byte) {
		// A valid digest, so that what it protects is looked at.
		if len(data) >= LeafBytes {
			data = bytes.Clone(data)
			redigest(data)
		}
		if table, err := decode(data); err == nil && table.sound() {
			table.Lookup(table.Base + 5)
		}
	})
}

// FuzzCompile: whatever file it is, its table is sound and answers for any address.
func FuzzCompile(f *testing.F) {
	for _, name := range []string{"tiny.so", "tiny-stripped.so"} {
		f.Add(testelf.Tiny(f, name))
	}
	f.Fuzz(func(t *testing.T, contents []byte) {
		e, err := elf.New(bytes.NewReader(contents))
		if err != nil {
			return
		}
		table, err := Compile(e, nil)
		if err != nil {
			return
		}
		if !table.sound() {
			t.Fatal("a table that leads out of itself")
		}
		for _, at := range []uint64{0, table.Base, table.Base + 1, ^uint64(0)} {
			table.Lookup(at)
		}
		table.Digest()
		if hold, ok := e.Hold(); ok {
			KeyOf(hold, e)
			hold.Release()
		}
	})
}

// Whatever the distances of the rows: an image is no larger than it has to be by more
// than a thirty-second, which the kernel's memory is counted by.
func TestAnImageIsHardlyLargerThanTheSmallest(t *testing.T) {
	for distance := uint64(13); distance < 400; distance += 12 {
		var runs []run
		for i := range uint64(60_000) {
			at := i * distance
			runs = append(runs, run{address: at, last: at, code: oneRule | 1, rule: 1})
		}
		chosen, least := bestLayout(runs, 0), maxLeaves
		for bits := uint(minPageBits); bits <= maxPageBits; bits++ {
			l := layout{bits: bits, pages: int(runs[len(runs)-1].address>>bits) + 1}
			if eachPage(runs, l, func(_ int, p pageRuns) { l.leaves = max(l.leaves, p.leaf+1) }) {
				least = min(least, l.total())
			}
		}
		if !chosen.ok || chosen.total() > least+least/32+1 {
			t.Errorf("a row every %d bytes: %d leaves with pages of %d bytes, %d would do", distance, chosen.total(), 1<<chosen.bits, least)
		}
	}
}
