package symbolize

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/hostile"
)

// largest is the largest file that a directory's file system takes, at most what
// an attacker would ask for.
func largest(t *testing.T, dir string) uint64 {
	t.Helper()
	for size := uint64(559 << 30); size > 1<<30; size /= 2 {
		path := filepath.Join(dir, "size")
		if os.WriteFile(path, nil, 0o600) == nil && os.Truncate(path, int64(size)) == nil {
			os.Remove(path)
			return size
		}
	}
	t.Skip("no large files here")
	return 0
}

// allocated is how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What a header of a few kilobytes says may be half a terabyte. None of it is read:
// neither allocated nor looked through.
func TestTablesInHolesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	// Below the limit of a file's size too, where each table has to be refused by itself.
	for _, size := range []uint64{largest(t, dir), 15 << 30} {
		for name, file := range hostile.Sparse(size) {
			path := filepath.Join(dir, name)
			if err := file.Write(path); err != nil {
				t.Fatal(err)
			}
			bytes := allocated(func() {
				e, err := OpenELF(path)
				if err != nil {
					if !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrSparse) {
						t.Errorf("%s: %v", name, err)
					}
					return
				}
				defer e.Close()
				e.FunctionsWithPrefixes([]string{"", "_ZN2at4_ops"})
				e.Lookup("nothing")
				e.FunctionStarts()
				e.UnwindFrames()
				e.NoReturn(0x1000)
				OperatorNames(e)
				e.IndexFunctions().Covering(0x1000)
				NewFile(e, path).Frame(0x200000)
			})
			if bytes > 64<<20 {
				t.Errorf("%s of %d GiB: %d MiB were allocated", name, size>>30, bytes>>20)
			}
			if info, err := os.Stat(path); err != nil || blocks(info) > 1<<20 {
				t.Errorf("%s: reading it has filled its holes: %d MiB, %v", name, blocks(info)>>20, err)
			}
			os.Remove(path)
		}
	}
}

// A library of a user's may be cut short at any time.
func TestAFileCutShortWhileItIsOpenedIsAnError(t *testing.T) {
	contents := tiny(t, "tiny.so")
	path := filepath.Join(t.TempDir(), "lib.so")
	stop := make(chan struct{})
	done := make(chan struct{})
	if err := os.WriteFile(path, contents, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				os.Truncate(path, 0)
				os.WriteFile(path, contents, 0o600)
			}
		}
	}()
	opened, refused := 0, 0
	for range 20_000 {
		e, err := OpenELF(path)
		if err != nil {
			refused++
			continue
		}
		opened++
		f := NewFile(e, path)
		f.Frame(0x1000)
		_ = Guard(func() { e.Lookup("exported"); e.FunctionStarts() })
		e.Close()
	}
	close(stop)
	<-done
	if opened == 0 || refused == 0 {
		t.Errorf("%d were opened and %d refused: it was not cut short at the right time", opened, refused)
	}
}

// A constant that a user made of what ends a schema, without a NUL, is searched once.
func TestTheSearchForSchemasIsLinear(t *testing.T) {
	for name, data := range map[string][]byte{
		"ends of schemas":   bytes.Repeat([]byte(") -> "), 4<<20),
		"one endless name":  bytes.Repeat([]byte("a"), 16<<20),
		"names and schemas": bytes.Repeat([]byte("a(b) -> \x00"), 2<<20),
		"a long name":       append(append([]byte{0}, bytes.Repeat([]byte("a."), 1<<20)...), "(b) -> c"...),
	} {
		yielded, total := 0, 0
		eachSchema(data, func(s schema) { yielded++; total += len(s.name) })
		if total > len(data) || yielded > len(data)/8 {
			t.Errorf("%s: %d names of %d bytes in %d", name, yielded, total, len(data))
		}
	}
}

func TestLongNamesStayMangled(t *testing.T) {
	long := "_Z1f" + strings.Repeat("P", 60_000) + "i"
	if got := Demangle(long); len(got) > 1<<maxDemangled || !strings.HasPrefix(got, "_Z1f") {
		t.Errorf("%d characters: %.20s", len(got), got)
	}
	if got := DemangleFull(long); len(got) > 1<<maxDemangledFull || !strings.HasPrefix(got, "_Z1f") {
		t.Errorf("%d characters: %.20s", len(got), got)
	}
	if _, ok := VTableClass("_ZTV" + strings.Repeat("N1a", 30_000)); ok {
		t.Error("a class of 90,000 characters")
	}
}

// Thousands of symbols that share one endless name, and one address.
func TestSymbolsThatShareANameAreNotCopied(t *testing.T) {
	const symbols = 100_000
	table := make([]byte, 24)
	for range symbols {
		table = append(table, hostile.Symbol(1, 0x1000, 16)...)
	}
	names := append([]byte{0}, bytes.Repeat([]byte("a"), maxSymbolName-2)...)
	names = append(names, 0)
	path := filepath.Join(t.TempDir(), "lib.so")
	file := hostile.File{Size: 16 << 20, Sections: []hostile.Section{
		{Name: ".symtab", Kind: hostile.Symtab, Offset: 0x100000, Contents: table, Link: 2},
		{Name: ".strtab", Kind: hostile.Strtab, Offset: 0x8000, Contents: names},
	}}
	if err := file.Write(path); err != nil {
		t.Fatal(err)
	}
	e := open(t, path)
	bytes := allocated(func() {
		if _, ok := e.Lookup(strings.Repeat("a", 100)); ok {
			t.Error("found a prefix of a name")
		}
		if found := e.FunctionsWithPrefixes([]string{"a"}); len(found) > 1 {
			t.Errorf("%d functions of one name at one address", len(found))
		}
		e.IndexFunctions().Covering(0x1000)
	})
	if bytes > 512<<20 {
		t.Errorf("%d MiB were allocated", bytes>>20)
	}
}

// blocks is how many bytes of the disk a file takes.
func blocks(info os.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks * 512 }
