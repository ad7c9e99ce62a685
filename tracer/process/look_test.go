package process

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// opens counts how often a file is opened: a look with O_PATH is no opening.
type opens struct {
	t  *testing.T
	fd int
}

func watchOpens(t *testing.T, paths ...string) *opens {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	for _, path := range paths {
		if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN); err != nil {
			t.Fatal(err)
		}
	}
	return &opens{t, fd}
}

func (o *opens) any() bool {
	n, err := unix.Read(o.fd, make([]byte, 4096))
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		o.t.Fatal(err)
	}
	return n > 0
}

func TestNothingButARegularFileIsOpenedWhereAVersionIsReadFrom(t *testing.T) {
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "version.py")
	terminal, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no pseudo terminals here: ", err)
	}
	defer unix.Close(terminal)
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.Symlink(fifo, link)); err != nil {
		t.Fatal(err)
	}
	opened := watchOpens(t, fifo, "/dev/null", "/dev/ptmx")
	p := &Process{PID: os.Getpid()}
	for _, path := range []string{fifo, link, "/dev/null", "/dev/ptmx"} {
		if content := p.readInRoot(path); content != nil {
			t.Errorf("%s: %q was read", path, content)
		}
		if version, from := p.distribution(path, "torch"); version != "" || from != "" {
			t.Errorf("%s as a directory: version %q from %q", path, version, from)
		}
		if opened.any() {
			t.Errorf("%s was opened", path)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "regular"), []byte("__version__ = '2.6.0'"), 0o600); err != nil {
		t.Fatal(err)
	}
	if content := p.readInRoot(filepath.Join(dir, "regular")); quotedVersion(content) != "2.6.0" {
		t.Errorf("of a regular file %q was read", content)
	}
}

// A job may link to files that the kernel makes up, and root would take from them what was
// meant for others, or read what is its own below /proc/self.
func TestFilesThatTheKernelMakesUpAreNotRead(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	for _, path := range []string{"/proc/self/environ", "/proc/kmsg", "/sys/kernel/mm/transparent_hugepage/enabled"} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		_ = os.Remove(link)
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{path, link} {
			if content, err := ReadFile(os.Getpid(), name, 1<<20); err == nil {
				t.Errorf("%s (%s): %d bytes were read", name, path, len(content))
			}
		}
	}
	if entries, err := ListDirectory(os.Getpid(), "/proc/self/fd"); err == nil {
		t.Errorf("%d descriptors of ours were listed", len(entries))
	}
}

func TestALinkToADescriptorIsNotFollowed(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("contents"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fmt.Sprint("/proc/self/fd/", file.Fd()), "/proc/self/root" + file.Name()} {
		if content, err := ReadFile(os.Getpid(), name, 1<<20); err == nil {
			t.Errorf("%s: %q was read", name, content)
		}
	}
}

// The owner of a file may hold a lease on it. Whoever opens it waits until the owner gives the
// lease up, or for /proc/sys/fs/lease-break-time.
func TestALeaseMakesNobodyWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leased")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skip("no leases in this file system: ", err)
	}
	if _, err := ReadFile(os.Getpid(), path, 1<<20); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("a file with a lease: %v, not %v", err, unix.EAGAIN)
	}
}

// An absolute link in a job's root leads to a file below that root, for libraries as for
// everything else: nothing is opened by its name below /proc/PID/root.
func TestOnlyOneFileResolvesPathsBelowAProcessesRoot(t *testing.T) {
	top := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(top, "go.mod")); err != nil {
		t.Fatal(err)
	}
	read := 0
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		read++
		if filepath.Base(path) == "look.go" && filepath.Base(filepath.Dir(path)) == "process" {
			return nil
		}
		for _, found := range namesRoot(t, path) {
			t.Errorf("%s: a path below a process's root or working directory is put together here: use process.ReadFile "+
				"or process.ListDirectory, which look before they open", found)
		}
		return nil
	})
	if err != nil || read < 100 {
		t.Fatalf("%d files were read: %v", read, err)
	}
	if len(namesRoot(t, "look.go")) == 0 {
		t.Error("the search does not find the one file that does it")
	}
}

// namesRoot finds the calls that make a path below /proc/PID/root, or below the other links
// that lead to what a process names.
func namesRoot(t *testing.T, path string) (found []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		for _, argument := range call.Args {
			ast.Inspect(argument, func(n ast.Node) bool {
				literal, ok := n.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				switch text := strings.Trim(literal.Value, "`\""); {
				case text == "root", text == "cwd", strings.HasSuffix(text, "/root"), strings.Contains(text, "/root/"),
					strings.HasSuffix(text, "/cwd"), strings.Contains(text, "/cwd/"):
					found = append(found, set.Position(literal.Pos()).String())
				}
				return true
			})
		}
		return true
	})
	return found
}
