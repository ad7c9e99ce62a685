package unwinding

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// vdso is the file that the kernel maps into every process and that lies on no
// disk. It is the same in all 64-bit processes, so ours is read; nil where that
// fails.
func (x *files) vdso(size uint64) *file {
	if x.vdsoFile == nil {
		contents, err := ownVDSO(size)
		if err != nil {
			return nil
		}
		e, err := elf.New(bytes.NewReader(contents))
		if err != nil {
			return nil
		}
		x.vdsoFile = x.findELF("[vdso]", e, nil)
	}
	return x.vdsoFile
}

// ownVDSO copies the vDSO from where the auxiliary vector says it is.
func ownVDSO(size uint64) ([]byte, error) {
	const sysinfoEhdr = 33
	vector, err := os.ReadFile("/proc/self/auxv")
	if err != nil {
		return nil, fmt.Errorf("finding the vDSO: %w", err)
	}
	for ; len(vector) >= 16; vector = vector[16:] {
		if binary.LittleEndian.Uint64(vector) != sysinfoEhdr {
			continue
		}
		memory, err := os.Open("/proc/self/mem")
		if err != nil {
			return nil, fmt.Errorf("reading the vDSO: %w", err)
		}
		defer memory.Close()
		contents := make([]byte, size)
		if _, err := memory.ReadAt(contents, int64(binary.LittleEndian.Uint64(vector[8:]))); err != nil {
			return nil, fmt.Errorf("reading the vDSO: %w", err)
		}
		return contents, nil
	}
	return nil, os.ErrNotExist
}
