package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// archive is an initramfs in the making: cpio's "newc" format, which the kernel
// unpacks (Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	to      io.Writer
	written int64
	inode   int
	made    map[string]bool
	err     error
}

const (
	modeDirectory = 0o040000
	modeFile      = 0o100000
	modeLink      = 0o120000
)

func newArchive(to io.Writer) *archive {
	return &archive{to: to, made: map[string]bool{"": true, ".": true}}
}

func (a *archive) write(b []byte) {
	if a.err == nil {
		_, a.err = a.to.Write(b)
		a.written += int64(len(b))
	}
}

func (a *archive) pad() { a.write(make([]byte, (4-a.written%4)%4)) }

// entry writes one member. Directories on the way to it are made.
func (a *archive) entry(name string, mode int, contents []byte) {
	name = merged(strings.TrimPrefix(path.Clean("/"+name), "/"))
	if mode&0o170000 == modeDirectory && a.made[name] {
		return
	}
	if parent := path.Dir(name); !a.made[parent] {
		a.entry(parent, modeDirectory|0o755, nil)
	}
	a.made[name] = true
	a.inode++
	a.write(fmt.Appendf(nil, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.inode, mode, 0, 0, 1, 0, len(contents), 0, 0, 0, 0, len(name)+1, 0))
	a.write(append([]byte(name), 0))
	a.pad()
	a.write(contents)
	a.pad()
}

// merged puts /bin, /sbin and /lib below /usr, as installed systems have them:
// Debian 12's packages still carry both.
func merged(name string) string {
	first, rest, below := strings.Cut(name, "/")
	if !below || !slices.Contains(linked, first) {
		return name
	}
	return "usr/" + first + "/" + rest
}

var linked = []string{"bin", "sbin", "lib", "lib64"}

// begin makes what every guest has. Tests that probe a shell want a dynamic one.
func (a *archive) begin(shell string) {
	for _, d := range []string{"proc", "sys", "dev", "tmp", "run", "root", "out", "etc", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64"} {
		a.entry(d, modeDirectory|0o755, nil)
	}
	for _, d := range linked {
		a.entry(d, modeLink|0o777, []byte("usr/"+d))
	}
	for _, tool := range strings.Fields(tools) {
		a.entry("usr/bin/"+tool, modeLink|0o777, []byte("busybox"))
	}
	a.entry("usr/bin/sh", modeLink|0o777, []byte(shell))
	a.entry("etc/passwd", modeFile|0o644, []byte("root:x:0:0:root:/root:/bin/sh\n"))
	a.entry("etc/group", modeFile|0o644, []byte("root:x:0:\n"))
}

const tools = `ash mount umount cat ls echo sleep date tar gzip base64 dmesg grep sed head tail cut tr wc ps kill env mkdir
	rm cp mv ln chmod awk seq test [ true false uname poweroff find sort uniq nproc timeout ip id stat readlink`

func (a *archive) end() error {
	a.inode = 0
	a.entry("TRAILER!!!", modeFile, nil)
	return a.err
}

// file adds a file of this machine.
func (a *archive) file(name, from string, mode int) {
	contents, err := os.ReadFile(from)
	if err != nil {
		a.err = errors.Join(a.err, err)
		return
	}
	a.entry(name, modeFile|mode, contents)
}

// tree adds a directory of this machine, its links followed no further than as links.
func (a *archive) tree(name, from string) {
	err := filepath.WalkDir(from, func(at string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		to := path.Join(name, filepath.ToSlash(below))
		switch {
		case d.IsDir():
			a.entry(to, modeDirectory|0o755, nil)
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(at)
			if err != nil {
				return err
			}
			a.entry(to, modeLink|0o777, []byte(target))
		case info.Mode().IsRegular():
			a.file(to, at, int(info.Mode().Perm()))
		}
		return a.err
	})
	a.err = errors.Join(a.err, err)
}

// debian adds what a package installs, but its documentation.
func (a *archive) debian(deb string) {
	a.err = errors.Join(a.err, eachFile(deb, func(h *tar.Header, r io.Reader) error {
		for _, unwanted := range []string{"./usr/share/doc", "./usr/share/man", "./usr/share/locale"} {
			if strings.HasPrefix(h.Name, unwanted) {
				return nil
			}
		}
		switch h.Typeflag {
		case tar.TypeDir:
			if name := strings.Trim(h.Name, "./"); !slices.Contains(linked, name) {
				a.entry(h.Name, modeDirectory|0o755, nil)
			}
		case tar.TypeSymlink:
			a.entry(h.Name, modeLink|0o777, []byte(h.Linkname))
		case tar.TypeReg:
			contents, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			a.entry(h.Name, modeFile|int(h.Mode)&0o777, contents)
		}
		return a.err
	}))
}

// eachFile reads a package's files in their order.
func eachFile(deb string, do func(*tar.Header, io.Reader) error) error {
	command := exec.Command("dpkg-deb", "--fsys-tarfile", deb)
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("unpacking %s: %w", deb, err)
	}
	for t := tar.NewReader(out); err == nil; {
		var h *tar.Header
		if h, err = t.Next(); err == nil {
			err = do(h, t)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	_, _ = io.Copy(io.Discard, out)
	return errors.Join(err, command.Wait())
}
