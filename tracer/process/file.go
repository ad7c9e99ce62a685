package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// Opened is the file of a library, for reading and for probes. To read it, and to close it, waits
// for nobody: where a user may serve the file, Contents is a copy in memory of ours.
type Opened struct {
	Contents *os.File
	// Holes of the file, where Contents is the file itself.
	Holes []elf.Range
	Via   Via
	// Unprobed is why no probe may go into the file, nil if they may: a user may serve it (MountError).
	Unprobed error

	place *os.File // O_PATH, where Contents is a copy
	pid   int
}

// Path leads to the file itself, also where Contents is a copy, for as long as it is open.
func (o *Opened) Path() string {
	file := o.Contents
	if o.place != nil {
		file = o.place
	}
	return fmt.Sprintf("/proc/self/fd/%d", file.Fd())
}

// ReadAt reads the file as it is now. What others write into it may keep its lock (XFS): a reader
// waits for that.
func (o *Opened) ReadAt(b []byte, at int64) (int, error) {
	if o.place != nil {
		return readPiece(o.pid, o.place, nil, b, at)
	}
	if n, err := readNow(int(o.Contents.Fd()), b, at); err == nil && n == len(b) {
		return n, nil
	}
	return readPiece(o.pid, o.Contents, nil, b, at)
}

// Close closes it.
func (o *Opened) Close() {
	o.Contents.Close()
	if o.place != nil {
		o.place.Close()
	}
}

// fileRequest asks a reader for a file: that of a library, or the program of a process.
type fileRequest struct {
	PID     int
	Program bool
	Path    string
	Deleted bool
	Device  Device
	Inode   uint64
	Starts  [][2]uint64 // of its mappings, with their ends
	Known   bool        // a copy of it is there: the file is wanted, and not its contents
}

// fileReply goes with one descriptor, or two: the file, or a copy and the place of the file.
type fileReply struct {
	Via   Via
	Holes []elf.Range
	// Of a file that a user may serve.
	Copied          bool
	FileSystem, Why string
	Bytes           int64 // that its copy takes
	// Of a file that was not found or could not be opened: errors of the first name that was tried and
	// of the last.
	First, Last syscall.Errno
}

// copies are those of files that users may serve. The library is opened several times, for
// one thing and another.
type copies struct {
	mu    sync.Mutex
	known map[copyKey]*fileCopy
	order []copyKey // the oldest first
	bytes int64
}

type copyKey struct {
	pid   int
	start uint64
	file  mappedFile
}

type fileCopy struct {
	contents *os.File
	bytes    int64
	reply    fileReply
}

// maxCopies bounds the copies that are kept; those that are mapped stay as long as that.
const maxCopies = 256 << 20

var kept = copies{known: map[copyKey]*fileCopy{}}

// get returns a copy that is there, opened anew.
func (c *copies) get(key copyKey) (*os.File, fileReply, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.known[key]; known != nil {
		if again, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", known.contents.Fd())); err == nil {
			return again, known.reply, true
		}
	}
	return nil, fileReply{}, false
}

// put keeps a copy.
func (c *copies) put(key copyKey, contents *os.File, reply fileReply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	again, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", contents.Fd()))
	if err != nil || c.known[key] != nil || reply.Bytes > maxCopies {
		return
	}
	c.known[key] = &fileCopy{again, reply.Bytes, reply}
	c.order = append(c.order, key)
	for c.bytes += reply.Bytes; c.bytes > maxCopies || len(c.order) > MaxLibraries; {
		oldest := c.known[c.order[0]]
		oldest.contents.Close()
		c.bytes -= oldest.bytes
		delete(c.known, c.order[0])
		c.order = c.order[1:]
	}
}

// openFile asks for a file. The errors of the first name and of the last that were tried come beside
// that of asking.
func (p *Process) openFile(q *fileRequest) (opened *Opened, first, last, err error) {
	q.PID = p.through()
	key := copyKey{p.PID, p.StartTicks, mappedFile{FileID{q.Device, q.Inode}, q.Path}}
	contents, reply, known := kept.get(key)
	if q.Known = known && !q.Program; !q.Known {
		known = false
	}
	answer, err := askAbout(p.PID, askFile, q)
	if err == nil {
		err = json.Unmarshal(answer.Text, &reply)
	}
	if err != nil || len(answer.Files) == 0 {
		if contents != nil {
			contents.Close()
		}
		return nil, errno(reply.First), errno(reply.Last), err
	}
	opened = &Opened{Contents: answer.Files[0], Holes: reply.Holes, Via: reply.Via, pid: p.PID}
	if reply.Why != "" {
		opened.Unprobed = &MountError{q.Path, reply.FileSystem, reply.Why}
	}
	switch {
	case known:
		opened.place, opened.Contents = answer.Files[0], contents
	case len(answer.Files) > 1:
		opened.place = answer.Files[1]
		kept.put(key, opened.Contents, reply)
	}
	return opened, nil, nil, nil
}

func errno(number syscall.Errno) error {
	if number == 0 {
		return nil
	}
	return number
}

// openProgram opens what a process runs.
func (p *Process) openProgram() (*elf.File, error) {
	if !p.fs.asked() {
		file, err := p.openExe()
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return elf.New(file)
	}
	opened, _, last, err := p.openFile(&fileRequest{Program: true, Path: p.Exe})
	if opened == nil {
		return nil, errors.Join(err, last)
	}
	defer opened.Close()
	return opened.ELF()
}

// ELF parses the file.
func (o *Opened) ELF() (*elf.File, error) {
	if o.place != nil {
		return elf.New(o.Contents)
	}
	return elf.NewWithHoles(o.Contents, o.Holes)
}
