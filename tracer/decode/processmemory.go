package decode

import (
	"errors"
	"fmt"
	"io"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// processMemory reads the memory of the traced processes, the rare words and
// strings that are of use without a probe. It belongs to one goroutine.
type processMemory struct {
	files map[uint32]*process.Memory
}

func newProcessMemory() *processMemory { return &processMemory{files: map[uint32]*process.Memory{}} }

// Read fills b from an address of a process. What was opened before an exec is
// the old program's memory, which is gone: then it is opened anew.
func (m *processMemory) Read(pid uint32, address uint64, b []byte) error {
	if int64(address) <= 0 {
		return fmt.Errorf("reading the memory of pid %d: %#x is no address", pid, address)
	}
	file, known := m.files[pid]
	if known {
		if n, err := file.ReadAt(b, int64(address)); n == len(b) {
			return nil
		} else if !errors.Is(err, io.EOF) {
			return err
		}
		m.ended(pid)
	}
	file, err := process.OpenMemory(int(pid))
	if err != nil {
		return err
	}
	m.files[pid] = file
	if n, err := file.ReadAt(b, int64(address)); n < len(b) {
		return err
	}
	return nil
}

// ended lets go of a process's memory.
func (m *processMemory) ended(pid uint32) {
	if file, ok := m.files[pid]; ok {
		file.Close()
		delete(m.files, pid)
	}
}

func (m *processMemory) close() {
	for pid := range m.files {
		m.ended(pid)
	}
}
