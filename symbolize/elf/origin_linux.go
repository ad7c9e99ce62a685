package elf

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// origin is what the kernel says of a mapped file.
type origin struct {
	stat       unix.Stat_t
	filesystem unix.Statfs_t
}

// settled is how old the last change of a root's file must be: times are only as
// exact as a tick, and what was changed twice in one looks unchanged.
const settled = 2 * time.Second

// rootFilesystems are those in which a file of root's was written by root: they answer for their
// files themselves, while a FUSE server says of an owner what it likes. A user may lay an overlay,
// or mount a tmpfs, in a user namespace, but make no file of root's there.
var rootFilesystems = map[int64]bool{
	unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true, unix.TMPFS_MAGIC: true,
	unix.OVERLAYFS_SUPER_MAGIC: true, unix.SQUASHFS_MAGIC: true, unix.F2FS_SUPER_MAGIC: true, unix.EROFS_SUPER_MAGIC_V1: true,
}

// rootOnly reports a file that nobody but root can write, and that has not been
// written for a while. An access list that lets others write shows in the bits of
// the group.
func (o *origin) rootOnly() bool {
	s := &o.stat
	return s.Uid == 0 && s.Mode&0o022 == 0 && rootFilesystems[int64(o.filesystem.Type)] &&
		time.Since(time.Unix(s.Ctim.Unix())) > settled
}

// identity is what no user can make another file have. Numbers of devices that
// are no disks are given out anew at each boot.
func (o *origin) identity() string {
	s := &o.stat
	boot := ""
	if unix.Major(s.Dev) == 0 {
		boot = bootID()
	}
	return fmt.Sprintf("file-%x-%x-%d-%d-%d-%d-%d-%v-%s", s.Dev, s.Ino, s.Size, s.Mtim.Sec, s.Mtim.Nsec, s.Ctim.Sec, s.Ctim.Nsec,
		o.filesystem.Fsid, boot)
}

func (o *origin) lastChange() (size uint64, at time.Time) {
	return uint64(o.stat.Size), time.Unix(o.stat.Ctim.Unix())
}

var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(id)
})

func originOf(fd int) (*origin, error) {
	o := &origin{}
	if err := unix.Fstat(fd, &o.stat); err != nil {
		return nil, err
	}
	if err := unix.Fstatfs(fd, &o.filesystem); err != nil {
		return nil, err
	}
	return o, nil
}

// takeLease asks for a notice of writers: refused while there is one (fcntl(2)).
func takeLease(file *os.File) error {
	_, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return err
}

// hasLease reports whether nobody wanted to write since.
func hasLease(file *os.File) bool {
	kind, err := unix.FcntlInt(file.Fd(), unix.F_GETLEASE, 0)
	return err == nil && kind == unix.F_RDLCK
}
