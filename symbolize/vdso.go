package symbolize

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// vdsoPath is the name of the kernel's library in /proc/PID/maps.
const vdsoPath = "[vdso]"

var errNoVDSO = errors.New("no vDSO is mapped")

// openVDSO reads the kernel's library out of this process's own memory: all
// 64-bit processes have the same.
func openVDSO() *File {
	e, err := readVDSO()
	if err != nil {
		return unreadable(vdsoPath, fmt.Errorf("reading the vDSO: %w", err))
	}
	return NewFile(e, vdsoPath)
}

func readVDSO() (*elf.File, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(maps)) {
		var start, end uint64
		if !strings.HasSuffix(line, vdsoPath+"\n") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x ", &start, &end); err != nil {
			return nil, err
		}
		memory, err := os.Open("/proc/self/mem")
		if err != nil {
			return nil, err
		}
		defer memory.Close()
		image := make([]byte, end-start)
		if _, err := memory.ReadAt(image, int64(start)); err != nil {
			return nil, err
		}
		return elf.New(bytes.NewReader(image))
	}
	return nil, errNoVDSO
}
