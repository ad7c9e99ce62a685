package directory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// Access is what new files and directories are made with, whatever the umask.
type Access struct {
	Mode     fs.FileMode // of files; who may read files may search directories
	UID, GID int         // whose they are; -1: as the kernel makes them
	// AnyOwner: where the file system does not let owners be changed, they stay as
	// they are.
	AnyOwner bool
}

// Private is for files that only this process's user reads.
var Private = Access{Mode: 0o600, UID: -1, GID: -1}

// Invoker is Private for the user that called sudo: without sudo, Private.
func Invoker() Access {
	a := Private
	if uid, gid, ok := sudoUser(); ok {
		a.UID, a.GID, a.AnyOwner = uid, gid, true
	}
	return a
}

// AccessOf is that of a file, for another one that takes its place; its owner only
// as far as this process may give files away.
func AccessOf(f *os.File) (Access, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return Access{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return Access{Mode: fs.FileMode(stat.Mode) & fs.ModePerm, UID: int(stat.Uid), GID: int(stat.Gid), AnyOwner: true}, nil
}

// sudoUser is the user behind sudo.
func sudoUser() (uid, gid int, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false // then the variables are not sudo's
	}
	uid, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	gid, err2 := strconv.Atoi(os.Getenv("SUDO_GID"))
	return uid, gid, err == nil && err2 == nil && uid >= 0 && gid >= 0
}

// directoryMode lets those search who may read.
func (a Access) directoryMode() fs.FileMode { return a.Mode | a.Mode&0o444>>2 }

// give sets owner, group and mode of something that was just made. A directory keeps
// the setgid bit that the one above handed on.
func (a Access) give(fd int, mode fs.FileMode) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if a.UID >= 0 || a.GID >= 0 {
		err := unix.Fchown(fd, a.UID, a.GID)
		if err != nil && !(a.AnyOwner && ownerless(err)) {
			return fmt.Errorf("giving it to %s: %w", userName(a.UID, a.GID), err)
		}
	}
	err := unix.Fchmod(fd, uint32(mode.Perm())|uint32(stat.Mode)&unix.S_ISGID)
	if err != nil && !ownerless(err) {
		return fmt.Errorf("setting its mode: %w", err)
	}
	return nil
}

// ownerless: FAT and its like have neither owners nor modes.
func ownerless(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS)
}

// trusted are the users who may have made what we work in: root, ourselves, and who
// called sudo.
func trusted(uid uint32) bool {
	if int(uid) == 0 || int(uid) == os.Geteuid() {
		return true
	}
	sudo, _, ok := sudoUser()
	return ok && int(uid) == sudo
}

// adopt takes possession of a directory that was just made: it must be the one that
// we made, ours and empty, and not one that somebody put in its place.
func (d *Directory) adopt() error {
	if err := d.checkNew(); err != nil {
		return err
	}
	if err := d.access.give(d.fd(), d.access.directoryMode()); err != nil {
		return &fs.PathError{Op: "mkdir", Path: d.Path(), Err: err}
	}
	return nil
}

func (d *Directory) checkNew() error {
	var stat unix.Stat_t
	if err := unix.Fstat(d.fd(), &stat); err != nil {
		return &fs.PathError{Op: "stat", Path: d.Path(), Err: err}
	}
	if int(stat.Uid) != os.Geteuid() {
		return d.notOurs(stat.Uid)
	}
	if names, err := d.Names(); err != nil || len(names) > 0 {
		return fmt.Errorf("%s is %w: it was made a moment ago, and is another one now", d.Path(), ErrNotOurs)
	}
	return nil
}

// checkOwner refuses a directory that a user whom we do not trust can change.
func (d *Directory) checkOwner() error {
	var stat unix.Stat_t
	if err := unix.Fstat(d.fd(), &stat); err != nil {
		return &fs.PathError{Op: "stat", Path: d.Path(), Err: err}
	}
	if !trusted(stat.Uid) {
		return d.notOurs(stat.Uid)
	}
	if stat.Mode&unix.S_IWOTH != 0 {
		return fmt.Errorf("%s is %w: every user may write into it; take that right away (chmod o-w) or choose another directory",
			d.Path(), ErrNotOurs)
	}
	return nil
}

func (d *Directory) notOurs(owner uint32) error {
	return fmt.Errorf("%s is %w: it belongs to %s; choose another directory", d.Path(), ErrNotOurs, userName(int(owner), -1))
}

// userName is for messages.
func userName(uid, gid int) string {
	if uid < 0 {
		if g, err := user.LookupGroupId(strconv.Itoa(gid)); err == nil {
			return "group " + g.Name
		}
		return fmt.Sprintf("group %d", gid)
	}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return "user " + u.Username
	}
	return fmt.Sprintf("user %d", uid)
}
