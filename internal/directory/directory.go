// Package directory works below directories that other users may have a hand in:
// each is held open, and what is in it is opened, made, renamed and removed by its
// name in there, never by a path, and never through a symbolic link. So a user who
// owns the directory above can take ours away, but not lead a process of root's to
// a file of another user.
package directory

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNotOurs is wrapped by the error for a directory that another user can change.
var ErrNotOurs = errors.New("not ours alone")

// Directory is a directory that is held open.
type Directory struct {
	file   *os.File
	access Access
	made   []made // what Make made on the way, the innermost last
}

// Path is where the directory was when it was opened, for messages.
func (d *Directory) Path() string { return d.file.Name() }

// With is the same directory, whose new files and directories get another access.
func (d *Directory) With(a Access) *Directory {
	d.access = a
	return d
}

// Close closes it, and what is held to undo its making.
func (d *Directory) Close() error {
	d.forgetMade()
	return d.file.Close()
}

// Sync puts renamed and removed names on disk.
func (d *Directory) Sync() error { return d.file.Sync() }

// Names are those of what is in it.
func (d *Directory) Names() ([]string, error) {
	if _, err := d.file.Seek(0, 0); err != nil {
		return nil, err
	}
	return d.file.Readdirnames(-1)
}

// Info is Stat of something in it that is no link.
func (d *Directory) Info(name string) (fs.FileInfo, error) {
	f, err := d.openAt(name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// Open opens a regular file for reading; what is something else is an error, and is
// not waited for.
func (d *Directory) Open(name string) (*os.File, error) {
	f, err := d.openAt(name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = d.failed("open", name, errors.New("not a regular file"))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Create makes a new file, for writing and reading. What has its name already, left
// by a process that was killed or put there by somebody, goes, and is not opened.
func (d *Directory) Create(name string) (*os.File, error) {
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL
	f, err := d.openAt(name, flags)
	if errors.Is(err, fs.ErrExist) && d.Remove(name) == nil {
		f, err = d.openAt(name, flags)
	}
	if err != nil {
		return nil, err
	}
	if err := d.access.give(int(f.Fd()), d.access.Mode); err != nil {
		return nil, errors.Join(d.failed("create", name, err), f.Close(), d.Remove(name))
	}
	return f, nil
}

// Write puts a whole file in the place of what has its name: readers find the old
// contents or the new. The name that it has meanwhile begins with temporary.
func (d *Directory) Write(name, temporary string, contents []byte) error {
	var random [8]byte
	rand.Read(random[:])
	temporary += hex.EncodeToString(random[:])
	f, err := d.Create(temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(contents)
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, d.Remove(temporary))
	}
	return nil
}

// Directory opens a directory in this one; it is made where there is none. One that
// is there must be of the same owner as this one's new ones are.
func (d *Directory) Directory(name string) (*Directory, error) {
	err := unix.Mkdirat(d.fd(), name, uint32(0o700))
	if err != nil && err != unix.EEXIST {
		return nil, d.failed("mkdir", name, err)
	}
	isNew := err == nil
	f, err := d.openAt(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	sub := &Directory{file: f, access: d.access}
	if isNew {
		err = sub.adopt()
	} else {
		err = sub.checkOwner()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return sub, nil
}

// Subdirectory opens a directory in this one.
func (d *Directory) Subdirectory(name string) (*Directory, error) {
	f, err := d.openAt(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &Directory{file: f, access: d.access}, nil
}

// Rename renames something in it, replacing what has the new name.
func (d *Directory) Rename(from, to string) error {
	if err := errors.Join(checkName(from), checkName(to)); err != nil {
		return err
	}
	if err := unix.Renameat(d.fd(), from, d.fd(), to); err != nil {
		return d.failed("rename", from, err)
	}
	return nil
}

// Remove removes a file, a link or an empty directory.
func (d *Directory) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	err := unix.Unlinkat(d.fd(), name, 0)
	if err == unix.EISDIR || err == unix.EPERM { // of a directory Linux says the first, others the second
		if second := unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR); second != unix.ENOTDIR {
			err = second
		}
	}
	if err != nil {
		return d.failed("remove", name, err)
	}
	return nil
}

func (d *Directory) fd() int { return int(d.file.Fd()) }

// openAt never follows a link.
func (d *Directory) openAt(name string, flags int) (*os.File, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	var fd int
	err := ignoringEINTR(func() (err error) {
		fd, err = unix.Openat(d.fd(), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return nil, d.failed("open", name, err)
	}
	return os.NewFile(uintptr(fd), d.join(name)), nil
}

func ignoringEINTR(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func (d *Directory) join(name string) string { return strings.TrimSuffix(d.Path(), "/") + "/" + name }

func (d *Directory) failed(operation, name string, err error) error {
	return &fs.PathError{Op: operation, Path: d.join(name), Err: err}
}

// checkName: a name is no path.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q cannot be the name of a file", name)
	}
	return nil
}
