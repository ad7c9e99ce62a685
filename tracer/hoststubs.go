package tracer

import (
	"slices"
	"strings"
	"sync"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// hostStubs names kernels by the host function that stands for them: nvcc and
// hipcc give it the kernel's own symbol, HIP's with a prefix. It works for
// handles of any age.
type hostStubs struct {
	mu        sync.Mutex
	libraries map[uint32][]*process.Library
	files     map[fileKey]*functionFile
}

type functionFile struct {
	file      *symbolize.ELF
	functions *symbolize.FunctionIndex // nil until it is asked for a name
}

// stubRuntimes are the libraries that are given host functions to name launches by.
var stubRuntimes = []string{"libamdhip64.so", "libcudart.so", "libOpenCL.so"}

func newHostStubs() *hostStubs {
	return &hostStubs{libraries: map[uint32][]*process.Library{}, files: map[fileKey]*functionFile{}}
}

// mapped tells which libraries a process has now. Where it may launch by host
// functions, their files are opened while it lives.
func (h *hostStubs) mapped(pid int, libraries []*process.Library) {
	if !slices.ContainsFunc(libraries, launchesByStub) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.libraries[uint32(pid)] = libraries
	for _, library := range libraries {
		h.open(library)
	}
}

func launchesByStub(l *process.Library) bool {
	return slices.ContainsFunc(stubRuntimes, func(prefix string) bool { return strings.HasPrefix(l.Name(), prefix) })
}

// KernelName implements accel.Namer.
func (h *hostStubs) KernelName(pid uint32, kernel accel.KernelHandle) (symbol, source string, ok bool) {
	if !kernel.Stub {
		return "", "", false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, library := range h.libraries[pid] {
		if _, mapped := library.FileOffset(kernel.Handle); !mapped {
			continue
		}
		f := h.open(library)
		if f == nil {
			return "", "", false
		}
		bias, known := library.Bias(f.file)
		if !known {
			return "", "", false
		}
		// The file may be cut short under its reader.
		err := symbolize.Guard(func() {
			if f.functions == nil {
				f.functions = f.file.IndexFunctions()
			}
			symbol = f.functions.Name(kernel.Handle - bias)
		})
		return symbol, accel.NameHostStub, err == nil && symbol != ""
	}
	return "", "", false
}

func (h *hostStubs) open(library *process.Library) *functionFile {
	key := fileKey{library.Device, library.Inode}
	if f, known := h.files[key]; known {
		return f
	}
	if len(h.files) >= maxStubFiles {
		h.close()
		clear(h.files)
	}
	h.files[key] = nil
	if file, err := library.OpenELF(); err == nil {
		h.files[key] = &functionFile{file: file}
	}
	return h.files[key]
}

func (h *hostStubs) close() {
	for _, f := range h.files {
		if f != nil {
			f.file.Close()
		}
	}
}
