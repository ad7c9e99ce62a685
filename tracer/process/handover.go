package process

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// A Handover is a directory that we make for a process in its own file system, so that it hands a file over to us. It
// belongs to the process's user, who may put anything into it: each name is looked at before it is opened.
type Handover struct {
	above, dir place
	name, path string
	uid, gid   uint32
}

// handoverPlaces are where a process can be expected to write.
var handoverPlaces = []string{"/tmp", "/var/tmp", "/dev/shm"}

var (
	// ErrHandover is wrapped by the error for what is handed over and is not what was asked for.
	ErrHandover = errors.New("not handed over as asked")
	// ErrTooLarge is wrapped by the error for a file that is larger than what is read.
	ErrTooLarge = errors.New("too large")
)

// NewHandover makes the directory. It can wait for the process's file system: call it where nobody waits for you.
func (p *Process) NewHandover() (*Handover, error) {
	uid, gid, err := p.effectiveUser()
	if err != nil {
		return nil, err
	}
	var failed error
	for _, above := range handoverPlaces {
		h, err := p.handoverIn(above, uid, gid)
		if err == nil {
			return h, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("making a directory for pid %d: %w", p.PID, failed)
}

func (p *Process) handoverIn(path string, uid, gid uint32) (*Handover, error) {
	above, err := p.fs.lookIn(p.through(), path)
	if err != nil {
		return nil, err
	}
	if above.kind() != unix.S_IFDIR {
		above.close()
		return nil, &fs.PathError{Op: "mkdir", Path: path, Err: unix.ENOTDIR}
	}
	h := &Handover{above: above, name: "ebpfprof-trace-" + rand.Text(), uid: uid, gid: gid}
	h.path = filepath.Join(path, h.name)
	if err := unix.Mkdirat(above.fd, h.name, 0o700); err != nil {
		above.close()
		return nil, &fs.PathError{Op: "mkdir", Path: h.path, Err: err}
	}
	if err := h.adopt(); err != nil {
		return nil, errors.Join(err, h.Remove())
	}
	return h, nil
}

// adopt gives the directory to the process's user, if it is still the one that was made: who owns the directory above
// can put another in its place.
func (h *Handover) adopt() (err error) {
	if h.dir, err = h.above.lookBelow(h.name); err != nil {
		return err
	}
	h.dir.path = h.path
	stat := &h.dir.stat
	if h.dir.kind() != unix.S_IFDIR || stat.Uid != uint32(os.Geteuid()) || stat.Mode&0o7777 != 0o700 || stat.Dev != h.above.stat.Dev {
		return &fs.PathError{Op: "mkdir", Path: h.path, Err: ErrHandover}
	}
	if err := unix.Fchownat(h.dir.fd, "", int(h.uid), int(h.gid), unix.AT_EMPTY_PATH); err != nil {
		return &fs.PathError{Op: "chown", Path: h.path, Err: err}
	}
	return nil
}

// Path is the directory as the process sees it.
func (h *Handover) Path() string { return h.path }

// Size is how large a file in the directory is by now; fs.ErrNotExist where there is none, ErrHandover where it is no
// regular file of the process's user.
func (h *Handover) Size(name string) (int64, error) {
	found, err := h.look(name)
	if err != nil {
		return 0, err
	}
	defer found.close()
	return found.stat.Size, nil
}

func (h *Handover) look(name string) (place, error) {
	found, err := h.dir.lookBelow(name)
	if err != nil {
		return place{}, err
	}
	odd := ""
	switch {
	case found.kind() == unix.S_IFLNK:
		odd = "it is a symbolic link"
	case found.kind() != unix.S_IFREG:
		odd = "it is not a regular file"
	case found.stat.Uid != h.uid:
		odd = "it belongs to another user"
	case found.stat.Nlink != 1:
		odd = "it has another name elsewhere"
	}
	if odd != "" {
		found.close()
		return place{}, fmt.Errorf("%s: %w: %s", found.path, ErrHandover, odd)
	}
	return found, nil
}

// Open opens a file in the directory for reading. One of more than limit bytes is not opened (ErrTooLarge); it may grow
// afterwards.
func (h *Handover) Open(name string, limit int64) (*os.File, error) {
	found, err := h.look(name)
	if err != nil {
		return nil, err
	}
	defer found.close()
	if found.stat.Size > limit {
		return nil, fmt.Errorf("%s: %w: it has %d bytes, and %d are read", found.path, ErrTooLarge, found.stat.Size, limit)
	}
	return found.open(unix.S_IFREG)
}

// Remove removes the named files and the directory. What else the process put into it stays, and so does the directory
// then: the error says so.
func (h *Handover) Remove(names ...string) error {
	for _, name := range names {
		err := unix.Unlinkat(h.dir.fd, name, 0)
		if errors.Is(err, unix.EISDIR) {
			err = unix.Unlinkat(h.dir.fd, name, unix.AT_REMOVEDIR)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(&fs.PathError{Op: "remove", Path: filepath.Join(h.path, name), Err: err}, h.close())
		}
	}
	if err := unix.Unlinkat(h.above.fd, h.name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(&fs.PathError{Op: "remove", Path: h.path, Err: err}, h.close())
	}
	return h.close()
}

func (h *Handover) close() error {
	h.above.close()
	if h.dir.fd > 0 {
		h.dir.close()
	}
	return nil
}

// effectiveUser is who the process makes files as, in the tracer's user namespace.
func (p *Process) effectiveUser() (uid, gid uint32, err error) {
	status, err := procfile.Read(p.path("status"), 0)
	if err != nil {
		return 0, 0, vanished(p.PID, "reading its user", err)
	}
	uid, knowsUser := secondNumber(status, "Uid:")
	gid, knowsGroup := secondNumber(status, "Gid:")
	if !knowsUser || !knowsGroup {
		return 0, 0, &Error{PID: p.PID, Reason: ErrExited}
	}
	return uid, gid, nil
}

// secondNumber is the effective one of "Uid: real effective saved filesystem".
func secondNumber(status []byte, name string) (uint32, bool) {
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte(name)); ok {
			if fields := bytes.Fields(value); len(fields) > 1 {
				n, err := strconv.ParseUint(string(fields[1]), 10, 32)
				return uint32(n), err == nil
			}
		}
	}
	return 0, false
}
