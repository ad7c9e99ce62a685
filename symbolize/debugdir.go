package symbolize

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// maxDebugFiles bounds how many files below a directory are looked into.
const maxDebugFiles = 200_000

// ErrNoELFFiles: nothing below the directory is an ELF file.
var ErrNoELFFiles = errors.New("no ELF file is in it")

// DebugDir finds files by build id below a directory: the layout of
// /usr/lib/debug (.build-id/ab/cdef….debug), or any tree of ELF files,
// libraries and files of debug information alike.
type DebugDir struct {
	dir     string
	byID    map[string]string // the tree's files, once it was walked
	walked  bool
	elves   int
	skipped error
}

// OpenDebugDir fails where there is no such directory.
func OpenDebugDir(dir string) (*DebugDir, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no directory %s: %w", dir, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory", dir)
	}
	return &DebugDir{dir: dir}, nil
}

// An id comes from a dataset, and becomes part of a path.
var (
	hexBuildID  = regexp.MustCompile(`^[0-9a-f]{4,128}$`)
	contentHash = regexp.MustCompile(`^file-[0-9a-f]{32}$`)
)

// Open finds and opens the file with an id as FileID gives it. Nil where there
// is none; a file that has the name of an id and another id inside does not
// count. The error is ErrNoELFFiles, or that of reading the directory.
func (d *DebugDir) Open(id string) (*elf.File, error) {
	if hexBuildID.MatchString(id) {
		for _, below := range []string{".build-id", "", "usr/lib/debug/.build-id", "lib/debug/.build-id"} {
			for _, suffix := range []string{".debug", ""} {
				if e := openWithID(filepath.Join(d.dir, below, id[:2], id[2:]+suffix), id); e != nil {
					d.elves++
					return e, nil
				}
			}
		}
	} else if !contentHash.MatchString(id) {
		return nil, nil
	}
	if err := d.walk(); err != nil {
		return nil, err
	}
	if path, ok := d.byID[id]; ok {
		return openWithID(path, id), nil
	}
	return nil, nil
}

func openWithID(path, id string) *elf.File {
	e, err := elf.Open(path)
	if err != nil {
		return nil
	}
	if e.FileID() != id {
		_ = e.Close()
		return nil
	}
	return e
}

// walk reads the id of every ELF file in the tree. Of two with the same, the
// one with the larger symbol table counts.
func (d *DebugDir) walk() error {
	if d.walked {
		return d.skipped
	}
	d.walked, d.byID = true, map[string]string{}
	symbols := map[string]int{}
	files := 0
	err := filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if path == d.dir {
				return err
			}
			return nil // what may not be read may not be needed
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		if files++; files > maxDebugFiles {
			return fs.SkipAll
		}
		e, err := elf.Open(path)
		if err != nil {
			return nil
		}
		defer e.Close()
		d.elves++
		id := e.FileID()
		if n := e.SymbolBytes(); d.byID[id] == "" || n > symbols[id] {
			d.byID[id], symbols[id] = path, n
		}
		return nil
	})
	if err == nil && d.elves == 0 {
		err = fmt.Errorf("%s: %w", d.dir, ErrNoELFFiles)
	}
	d.skipped = err
	return err
}
