package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFilesOfFileSystemsThatRootMountedMayHaveProbes(t *testing.T) {
	j := start(t, systemPython(t), "-c", "import sys; print(flush=True); sys.stdin.read()")
	j.line(t)
	_, libraries := mustOpen(t, j.Process.Pid)
	l := named(t, libraries, "libc")
	if err := checkMount(t, l); err != nil {
		t.Errorf("%s: %v", l.Path, err)
	}
}

func checkMount(t *testing.T, l *Library) error {
	t.Helper()
	opened, err := l.OpenFile()
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	return opened.Unprobed
}

// An overlay that a user laid in a user namespace of its own is that user's, whatever is below
// it; the files of the machine that such a process maps are root's all the same, and so are
// those of an overlay that root laid.
func TestAnOverlayOfAUserNamespaceHasNoProbes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to look into another user's process")
	}
	found, _ := filepath.Glob("/lib/*-linux-gnu/libm.so.6")
	if len(found) == 0 {
		t.Skip("no libm where Debian has it")
	}
	for name, users := range map[string]bool{"a user's": true, "root's": false} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("/dev/shm", "mount")
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			script := fmt.Sprintf(`import ctypes, os, shutil, sys
libc = ctypes.CDLL(None, use_errno=True)
def must(done):
    if done != 0:
        print("cannot:", os.strerror(ctypes.get_errno()), flush=True)
        sys.exit()
d = %q
for name in "lower", "upper", "work", "merged":
    os.mkdir(d + "/" + name)
shutil.copy(%q, d + "/lower/liboverlaid.so")
must(libc.mount(b"none", b"/", None, 0x44000, None)) # private, with all below
options = "lowerdir=%%s/lower,upperdir=%%s/upper,workdir=%%s/work" %% (d, d, d)
must(libc.mount(b"overlay", (d + "/merged").encode(), b"overlay", 0, options.encode()))
ctypes.CDLL(d + "/merged/liboverlaid.so")
print("mapped", flush=True)
sys.stdin.read()`, dir, found[0])
			cmd := exec.Command(systemPython(t), "-c", script)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			if users {
				const nobody = 65534
				cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
				cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: nobody, Size: 1}}
				cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 0, Gid: 0, NoSetGroups: true} // of the namespace
				cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: nobody, Size: 1}}
			}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Skip("no user namespaces here: ", err)
			}
			t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
			if said, _ := bufio.NewReader(out).ReadString('\n'); said != "mapped\n" {
				t.Skipf("no overlays here: %s", said)
			}
			_, libraries := mustOpen(t, cmd.Process.Pid)
			err = checkMount(t, named(t, libraries, "liboverlaid"))
			var refused *MountError
			if errors.As(err, &refused) != users || err != nil && !users {
				t.Errorf("the overlay: %v", err)
			}
			if users && (refused.FileSystem != "overlay" || !strings.Contains(err.Error(), "--allow-user-mounts")) {
				t.Errorf("it says %v", err)
			}
			if err := checkMount(t, named(t, libraries, "libc")); err != nil {
				t.Errorf("the machine's own libc: %v", err)
			}
		})
	}
}

func TestFUSEIsKnownByItsTypeAndVirtiofsIsNot(t *testing.T) {
	for line, fuse := range map[string]bool{
		"36 35 0:44 / /mnt rw - fuse sshfs rw":                              true,
		"36 35 0:44 / /mnt rw shared:1 master:2 - fuse.squashfuse image rw": true,
		"36 35 8:3 / /mnt/a\\040-\\040b rw,noatime - fuseblk /dev/sda3 rw":  true,
		"36 35 0:44 / / rw - virtiofs root rw":                              false,
		"36 35 0:44 / / rw - ext4 /dev/fuse rw":                             false,
	} {
		m, ok := parseMountLine([]byte(line))
		if !ok || m.id != 36 || m.isFUSE() != fuse {
			t.Errorf("%q: %+v", line, m)
		}
	}
}

// A file whose mount is gone may be anybody's.
func TestAFileOfNoMountHasNoProbes(t *testing.T) {
	fd, err := unix.MemfdCreate("code", unix.MFD_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	file := os.NewFile(uintptr(fd), "code")
	defer file.Close()
	l := &Library{Path: "/memfd:code", process: &Process{PID: os.Getpid()}}
	var refused *MountError
	if err := l.checkMount(int(file.Fd())); !errors.As(err, &refused) {
		t.Errorf("a file in memory without a mount: %v", err)
	}
}
