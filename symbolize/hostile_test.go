package symbolize

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/hostile"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/torch"
)

// What a header of a few kilobytes says may be half a terabyte. None of it is read:
// neither allocated nor looked through.
func TestTablesInHolesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	// Below the limit of a file's size too, where each table has to be refused by itself.
	for _, size := range []uint64{hostile.Largest(t, dir), 15 << 30} {
		for name, file := range hostile.Sparse(size) {
			path := filepath.Join(dir, name)
			if err := file.Write(path); err != nil {
				t.Fatal(err)
			}
			bytes := hostile.Allocated(func() {
				e, err := elf.Open(path)
				if err != nil {
					if !errors.Is(err, elf.ErrTooLarge) && !errors.Is(err, elf.ErrSparse) {
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
				torch.OperatorNames(e)
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
	contents := testelf.Tiny(t, "tiny.so")
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
		e, err := elf.Open(path)
		if err != nil {
			refused++
			continue
		}
		opened++
		f := NewFile(e, path)
		f.Frame(0x1000)
		_ = elf.Guard(func() { e.Lookup("exported"); e.FunctionStarts() })
		e.Close()
	}
	close(stop)
	<-done
	if opened == 0 || refused == 0 {
		t.Errorf("%d were opened and %d refused: it was not cut short at the right time", opened, refused)
	}
}

// blocks is how many bytes of the disk a file takes.
func blocks(info os.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks * 512 }
