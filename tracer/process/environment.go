package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// The kernel shows the environment that a process was started with, where it was started with it. A process
// that gives itself a title writes over that, and one that sets a variable later (os.environ of a program
// that torch.multiprocessing.spawn made) has it elsewhere: the C library's own list, which `environ` points to,
// has both.

const (
	// mostVariables and longestVariable bound what is read of the list: it is the process's memory, and may
	// say anything.
	mostVariables   = 4096
	longestVariable = 256
)

var libcFile = regexp.MustCompile(`^(libc\.so\.6|libc-2\.\d+\.so|ld-musl-.*\.so\.1|libc\.musl-.*\.so\.1|libc\.so)$`)

// JobOfEnvironment is the job's identity by the process's own list of variables; of them nothing but
// the allowed names is kept.
func (p *Process) JobOfEnvironment(libraries []*Library) (JobIdentity, error) {
	variables, err := p.ownVariables(libraries)
	if err != nil {
		return JobIdentity{}, err
	}
	return identify(p.readCgroup(), variables), nil
}

// ownVariables reads the allowed variables of the C library's list.
func (p *Process) ownVariables(libraries []*Library) (map[string]string, error) {
	memory, err := OpenMemory(p.through())
	if err != nil {
		return nil, vanished(p.PID, "reading its environment", err)
	}
	defer memory.Close()
	// A program that names `environ` itself has the variable, and the C library uses that.
	for _, l := range environCandidates(p.Exe, libraries) {
		at, ok := environAddress(l)
		if !ok {
			continue
		}
		if kept, err := variablesAt(memory, at); err == nil {
			return kept, nil
		}
	}
	return nil, fmt.Errorf("the environment of pid %d: no list of variables was found", p.PID)
}

func environCandidates(exe string, libraries []*Library) (candidates []*Library) {
	for _, l := range libraries {
		if l.Path == exe {
			candidates = append(candidates, l)
		}
	}
	for _, l := range libraries {
		if libcFile.MatchString(filepath.Base(l.Path)) {
			candidates = append(candidates, l)
		}
	}
	return candidates
}

// environAddress is where a file's variable `environ` is in the process.
func environAddress(l *Library) (at uint64, ok bool) {
	e, err := l.OpenELF()
	if err != nil {
		return 0, false
	}
	defer e.Close()
	guarded := elf.Guard(func() {
		for _, name := range []string{"environ", "__environ"} {
			symbol, found := e.Export(name)
			if !found {
				continue
			}
			if bias, known := l.Bias(e); known {
				at, ok = bias+symbol.Address, true
			}
			return
		}
	})
	return at, ok && guarded == nil
}

// bytesAt is a process's memory.
type bytesAt interface {
	ReadAt(b []byte, at int64) (int, error)
}

// variablesAt reads the list that a pointer at an address leads to.
func variablesAt(memory bytesAt, at uint64) (map[string]string, error) {
	var word [8]byte
	if _, err := memory.ReadAt(word[:], int64(at)); err != nil {
		return nil, err
	}
	list := binary.LittleEndian.Uint64(word[:])
	if list == 0 {
		return nil, fmt.Errorf("the list is not set yet")
	}
	kept := map[string]string{}
	text := make([]byte, longestVariable)
	for range mostVariables {
		if _, err := memory.ReadAt(word[:], int64(list)); err != nil {
			return nil, err
		}
		variable := binary.LittleEndian.Uint64(word[:])
		if variable == 0 {
			return kept, nil
		}
		list += 8
		n, _ := memory.ReadAt(text, int64(variable)) // shorter at the end of a mapping
		if n <= 0 {
			// Up to the end of its page.
			n, _ = memory.ReadAt(text[:min(longestVariable, int(pageSize-variable%pageSize))], int64(variable))
		}
		end := bytes.IndexByte(text[:max(n, 0)], 0)
		if end < 0 {
			continue // longer than any that is allowed
		}
		for name, value := range allowed(slices.Clone(text[:end])) {
			kept[name] = value
		}
		clear(text)
	}
	return kept, nil
}

const pageSize = 4096
