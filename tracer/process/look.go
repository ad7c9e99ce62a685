package process

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Everything that a job can name may lead to a device, a FIFO or a terminal, and opening one
// of those has an effect: a watchdog starts, a tape rewinds, a terminal becomes ours. So each
// of its paths is resolved with O_PATH, which opens nothing, then checked, and only then
// opened, through the descriptor that was checked. This file is the only one that resolves
// a path below /proc/PID/root.

// A place is what a path led to: found with O_PATH, not opened.
type place struct {
	fd   int
	path string // for errors
	stat unix.Stat_t
}

// lookIn resolves a path in a process's mount namespace. Symbolic links are followed there
// and not in ours, and links to descriptors (/proc/PID/fd/N) not at all. There is no other way
// to do it: without openat2 nothing of the process is opened.
func (f FS) lookIn(pid int, path string) (place, error) {
	if path == "" {
		return place{}, &fs.PathError{Op: "open", Path: path, Err: unix.ENOENT}
	}
	root, err := unix.Open(f.pidPath(pid, "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return place{}, &fs.PathError{Op: "open", Path: f.pidPath(pid, "root"), Err: err}
	}
	defer unix.Close(root)
	below := strings.TrimLeft(filepath.Clean(path), "/")
	if below == "" {
		below = "."
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	found, err := placeAt(root, below, how)
	if err == nil && found.kind() == unix.S_IFLNK {
		found.close()
		how.Flags &^= unix.O_NOFOLLOW // what the link leads to, in the process's root again, is looked at too
		found, err = placeAt(root, below, how)
	}
	found.path = path
	if err != nil {
		return place{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return found, nil
}

// lookAtLink resolves one of the kernel's links to a file (/proc/PID/exe, /proc/PID/map_files):
// it leads to the file itself, and no name is looked up.
func lookAtLink(link string) (place, error) {
	found, err := placeAt(unix.AT_FDCWD, link, unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC})
	found.path = link
	if err != nil {
		return place{}, &fs.PathError{Op: "open", Path: link, Err: err}
	}
	return found, nil
}

func placeAt(directory int, name string, how unix.OpenHow) (place, error) {
	var (
		fd  int
		err error
	)
	if how.Resolve == 0 {
		fd, err = unix.Openat(directory, name, int(how.Flags), 0)
	} else {
		fd, err = unix.Openat2(directory, name, &how)
	}
	if err != nil {
		return place{}, err
	}
	p := place{fd: fd}
	if err := unix.Fstat(fd, &p.stat); err != nil {
		p.close()
		return place{}, err
	}
	return p, nil
}

func (p *place) close() { unix.Close(p.fd) }

func (p *place) kind() uint32 { return p.stat.Mode & unix.S_IFMT }

// open opens what was looked at, if it is of the kind (S_IFREG or S_IFDIR) and lies in a
// file system that stores files. O_NONBLOCK: the owner of a file may hold a lease on it, which
// makes an open wait for 45 s. O_NOCTTY: nothing here becomes our terminal.
func (p *place) open(kind uint32) (*os.File, error) {
	if p.kind() != kind {
		return nil, &fs.PathError{Op: "open", Path: p.path, Err: errOdd}
	}
	var system unix.Statfs_t
	if err := unix.Fstatfs(p.fd, &system); err != nil {
		return nil, &fs.PathError{Op: "open", Path: p.path, Err: err}
	}
	if storesNoFiles[int64(system.Type)] {
		return nil, &fs.PathError{Op: "open", Path: p.path, Err: errOdd}
	}
	flags := unix.O_RDONLY | unix.O_NOCTTY | unix.O_NONBLOCK | unix.O_CLOEXEC
	if kind == unix.S_IFDIR {
		flags |= unix.O_DIRECTORY
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", p.fd), flags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: p.path, Err: err}
	}
	return os.NewFile(uintptr(fd), p.path), nil
}

// storesNoFiles are file systems that the kernel makes up, by their magic numbers (statfs(2),
// include/uapi/linux/magic.h): to read their regular files may take messages from others
// (/proc/kmsg, trace_pipe), wait, or show what we ourselves are (/proc/self).
var storesNoFiles = map[int64]bool{
	unix.PROC_SUPER_MAGIC: true, unix.SYSFS_MAGIC: true, unix.DEBUGFS_MAGIC: true, unix.TRACEFS_MAGIC: true,
	unix.SECURITYFS_MAGIC: true, unix.CGROUP_SUPER_MAGIC: true, unix.CGROUP2_SUPER_MAGIC: true, unix.BPF_FS_MAGIC: true,
	unix.DEVPTS_SUPER_MAGIC: true, unix.PSTOREFS_MAGIC: true, unix.EFIVARFS_MAGIC: true, unix.NSFS_MAGIC: true,
	unix.AUTOFS_SUPER_MAGIC: true, unix.BINFMTFS_MAGIC: true, unix.SELINUX_MAGIC: true, unix.SMACK_MAGIC: true,
	unix.RDTGROUP_SUPER_MAGIC: true, unix.DAXFS_MAGIC: true,
	0x62656570: true, // configfs (fs/configfs/mount.c)
	0x65735543: true, // the control file system of FUSE (fs/fuse/control.c)
	0x19800202: true, // POSIX message queues (ipc/mqueue.c)
}

var errOdd = fmt.Errorf("no regular file, or a larger one than is read: %w", fs.ErrInvalid)

// openIn looks at what a process names, and opens it if it is of the kind.
func (f FS) openIn(pid int, path string, kind uint32) (*os.File, error) {
	p, err := f.lookIn(pid, path)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.open(kind)
}

// lookBelow resolves the name of something in a directory that was looked at; a link is not followed.
func (p *place) lookBelow(name string) (place, error) {
	found, err := placeAt(p.fd, name, unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC})
	found.path = filepath.Join(p.path, name)
	if err != nil {
		return place{}, &fs.PathError{Op: "open", Path: found.path, Err: err}
	}
	return found, nil
}

// openExe opens the program that a process runs.
func (p *Process) openExe() (*os.File, error) {
	found, err := lookAtLink(p.path("exe"))
	if err != nil {
		return nil, err
	}
	defer found.close()
	return found.open(unix.S_IFREG)
}
