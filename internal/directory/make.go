package directory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Make opens a directory, and makes it and those above it where there are none. One
// that is there must belong to root, to us, or to the user that called sudo, and not
// be writable by all (ErrNotOurs). On the way a link is followed only if one of
// these users made it where nobody else can make one. What is made gets owner and
// mode of access; what is there keeps its own.
func Make(path string, access Access) (*Directory, error) { return open(path, access, true) }

// Open opens a directory that is there, whoever owns it, and follows links as Make does.
func Open(path string) (*Directory, error) { return open(path, Private, false) }

// MakeCache is Make for a directory that only this process's user can change: what
// is found there is believed.
func MakeCache(path string) (*Directory, error) { return openCache(path, true) }

// OpenCache is MakeCache for a directory that is there.
func OpenCache(path string) (*Directory, error) { return openCache(path, false) }

func openCache(path string, create bool) (*Directory, error) {
	d, err := open(path, Private, create)
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	err = unix.Fstat(d.fd(), &stat)
	if err == nil && (int(stat.Uid) != os.Geteuid() || stat.Mode&(unix.S_IWGRP|unix.S_IWOTH) != 0) {
		err = fmt.Errorf("%s is %w: others may write into it", path, ErrNotOurs)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// made is a directory that was made, by its name in the one above.
type made struct {
	parent *os.File
	name   string
}

func (m made) remove() { _ = unix.Unlinkat(int(m.parent.Fd()), m.name, unix.AT_REMOVEDIR) }

// Unmake removes the directories that Make made, as far as they are empty, the
// innermost first. The Directory is closed then.
func (d *Directory) Unmake() error {
	for i := len(d.made) - 1; i >= 0; i-- {
		d.made[i].remove()
	}
	return d.Close()
}

func (d *Directory) forgetMade() {
	for _, m := range d.made {
		m.parent.Close()
	}
	d.made = nil
}

// mostLinks is how many links a path may lead through, as in the kernel.
const mostLinks = 40

// walk goes down a path, a name at a time, from directory to directory.
type walk struct {
	at     int    // the directory that was reached; O_PATH where there is such a thing
	path   string // its path, for messages
	rest   []string
	links  int
	access Access
	make   bool
	made   []made
	isNew  bool // the directory that was reached was just made
}

func open(path string, access Access, create bool) (*Directory, error) {
	if path == "" {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	w := &walk{at: -1, access: access, make: create}
	d, err := w.run(path)
	if err != nil {
		for i := len(w.made) - 1; i >= 0; i-- {
			w.made[i].remove()
			w.made[i].parent.Close()
		}
	}
	if w.at >= 0 {
		unix.Close(w.at)
	}
	return d, err
}

func (w *walk) run(path string) (*Directory, error) {
	if err := w.start(path); err != nil {
		return nil, err
	}
	for len(w.rest) > 0 {
		name := w.rest[0]
		w.rest = w.rest[1:]
		if name == "" || name == "." {
			continue
		}
		if err := w.step(name); err != nil {
			return nil, err
		}
	}
	var fd int
	err := ignoringEINTR(func() (err error) {
		fd, err = unix.Openat(w.at, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	d := &Directory{file: os.NewFile(uintptr(fd), path), access: w.access}
	if err := w.check(d); err != nil {
		return nil, errors.Join(err, d.file.Close())
	}
	d.made = w.made
	return d, nil
}

func (w *walk) check(d *Directory) error {
	switch {
	case w.isNew:
		return d.adopt()
	case w.make:
		return d.checkOwner()
	}
	return nil
}

// start begins at the root or in the working directory.
func (w *walk) start(path string) error {
	from := "."
	if filepath.IsAbs(path) {
		from = "/"
	}
	if err := w.enter(unix.AT_FDCWD, from); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	w.path, w.isNew = strings.TrimSuffix(from, "/"), false
	w.rest = append(strings.Split(path, "/"), w.rest...)
	return nil
}

func (w *walk) enter(from int, name string) error {
	var fd int
	err := ignoringEINTR(func() (err error) {
		fd, err = unix.Openat(from, name, search|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return err
	}
	if w.at >= 0 {
		unix.Close(w.at)
	}
	w.at = fd
	return nil
}

// step goes into the next directory, or to where a link leads.
func (w *walk) step(name string) error {
	failed := func(operation string, err error) error {
		return &fs.PathError{Op: operation, Path: w.path + "/" + name, Err: err}
	}
	var stat unix.Stat_t
	err := unix.Fstatat(w.at, name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	isNew := false
	switch {
	case err == unix.ENOENT && w.make:
		if err := w.mkdir(name); err != nil {
			return failed("mkdir", err)
		}
		isNew = true
	case err != nil:
		return failed("open", err)
	case stat.Mode&unix.S_IFMT == unix.S_IFLNK:
		return w.follow(name, stat.Uid)
	}
	if err := w.enter(w.at, name); err != nil {
		return failed("open", err)
	}
	w.path, w.isNew = w.path+"/"+name, isNew
	return nil
}

// mkdir makes a directory. The last one of the path is made for us alone and gets
// its mode later; those on the way are everybody's to pass through, as mkdir -p
// makes them.
func (w *walk) mkdir(name string) error {
	last := true
	for _, more := range w.rest {
		last = last && (more == "" || more == ".")
	}
	mode := uint32(0o755)
	if last {
		mode = 0o700
	}
	if err := unix.Mkdirat(w.at, name, mode); err != nil {
		return err
	}
	parent, err := unix.FcntlInt(uintptr(w.at), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	w.made = append(w.made, made{os.NewFile(uintptr(parent), w.path), name})
	if !last && w.access.UID >= 0 {
		w.handOver(name)
	}
	return nil
}

// handOver gives a directory on the way to the user who will own the last one, if
// the one above is his: else it stays ours.
func (w *walk) handOver(name string) {
	var above unix.Stat_t
	if err := unix.Fstat(w.at, &above); err != nil || int(above.Uid) != w.access.UID {
		return
	}
	fd, err := unix.Openat(w.at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	d := &Directory{file: os.NewFile(uintptr(fd), w.path+"/"+name)}
	defer d.file.Close()
	if d.checkNew() == nil {
		_ = unix.Fchown(fd, w.access.UID, w.access.GID)
	}
}

// follow goes where a link leads, if nobody else can have made it.
func (w *walk) follow(name string, owner uint32) error {
	path := w.path + "/" + name
	var above unix.Stat_t
	if err := unix.Fstat(w.at, &above); err != nil {
		return &fs.PathError{Op: "stat", Path: w.path, Err: err}
	}
	othersWrite := above.Mode&unix.S_IWOTH != 0 && above.Mode&unix.S_ISVTX == 0
	if !trusted(owner) || !trusted(above.Uid) || othersWrite {
		return fmt.Errorf("%s is %w: it is a link that another user can have made; name the directory that it leads to",
			path, ErrNotOurs)
	}
	if w.links++; w.links > mostLinks {
		return &fs.PathError{Op: "open", Path: path, Err: unix.ELOOP}
	}
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(w.at, name, target)
	if err != nil {
		return &fs.PathError{Op: "readlink", Path: path, Err: err}
	}
	to := string(target[:n])
	if filepath.IsAbs(to) {
		return w.start(to)
	}
	w.rest = append(strings.Split(to, "/"), w.rest...)
	return nil
}
