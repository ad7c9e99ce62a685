package process

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// UnknownUser is the user of a process that is gone.
const UnknownUser = ^uint32(0)

// User is to whom a process is charged: its real user, in the tracer's user namespace; in a
// user namespace, whose processes may be of 65,536 users, whoever made that (bpf/shares.h);
// UnknownUser once it has ended. Its status says who it is, not the owner of /proc/PID: that
// is root where a process has asked not to be looked into (prctl(2), PR_SET_DUMPABLE),
// as any may, or cannot be, since its user may run its program but not read it.
func User(pid int) uint32 {
	status, err := procfile.Read(FS{}.pidPath(pid, "status"), 0)
	if err != nil {
		return UnknownUser
	}
	if owner, contained := container(pid); contained {
		return owner
	}
	return parseUser(status)
}

// container is who made the outermost user namespace that a process is in, below the first. Of
// one that root made for others it is the user that the container's own root is outside.
func container(pid int) (user uint32, contained bool) {
	fd, err := unix.Open(FS{}.pidPath(pid, "ns", "user"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil || isFirst(fd) {
		return 0, false
	}
	defer func() { unix.Close(fd) }()
	nested := false
	for range mostNamespaces {
		parent, err := unix.IoctlRetInt(fd, unix.NS_GET_PARENT)
		if err != nil {
			return 0, false
		}
		if isFirst(parent) {
			break
		}
		unix.Close(fd)
		fd, nested = parent, true
	}
	owner, err := unix.IoctlGetUint32(fd, unix.NS_GET_OWNER_UID)
	if err != nil || owner != 0 {
		return owner, err == nil
	}
	if nested { // its own map is that of a namespace which a user of the container has made
		if pid = ancestorIn(fd, pid); pid == 0 {
			return owner, true
		}
	}
	text, err := procfile.Read(FS{}.pidPath(pid, "uid_map"), 4096)
	if err != nil {
		return 0, false
	}
	return parseFirstUser(text)
}

// ancestorIn is the nearest ancestor of a process in a user namespace, 0 if there is none: a namespace's map is
// shown for its processes alone.
func ancestorIn(namespace, pid int) int {
	var want, is unix.Stat_t
	if unix.Fstat(namespace, &want) != nil {
		return 0
	}
	for range mostAncestors {
		parent, ok := Parent(pid)
		if !ok || parent == 0 || unix.Stat(FS{}.pidPath(parent, "ns", "user"), &is) != nil {
			return 0
		}
		if pid = parent; is.Ino == want.Ino {
			return pid
		}
	}
	return 0
}

// mostNamespaces is how deep user namespaces may be nested.
const mostNamespaces = 33

// isFirst reports whether a descriptor is the first user namespace's. It is closed then.
func isFirst(fd int) bool {
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) != nil || stat.Ino != firstUserNamespace {
		return false
	}
	unix.Close(fd)
	return true
}

// parseFirstUser reads the second field of "0 100000 65536".
func parseFirstUser(uidMap []byte) (user uint32, mapped bool) {
	fields := bytes.Fields(uidMap)
	if len(fields) < 3 {
		return 0, false
	}
	id, err := strconv.ParseUint(string(fields[1]), 10, 32)
	return uint32(id), err == nil
}

// parseUser reads the first field of "Uid: 1000 1000 1000 1000".
func parseUser(status []byte) uint32 {
	for line := range bytes.Lines(status) {
		value, ok := bytes.CutPrefix(line, []byte("Uid:"))
		if !ok {
			continue
		}
		if fields := bytes.Fields(value); len(fields) > 0 {
			if id, err := strconv.ParseUint(string(fields[0]), 10, 32); err == nil {
				return uint32(id)
			}
		}
		break
	}
	return UnknownUser
}
