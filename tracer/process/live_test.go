package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// job is a program that a test started. It ends when its input does.
type job struct {
	*exec.Cmd
	input io.Closer
	lines *bufio.Reader
}

// start runs a program until the test ends or calls stop.
func start(t testing.TB, name string, args ...string) *job {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s here", name)
	}
	j := &job{Cmd: exec.Command(path, args...)}
	input, err1 := j.StdinPipe()
	output, err2 := j.StdoutPipe()
	j.Stderr = os.Stderr
	if err := errors.Join(err1, err2, j.Start()); err != nil {
		t.Fatal(err)
	}
	j.input, j.lines = input, bufio.NewReader(output)
	t.Cleanup(func() {
		_ = input.Close()
		_ = j.Process.Kill()
		_ = j.Wait()
	})
	return j
}

// line is the next line that the program prints.
func (j *job) line(t testing.TB) string {
	t.Helper()
	line, err := j.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %v", j.Args, err)
	}
	return strings.TrimSpace(line)
}

func mustOpen(t testing.TB, pid int) (*Process, []*Library) {
	t.Helper()
	p, err := Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := p.Libraries()
	if err != nil {
		t.Fatal(err)
	}
	return p, libraries
}

func named(t testing.TB, libraries []*Library, prefix string) *Library {
	t.Helper()
	for _, l := range libraries {
		if strings.HasPrefix(l.Name(), prefix) {
			return l
		}
	}
	t.Fatalf("no %s among %d libraries", prefix, len(libraries))
	return nil
}

func systemPython(t testing.TB) string {
	if found, _ := filepath.Glob("/usr/bin/python3.[0-9]*[0-9]"); len(found) > 0 {
		return found[0]
	}
	t.Skip("no system Python here: install python3")
	return ""
}

// someLibrary is a shared library of this machine that a test may copy.
func someLibrary(t testing.TB) string {
	for _, pattern := range []string{"/usr/lib/*-linux-gnu/libm.so.6", "/lib64/libm.so.6"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	t.Skip("no libm.so.6 here")
	return ""
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestARunningProgramIsFoundWithItsLibraries(t *testing.T) {
	j := start(t, systemPython(t), "-c", `import ctypes, sys
libc = ctypes.CDLL("libc.so.6")
print(ctypes.cast(libc.getpid, ctypes.c_void_p).value, flush=True)
sys.stdin.read()`)
	address, err := strconv.ParseUint(j.line(t), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	p, libraries := mustOpen(t, j.Process.Pid)
	if p.ParentPID != os.Getpid() || !strings.Contains(p.Command, "ctypes.CDLL") || p.NSPID == nil {
		t.Errorf("%+v", p)
	}
	libc := named(t, libraries, "libc.so.6")
	if libc.Deleted {
		t.Errorf("%+v is deleted", libc)
	}
	e, err := libc.OpenELF()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	symbol, ok := e.Lookup("getpid")
	bias, ok2 := libc.Bias(e)
	if !ok || !ok2 || bias+symbol.Address != address {
		t.Errorf("getpid at %#x, want %#x", bias+symbol.Address, address)
	}
	offset, _ := e.FileOffset(symbol.Address)
	if got, ok := libc.FileOffset(address); !ok || got != offset {
		t.Errorf("FileOffset(%#x) = %#x, want %#x", address, got, offset)
	}
	if got, ok := libc.Address(offset); !ok || got != address {
		t.Errorf("Address(%#x) = %#x, want %#x", offset, got, address)
	}
	if mappers, err := Mappers(libc.Device, libc.Inode); err != nil || !slices.Contains(mappers, j.Process.Pid) {
		t.Errorf("Mappers(libc) = %v, %v, want %d among them", mappers, err, j.Process.Pid)
	}
	if children, err := Children(os.Getpid()); err != nil || !slices.Contains(children, j.Process.Pid) {
		t.Errorf("Children = %v, %v, want %d among them", children, err, j.Process.Pid)
	}
	threads, err := p.Threads()
	if err != nil || len(threads) != 1 || threads[0].Role != "main" || threads[0].StartedNS != p.StartedNS {
		t.Errorf("threads %+v, %v", threads, err)
	}
}

func TestASecretInALiveEnvironmentIsNotKept(t *testing.T) {
	const secret = "hunter2-hunter2"
	t.Setenv("EBPFPROF_TEST_PASSWORD", secret)
	t.Setenv("RANK", "0")
	t.Setenv("WORLD_SIZE", "2")
	j := start(t, "cat")
	p, _ := mustOpen(t, j.Process.Pid)
	asJSON, err := json.Marshal(p)
	if err != nil || strings.Contains(string(asJSON)+fmt.Sprintf("%+v", p), secret) {
		t.Errorf("%v: %s", err, asJSON)
	}
	if number(p.Job.Rank) != "0" || number(p.Job.WorldSize) != "2" {
		t.Errorf("%+v", p.Job)
	}
}

func TestAProcessThatEndedIsSaidToHaveEnded(t *testing.T) {
	j := start(t, "cat")
	p, _ := mustOpen(t, j.Process.Pid)
	if err := j.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Not waited for: a zombie, whose files are there and empty.
	for state := byte(0); state != 'Z'; {
		s, err := FS{}.stat(j.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		state = s.state
	}
	if _, err := Open(j.Process.Pid); !errors.Is(err, ErrExited) {
		t.Errorf("Open of a zombie: %v", err)
	}
	if _, err := p.Libraries(); !errors.Is(err, ErrExited) {
		t.Errorf("Libraries of a zombie: %v", err)
	}
	if p.Alive() {
		t.Error("a zombie is alive")
	}
	_ = j.Wait()
	if _, err := Open(j.Process.Pid); !errors.Is(err, ErrNotFound) {
		t.Errorf("Open of no process: %v", err)
	}
	if _, err := p.Libraries(); !errors.Is(err, ErrExited) {
		t.Errorf("Libraries of no process: %v", err)
	}
}

func TestAKernelThreadIsRefused(t *testing.T) {
	if s, err := (FS{}).stat(2); err != nil || s.comm != "kthreadd" {
		t.Skip("no kernel threads in this pid namespace")
	}
	if _, err := Open(2); !errors.Is(err, ErrKernelThread) {
		t.Errorf("%v, want ErrKernelThread", err)
	}
}

func TestStaticProgramsAreRefusedAndLoadersAreNot(t *testing.T) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler here")
	}
	source, static := filepath.Join(t.TempDir(), "wait.c"), filepath.Join(t.TempDir(), "wait")
	const program = "#include <unistd.h>\nint main(void) { char c; write(1, \"\\n\", 1); return (int)read(0, &c, 1); }\n"
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"-static", "-static-pie"} {
		if out, err := exec.Command(compiler, form, "-o", static, source).CombinedOutput(); err != nil {
			t.Skipf("no static libc here: %s", out)
		}
		j := start(t, static)
		j.line(t)
		if _, err := Open(j.Process.Pid); !errors.Is(err, ErrStatic) {
			t.Errorf("%s: %v, want ErrStatic", form, err)
		}
	}
	loaders, _ := filepath.Glob("/lib64/ld-linux-*.so.2")
	if len(loaders) == 0 {
		t.Skip("no dynamic loader here")
	}
	j := start(t, loaders[0], systemPython(t), "-c", "import sys; print(flush=True); sys.stdin.read()")
	j.line(t)
	p, libraries := mustOpen(t, j.Process.Pid)
	if len(libraries) < 3 {
		t.Errorf("%d libraries of %s", len(libraries), p.Exe)
	}
}

func TestADeletedLibraryIsOpenedThroughMapFiles(t *testing.T) {
	original := someLibrary(t)
	copied := filepath.Join(t.TempDir(), "libdeleted.so")
	copyFile(t, original, copied)
	j := start(t, systemPython(t), "-c", fmt.Sprintf(`import ctypes, os, sys
ctypes.CDLL(%q)
print(flush=True)
sys.stdin.read()`, copied))
	j.line(t)
	if err := os.Remove(copied); err != nil {
		t.Fatal(err)
	}
	for _, replaced := range []bool{false, true} {
		if replaced { // by a file that is no library, as a package manager would by another version
			if err := os.WriteFile(copied, []byte("another"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, libraries := mustOpen(t, j.Process.Pid)
		l := named(t, libraries, "libdeleted.so")
		if !l.Deleted || l.Path != copied {
			t.Errorf("%+v is not deleted", l)
		}
		file, via, err := l.Open()
		if err == nil {
			file.Close()
		}
		if errors.Is(err, ErrPermission) {
			t.Skip("map_files needs CAP_CHECKPOINT_RESTORE")
		}
		if err != nil || via != ViaMapFiles {
			t.Fatalf("Open: %q, %v", via, err)
		}
		e, err := l.OpenELF()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Lookup("cos"); !ok {
			t.Error("not the library that was deleted")
		}
		e.Close()
	}
}

func TestAContainerIsReadThroughItsOwnRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make namespaces")
	}
	hidden := t.TempDir()
	script := filepath.Join(t.TempDir(), "inside.py")
	// The package is in a tmpfs that exists in the inner mount namespace only,
	// its version.py a symbolic link that leads elsewhere on the outside.
	source := fmt.Sprintf(`import ctypes, os, shutil, sys
base = %[1]q
lib = base + "/site-packages/torch/lib"
os.makedirs(lib)
shutil.copy(%[2]q, lib + "/libtorch_cpu.so")
with open(base + "/real.py", "w") as f: f.write("__version__ = '9.8.7+test'\n")
os.symlink(base + "/real.py", base + "/site-packages/torch/version.py")
ctypes.CDLL(lib + "/libtorch_cpu.so")
print(os.getpid(), flush=True)
sys.stdin.read()
`, hidden, someLibrary(t))
	if err := os.WriteFile(script, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	python := systemPython(t)
	j := start(t, "unshare", "-mpf", "--mount-proc", "sh", "-c",
		fmt.Sprintf("mount -t tmpfs none %s && exec %s %s", hidden, python, script))
	inner, err := j.lines.ReadString('\n')
	if err != nil {
		t.Skip("no namespaces here")
	}
	children, err := Children(j.Process.Pid)
	if err != nil || len(children) != 1 {
		t.Fatalf("children of unshare: %v, %v", children, err)
	}
	p, libraries := mustOpen(t, children[0])
	if p.NSPID == nil || fmt.Sprint(*p.NSPID) != strings.TrimSpace(inner) {
		t.Errorf("ns pid %v, want %s", p.NSPID, inner)
	}
	if own := namespaceInode("/proc/self/ns/pid"); p.PIDNamespace == own || p.PIDNamespace == 0 {
		t.Errorf("pid namespace %d, ours is %d", p.PIDNamespace, own)
	}
	l := named(t, libraries, "libtorch_cpu.so")
	if _, err := os.Stat(l.Path); err == nil {
		t.Fatalf("%s is visible outside", l.Path)
	}
	e, err := l.OpenELF()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, ok := e.Lookup("cos"); !ok {
		t.Error("not the library that is mapped")
	}
	if info, err := os.Stat(p.path("root", l.Path)); err != nil || info.Sys().(*syscall.Stat_t).Ino != l.Inode {
		t.Errorf("through the root: %v", err)
	}
	frameworks := p.Frameworks(libraries)
	if len(frameworks) != 1 || frameworks[0].Version != "9.8.7+test" || frameworks[0].Name != "pytorch" {
		t.Errorf("%+v", frameworks)
	}
	if python, err := p.Python(libraries); err != nil || python == nil || !strings.HasPrefix(python.Version, "3.") {
		t.Errorf("%+v, %v", python, err)
	}
}

// TestPythonVersionIsTheInterpretersOwn runs every CPython of this machine:
// the distribution's and source-built ones, with libpython and without.
func TestPythonVersionIsTheInterpretersOwn(t *testing.T) {
	home, _ := os.UserHomeDir()
	found, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/*/bin/python[23].[0-9]"))
	more, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/*/bin/python[23].[0-9][0-9]"))
	for _, python := range append(append(found, more...), systemPython(t)) {
		j := start(t, python, "-c", "import sys; print(sys.version.split()[0]); sys.stdout.flush(); sys.stdin.read()")
		want := j.line(t)
		p, libraries := mustOpen(t, j.Process.Pid)
		got, err := p.Python(libraries)
		if err != nil || got == nil || got.Version != want {
			t.Errorf("%s: %+v, %v, want %s", filepath.Base(python), got, err, want)
			continue
		}
		t.Logf("%s from %s in %s", got.Version, got.From, got.Library.Name())
	}
	j := start(t, "cat")
	p, libraries := mustOpen(t, j.Process.Pid)
	if python, err := p.Python(libraries); python != nil || err != nil {
		t.Errorf("cat runs %+v, %v", python, err)
	}
}

func TestTheFrameworkVersionIsItsOwn(t *testing.T) {
	home, _ := os.UserHomeDir()
	pythons, _ := filepath.Glob(filepath.Join(home, ".cache/ebpfprof/torch-venv/bin/python"))
	for _, python := range append(pythons, systemPython(t)) {
		if exec.Command(python, "-c", "import torch").Run() != nil {
			t.Logf("no torch in %s", python)
			continue
		}
		j := start(t, python, "-c", "import sys, torch; print(torch.__version__, flush=True); sys.stdin.read()")
		want := j.line(t)
		p, libraries := mustOpen(t, j.Process.Pid)
		got := p.Frameworks(libraries)
		if len(got) != 1 || got[0].Name != "pytorch" || got[0].Version != want {
			t.Errorf("%s: %+v, want %s", python, got, want)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	j := start(b, systemPython(b), "-c", "import sys; print(flush=True); sys.stdin.read()")
	j.line(b)
	for b.Loop() {
		if _, err := Open(j.Process.Pid); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLibraries reads the maps of a process with torch loaded.
func BenchmarkLibraries(b *testing.B) {
	j := start(b, systemPython(b), "-c", "import sys\ntry:\n  import torch\nexcept ImportError: pass\nprint(flush=True); sys.stdin.read()")
	j.line(b)
	p, libraries := mustOpen(b, j.Process.Pid)
	for b.Loop() {
		if _, err := p.Libraries(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(libraries)), "libraries")
}

func BenchmarkParseLibraries(b *testing.B) {
	j := start(b, systemPython(b), "-c", "import sys\ntry:\n  import torch\nexcept ImportError: pass\nprint(flush=True); sys.stdin.read()")
	j.line(b)
	maps, err := procfile.Read(FS{}.pidPath(j.Process.Pid, "maps"), 0)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(maps)))
	for b.Loop() {
		if _, err := parseLibraries(maps); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMappers(b *testing.B) {
	j := start(b, "cat")
	_, libraries := mustOpen(b, j.Process.Pid)
	libc := named(b, libraries, "libc.so.6")
	for b.Loop() {
		if _, err := Mappers(libc.Device, libc.Inode); err != nil {
			b.Fatal(err)
		}
	}
}

// The device that maps prints is the superblock's, stat's on an overlay may be
// another: the file must be found all the same.
func TestALibraryOnAnOverlayIsOpened(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount")
	}
	dir := t.TempDir()
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	found, _ := filepath.Glob("/lib/*-linux-gnu/libm.so.6")
	if len(found) == 0 {
		t.Skip("no libm where Debian has it")
	}
	original := found[0]
	// Of another file system than the one above it: then an inode is told with a device of its own.
	if err := unix.Mount("none", filepath.Join(dir, "lower"), "tmpfs", 0, ""); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { unix.Unmount(filepath.Join(dir, "lower"), unix.MNT_DETACH) })
	copyFile(t, original, filepath.Join(dir, "lower", "liblow.so"))
	merged := filepath.Join(dir, "merged")
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		t.Skipf("mounting an overlay: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(merged, unix.MNT_DETACH) })
	copyFile(t, original, filepath.Join(merged, "libup.so"))
	j := start(t, systemPython(t), "-c", fmt.Sprintf(`import ctypes, sys
for name in "liblow.so", "libup.so":
    ctypes.CDLL(%q + "/" + name)
print(flush=True)
sys.stdin.read()`, merged))
	j.line(t)
	_, libraries := mustOpen(t, j.Process.Pid)
	for _, name := range []string{"liblow.so", "libup.so"} {
		l := named(t, libraries, name)
		file, via, err := l.Open()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var stat unix.Stat_t
		if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: maps says %s, stat %d:%d, by %s", name, l.Device, unix.Major(stat.Dev), unix.Minor(stat.Dev), via)
		file.Close()
		l.Device.Minor ^= 0x40 // the same inode elsewhere
		if file, _, err := l.Open(); err == nil {
			file.Close()
			t.Errorf("%s: opened as the file of another device", name)
		}
	}
}
