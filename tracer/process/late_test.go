package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/testkit/silent"
	"github.com/ebpfprof/ebpfprof/tracer/procfile"
	"github.com/ebpfprof/ebpfprof/tracer/reader"
)

// waiting is a job that maps a file, and touches its page at an offset, which never comes. It prints where
// it has that page, and goes on waiting.
const waiting = `
import ctypes, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
size = %d
with open(%q, "rb") as f:
    where = libc.mmap(None, size, 5, 2, f.fileno(), 0)
print(where, flush=True)
threading.Thread(target=ctypes.string_at, args=(where + %d, 1), daemon=True).start()
sys.stdin.read()
`

// silentFrom is from where on the file of these tests never comes.
const silentFrom = 256 << 10

// waitingJob starts a job that waits for a page of a file of its name.
func waitingJob(t *testing.T, name string) (pid int, page uint64, files *silent.FileSystem) {
	t.Helper()
	files = silent.Mount(t, name, make([]byte, 4*silentFrom), silentFrom)
	j := start(t, systemPython(t), "-c", fmt.Sprintf(waiting, 4*silentFrom, files.Path, 2*silentFrom))
	t.Cleanup(files.Abort) // before it is waited for
	if _, err := fmt.Sscan(j.line(t), &page); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); files.Waiting() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("after a minute it waits for no page")
		}
	}
	return j.Process.Pid, page + 2*silentFrom, files
}

// within fails where something that a job can keep waiting does not return. It waits for as long as
// a loaded machine may need for what takes two seconds.
func within(t *testing.T, what string, do func() error) error {
	t.Helper()
	returned := make(chan error, 1)
	go func() { returned <- do() }()
	select {
	case err := <-returned:
		return err
	case <-time.After(time.Minute):
		t.Fatalf("%s has not returned after a minute", what)
		return nil
	}
}

// A page of a job's memory that never comes is not fetched: whoever does that keeps the lock of the
// memory, which probes in any file of the job wait for, and all forks with them.
func TestMemoryThatNeverComesIsLeftAlone(t *testing.T) {
	t.Parallel()
	pid, page, _ := waitingJob(t, "data")
	p, err := Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := OpenMemory(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	around := make([]byte, 2*pageSize)
	err = within(t, "reading it", func() error {
		_, err := memory.ReadAt(around[:8], int64(page))
		return err
	})
	if !errors.Is(err, unix.EFAULT) {
		t.Errorf("%v", err)
	}
	if reader.Held() {
		t.Error("a reader waits for it")
	}
	// All else of the process can be read.
	if _, err := p.Libraries(); err != nil {
		t.Errorf("its maps: %v", err)
	}
}

// Nobody but a reader waits for a file whose server does not answer, nor for anything else of that job from
// then on.
func TestAFileThatNeverOpensIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	pid, _, files := waitingJob(t, "libsilent.so")
	p, err := Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := p.Libraries()
	if err != nil {
		t.Fatal(err)
	}
	files.Silence()
	l := named(t, libraries, "libsilent")
	err = within(t, "opening it", func() error {
		_, err := l.OpenFile()
		return err
	})
	var late *reader.LateError
	if !errors.As(err, &late) || late.PID != pid || !errors.Is(err, reader.ErrLate) {
		t.Errorf("%v", err)
	}
	if _, err := p.Libraries(); !errors.Is(err, reader.ErrLate) {
		t.Errorf("its maps: %v", err)
	}
	other := &Process{PID: os.Getpid()}
	if _, err := other.Libraries(); err != nil {
		t.Errorf("another's: %v", err)
	}
}

// A file that a user may serve is copied, so that to read it, and to close it, waits for nobody.
func TestAFileThatAUserMayServeIsReadFromACopy(t *testing.T) {
	found, _ := filepath.Glob("/lib/*-linux-gnu/libm.so.6")
	if len(found) == 0 {
		t.Skip("no libm where Debian has it")
	}
	contents, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	files := silent.Mount(t, "libserved.so", contents, -1)
	j := start(t, systemPython(t), "-c", fmt.Sprintf(`import ctypes, sys
ctypes.CDLL(%q)
print("mapped", flush=True)
sys.stdin.read()`, files.Path))
	j.line(t)
	_, libraries := mustOpen(t, j.Process.Pid)
	l := named(t, libraries, "libserved")
	for range 2 { // the second time the copy is there
		opened, err := l.OpenFile()
		if err != nil {
			t.Fatal(err)
		}
		var refused *MountError
		if !errors.As(opened.Unprobed, &refused) || refused.FileSystem != "fuse" {
			t.Errorf("probes may go into it: %v", opened.Unprobed)
		}
		e, err := opened.ELF()
		if err != nil {
			t.Fatal(err)
		}
		files.Silence()
		cosine, ok := e.Lookup("cos")
		if !ok || len(e.CodeAt(cosine.Address, 16)) != 16 {
			t.Errorf("its functions are not in the copy: %+v", cosine)
		}
		e.Close()
		opened.Close()
		files.Speak()
	}
}

// What a process had in its memory before it became another program is gone, and the new one's is not read
// for it.
func TestMemoryIsThatOfTheProgramItWasOpenedOf(t *testing.T) {
	j := start(t, systemPython(t), "-c", `import ctypes, os, sys
text = ctypes.create_string_buffer(b"before")
print(ctypes.addressof(text), flush=True)
sys.stdin.readline()
os.execv("/bin/cat", ["cat"])`)
	var address int64
	if _, err := fmt.Sscan(j.line(t), &address); err != nil {
		t.Fatal(err)
	}
	memory, err := OpenMemory(j.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	text := make([]byte, 6)
	if n, err := memory.ReadAt(text, address); n != 6 || err != nil || string(text) != "before" {
		t.Fatalf("%q, %v", text[:n], err)
	}
	if n, err := memory.ReadAt(text, -1); n != 0 || err == nil {
		t.Errorf("at a negative address %d bytes, %v", n, err)
	}
	io.WriteString(j.input.(io.Writer), "\n")
	for deadline := time.Now().Add(time.Minute); procfile.Line(fmt.Sprintf("/proc/%d/comm",
		j.Process.Pid)) != "cat"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("after a minute it is no other program")
		}
	}
	if n, err := memory.ReadAt(text, address); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after an exec %d bytes, %v", n, err)
	}
}

// A process that keeps the lock of its memory is found before probes wait for it: another one reads a page
// of its memory that never comes, and it wants to map something meanwhile.
func TestWhoKeepsTheLockOfItsMemoryIsFound(t *testing.T) {
	if pid := KeepsLock(); pid != 0 {
		t.Skipf("pid %d keeps the lock of its memory already", pid)
	}
	files := silent.Mount(t, "data", make([]byte, 4*silentFrom), silentFrom)
	j := start(t, systemPython(t), "-c", fmt.Sprintf(`import ctypes, os, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
with open(%q, "rb") as f:
    page = libc.mmap(None, %d, 1, 2, f.fileno(), 0) + %d
if os.fork() == 0:
    mem = os.open("/proc/%%d/mem" %% os.getppid(), os.O_RDONLY)
    os.pread(mem, 8, page)
    os._exit(0)
print("reading", flush=True)
sys.stdin.readline()
threading.Thread(target=libc.mmap, args=(None, 4096, 1, 0x22, -1, 0), daemon=True).start()
sys.stdin.read()`, files.Path, 4*silentFrom, 2*silentFrom))
	t.Cleanup(files.Abort)
	j.line(t)
	for deadline := time.Now().Add(time.Minute); files.Waiting() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("after a minute nobody waits for the page")
		}
	}
	io.WriteString(j.input.(io.Writer), "\n")
	found := 0
	for deadline := time.Now().Add(30 * time.Second); found == 0 && time.Now().Before(deadline); {
		found = KeepsLock()
	}
	if found != j.Process.Pid {
		t.Errorf("pid %d was found, and it is pid %d", found, j.Process.Pid)
	}
}
