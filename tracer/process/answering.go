package process

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
	"github.com/ebpfprof/ebpfprof/tracer/reader"
)

// What a reader does for those who ask (asking.go). All of this may wait for ever.

// Operations, by their places in the list of init.
const (
	askText = iota
	askMemory
	askPiece
	askDigest
	askContent
	askEntries
	askNames
	askShares
	askFile
	askLocks
)

func init() {
	reader.Serve(answerText, answerMemory, answerPiece, answerDigest, answerContent, answerEntries, answerNames, answerShares, answerFile,
		answerLocks)
}

func readText(path string, limit int) ([]byte, bool, error) { return procfile.ReadLasting(path, limit) }

// answerText reads a file of proc; the last byte says whether it lasted.
func answerText(r *reader.Request) reader.Reply {
	if len(r.Text) < 8 {
		return reader.Reply{Err: syscall.EINVAL}
	}
	path := string(r.Text[8:])
	switch name := filepath.Base(path); name {
	case "cmdline", "environ":
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && !argumentsReadable(pid, name) {
			return reader.Reply{Text: []byte{0}}
		}
	}
	content, lasted, err := readText(path, int(binary.NativeEndian.Uint64(r.Text)))
	last := byte(0)
	if lasted {
		last = 1
	}
	return reader.Reply{Text: append(content, last), Err: err}
}

func answerMemory(r *reader.Request) reader.Reply {
	fd, err := unix.Open(string(r.Text), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return reader.Reply{Err: err}
	}
	if directory, name := filepath.Split(string(r.Text)); name == "mem" {
		pages, err := unix.Open(directory+"pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			unix.Close(fd)
			return reader.Reply{Err: err}
		}
		return reader.Reply{Files: []int{fd, pages}}
	}
	return reader.Reply{Files: []int{fd}}
}

// answerPiece reads of a file, or of memory with its pages.
func answerPiece(r *reader.Request) reader.Reply {
	if len(r.Text) != 24 || len(r.Files) == 0 {
		return reader.Reply{Err: syscall.EINVAL}
	}
	at, length, pid := binary.NativeEndian.Uint64(r.Text), binary.NativeEndian.Uint64(r.Text[8:]), int(binary.NativeEndian.Uint64(r.Text[16:]))
	if length > longestRead || at+length < at {
		return reader.Reply{Err: syscall.EINVAL}
	}
	fd := r.Files[0]
	if len(r.Files) > 1 {
		there, absent := readable(pid, r.Files[1], at, length)
		if absent && there == 0 {
			return reader.Reply{Err: errAbsent}
		}
		length = there
	} else if placed, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err == nil && placed&unix.O_PATH != 0 {
		file, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return reader.Reply{Err: err}
		}
		defer unix.Close(file)
		fd = file
	}
	piece := make([]byte, length)
	n, err := readWhole(fd, piece, int64(at))
	return reader.Reply{Text: piece[:n], Err: err}
}

// readWhole reads until the end of what is there.
func readWhole(fd int, b []byte, at int64) (n int, err error) {
	for n < len(b) {
		got, err := unix.Pread(fd, b[n:], at+int64(n))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return n, err
		case got == 0:
			return n, nil
		}
		n += got
	}
	return n, nil
}

func answerDigest(r *reader.Request) reader.Reply {
	digest, ok := queryDigest(string(r.Text))
	if !ok {
		return reader.Reply{Err: syscall.ENOTTY}
	}
	return reader.Reply{Text: binary.NativeEndian.AppendUint64(nil, digest)}
}

func answerContent(r *reader.Request) reader.Reply {
	var of pathOf
	if err := json.Unmarshal(r.Text, &of); err != nil {
		return reader.Reply{Err: syscall.EINVAL}
	}
	content, err := FS{}.readFile(of.PID, of.Path, of.Limit)
	return reader.Reply{Text: content, Err: numbered(err)}
}

// numbered makes errOdd an error that can be sent.
func numbered(err error) error {
	if errors.Is(err, errOdd) {
		return syscall.EINVAL
	}
	return err
}

func answerEntries(r *reader.Request) reader.Reply {
	var of pathOf
	if err := json.Unmarshal(r.Text, &of); err != nil {
		return reader.Reply{Err: syscall.EINVAL}
	}
	entries, err := listDirectory(of.PID, of.Path)
	return replied(entries, err)
}

// answerNames lists names of a directory that a framework's version is read of.
func answerNames(r *reader.Request) reader.Reply {
	var of pathOf
	if err := json.Unmarshal(r.Text, &of); err != nil {
		return reader.Reply{Err: syscall.EINVAL}
	}
	return replied(FS{}.versionNames(of.PID, of.Path, int(of.Limit)), nil)
}

func answerShares(r *reader.Request) reader.Reply {
	var of pathOf
	if err := json.Unmarshal(r.Text, &of); err != nil {
		return reader.Reply{Err: syscall.EINVAL}
	}
	return replied(sharesFiles(of.PID), nil)
}

func replied(found any, err error) reader.Reply {
	if err != nil {
		return reader.Reply{Err: numbered(err)}
	}
	text, err := json.Marshal(found)
	return reader.Reply{Text: text, Err: err}
}
