package tracer

import (
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// hostStubs names kernels by the host function that stands for them: nvcc and
// hipcc give it the kernel's own symbol, HIP's with a prefix. It works for
// handles of any age.
type hostStubs struct {
	files mappedFiles[*stubFunctions]
}

// stubFunctions are a file's functions; index is nil until it is asked for a name.
type stubFunctions struct{ index *symbolize.FunctionIndex }

// stubRuntimes are the libraries that are given host functions to name launches by.
var stubRuntimes = []string{"libamdhip64.so", "libcudart.so", "libOpenCL.so"}

func newHostStubs() *hostStubs {
	return &hostStubs{newMappedFiles(func(*symbolize.ELF) *stubFunctions { return &stubFunctions{} })}
}

// mapped tells which libraries a process has now. Where it may launch by host
// functions, their files are opened while it lives.
func (h *hostStubs) mapped(pid int, libraries []*process.Library) {
	if !slices.ContainsFunc(libraries, launchesByStub) {
		return
	}
	h.files.mu.Lock()
	defer h.files.mu.Unlock()
	h.files.mapped(uint32(pid), libraries)
	for _, library := range libraries {
		h.files.open(library)
	}
}

// ended notes that a process is gone.
func (h *hostStubs) ended(pid int) { h.files.ended(uint32(pid)) }

// Forget implements decode.Owner.
func (h *hostStubs) Forget(pid uint32) {
	h.files.mu.Lock()
	defer h.files.mu.Unlock()
	h.files.forgotten(pid)
}

func launchesByStub(l *process.Library) bool {
	return slices.ContainsFunc(stubRuntimes, func(prefix string) bool { return strings.HasPrefix(l.Name(), prefix) })
}

// KernelName implements accel.Namer.
func (h *hostStubs) KernelName(pid uint32, kernel accel.KernelHandle) (symbol, source string, ok bool) {
	if !kernel.Stub {
		return "", "", false
	}
	h.files.mu.Lock()
	defer h.files.mu.Unlock()
	for _, library := range h.files.libraries(pid) {
		if _, mapped := library.FileOffset(kernel.Handle); !mapped {
			continue
		}
		f, ok := h.files.open(library)
		if !ok {
			return "", "", false
		}
		bias, known := library.Bias(f.elf)
		if !known {
			return "", "", false
		}
		// The file may be cut short under its reader.
		err := symbolize.Guard(func() {
			if f.opened.index == nil {
				f.opened.index = f.elf.IndexFunctions()
			}
			symbol = f.opened.index.Name(kernel.Handle - bias)
		})
		return symbol, accel.NameHostStub, err == nil && symbol != ""
	}
	return "", "", false
}

func (h *hostStubs) close() { h.files.close() }
