package accel

import (
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/mapped"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// HostStubs names kernels by the host function that stands for them: nvcc and
// hipcc give it the kernel's own symbol, HIP's with a prefix. It works for
// handles of any age.
type HostStubs struct {
	files *mapped.Files[*stubFunctions]
}

// stubFunctions are a file's functions; index is nil until it is asked for a name.
type stubFunctions struct{ index *elf.FunctionIndex }

// stubRuntimes are the libraries that are given host functions to name launches by.
var stubRuntimes = []string{"libamdhip64.so", "libcudart.so", "libOpenCL.so"}

// NewHostStubs makes one that knows of no process.
func NewHostStubs() *HostStubs {
	return &HostStubs{mapped.New(func(*elf.File) *stubFunctions { return &stubFunctions{} })}
}

// Mapped tells which libraries a process has now. Where it may launch by host
// functions, their files are opened while it lives.
func (h *HostStubs) Mapped(pid int, libraries []*process.Library) {
	if !slices.ContainsFunc(libraries, launchesByStub) {
		return
	}
	h.files.Lock()
	defer h.files.Unlock()
	h.files.Mapped(uint32(pid), libraries)
	for _, library := range libraries {
		h.files.Open(library)
	}
}

// Began notes a process: nothing is known of it before its libraries.
func (h *HostStubs) Began(int) {}

// Ended notes that a process is gone.
func (h *HostStubs) Ended(pid int) { h.files.Ended(uint32(pid)) }

// Forget drops what is known of one that is gone: its last records have been read.
func (h *HostStubs) Forget(pid uint32) {
	h.files.Lock()
	defer h.files.Unlock()
	h.files.Forget(pid)
}

func launchesByStub(l *process.Library) bool {
	return slices.ContainsFunc(stubRuntimes, func(prefix string) bool { return strings.HasPrefix(l.Name(), prefix) })
}

// KernelName implements Namer.
func (h *HostStubs) KernelName(pid uint32, kernel KernelHandle) (symbol, source string, ok bool) {
	if !kernel.Stub {
		return "", "", false
	}
	h.files.Lock()
	defer h.files.Unlock()
	for _, library := range h.files.Libraries(pid) {
		if _, mapped := library.FileOffset(kernel.Handle); !mapped {
			continue
		}
		f, ok := h.files.Open(library)
		if !ok {
			return "", "", false
		}
		bias, known := library.Bias(f.ELF)
		if !known {
			return "", "", false
		}
		// The file may be cut short under its reader.
		err := elf.Guard(func() {
			if f.Made.index == nil {
				f.Made.index = f.ELF.IndexFunctions()
			}
			symbol = f.Made.index.Name(kernel.Handle - bias)
		})
		return symbol, NameHostStub, err == nil && symbol != ""
	}
	return "", "", false
}

// Unopened counts the files that were not opened since too many are.
func (h *HostStubs) Unopened() uint64 { return h.files.Refused() }

// Close closes the files.
func (h *HostStubs) Close() { h.files.Close() }
