package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// The kernel reads the page of a probe's site from its file while it keeps every fork of the
// machine waiting (uprobe_register, dup_mmap_sem). Whoever serves the file decides how long that
// takes. So probes go only into files of file systems that root alone can mount.

// MountError says why no probe goes into a file: a user without privileges may serve it.
type MountError struct {
	Path       string
	FileSystem string // "" where the mount is not known
	why        string
}

func (e *MountError) Error() string {
	on := "a file system"
	if e.FileSystem != "" {
		on = "a file system of the type " + e.FileSystem
	}
	return fmt.Sprintf("%s has no probes, since it is on %s that %s: such a user could stop all forks of this machine; "+
		"where every user is trusted not to, --allow-user-mounts (the agent's allow_user_mounts) puts them in", e.Path, on, e.why)
}

const (
	whyFUSE     = "a user's own program may serve"
	whyMount    = "a user may have mounted in a user namespace"
	whyDetached = "no mount of the process leads to any more, so that it is not known who mounted it"
)

// inMemory are the file systems that nobody serves: their pages are there, or are zero. Any
// user may mount them, and nobody waits for it.
var inMemory = map[string]bool{"tmpfs": true, "ramfs": true, "devtmpfs": true}

// checkMount returns a *MountError for a file of the library's, open, that a user without
// privileges may serve. Anything but FUSE takes a capability in the first user namespace to
// mount, or is mounted in a mount namespace that another user namespace owns: the file's mount
// has to be in one that the first owns, or its device in process 1's or ours. The file itself is not
// asked (statfs): its server would decide when the answer comes.
func (l *Library) checkMount(fd int) error {
	refuse := func(fileSystem, why string) error { return &MountError{l.Path, fileSystem, why} }
	id, err := mountID(fd)
	if err != nil {
		return fmt.Errorf("finding the mount of %s: %w", l.Path, err)
	}
	p := l.process
	m, ok := findMount(p.path("mountinfo"), func(m mountLine) bool { return m.id == id })
	switch {
	case !ok:
		return refuse("", whyDetached)
	case inMemory[m.fileSystem]:
		return nil
	case m.isFUSE():
		return refuse(m.fileSystem, whyFUSE)
	case firstUserOwns(p.path("ns", "mnt")):
		return nil
	}
	// Process 1 may not be ours to look into; what we see ourselves was mounted by root as well.
	for _, pid := range []int{1, os.Getpid()} {
		if !firstUserOwns(p.fs.pidPath(pid, "ns", "mnt")) {
			continue
		}
		root, ok := findMount(p.fs.pidPath(pid, "mountinfo"), func(of mountLine) bool { return of.device == m.device })
		if ok && !root.isFUSE() {
			return nil
		}
	}
	return refuse(m.fileSystem, whyMount)
}

// mountLine is what a line of mountinfo says, all of it by the kernel.
type mountLine struct {
	id         uint64
	device     string // major:minor of the file system
	fileSystem string // "ext4", "fuse.squashfuse"
}

// isFUSE reports a file system that a program serves. virtiofs, which is no user's to mount, has
// another name.
func (m mountLine) isFUSE() bool {
	kind, _, _ := strings.Cut(m.fileSystem, ".") // behind the point is what its server calls itself
	return kind == "fuse" || kind == "fuseblk"
}

// maxMountInfo bounds what is read of a mountinfo: some 100,000 mounts, which is as many as a
// namespace may have.
const maxMountInfo = 16 << 20

func findMount(path string, is func(mountLine) bool) (mountLine, bool) {
	text, err := procfile.Read(path, maxMountInfo)
	if err != nil {
		return mountLine{}, false
	}
	for line := range bytes.Lines(text) {
		if m, ok := parseMountLine(line); ok && is(m) {
			return m, true
		}
	}
	return mountLine{}, false
}

// parseMountLine reads number, device and type of a line of mountinfo (proc_pid_mountinfo(5)).
// Blanks in names are escaped there, so that a name adds no field.
func parseMountLine(line []byte) (mountLine, bool) {
	before, after, ok := bytes.Cut(line, []byte(" - "))
	fields, behind := bytes.Fields(before), bytes.Fields(after)
	if !ok || len(fields) < 6 || len(behind) < 1 {
		return mountLine{}, false
	}
	id, err := strconv.ParseUint(string(fields[0]), 10, 64)
	return mountLine{id, string(fields[2]), string(behind[0])}, err == nil
}

// mountID is the number of the mount through which a file was opened, by fdinfo: statx gives it
// since 5.8 only.
func mountID(fd int) (uint64, error) {
	text, err := procfile.Read(fmt.Sprintf("/proc/self/fdinfo/%d", fd), 4096)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte("mnt_id:")); ok {
			return strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 64)
		}
	}
	return 0, fmt.Errorf("fdinfo names no mount")
}

// firstUserNamespace is the inode of the first user namespace: PROC_USER_INIT_INO of
// include/linux/proc_ns.h.
const firstUserNamespace = 0xEFFFFFFD

// firstUserOwns reports whether the first user namespace owns a namespace: to mount anything in
// it takes a capability there. The error of who may not see the owner is a no.
func firstUserOwns(namespace string) bool {
	fd, err := unix.Open(namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	owner, err := unix.IoctlRetInt(fd, unix.NS_GET_USERNS)
	if err != nil {
		return false
	}
	defer unix.Close(owner)
	var stat unix.Stat_t
	return unix.Fstat(owner, &stat) == nil && stat.Ino == firstUserNamespace
}
