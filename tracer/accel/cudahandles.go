package accel

import (
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/cufunction"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// cudaHandles names kernels whose handles are older than the recording by what
// libcuda keeps behind them. It reads once for each distinct handle, in user
// space. It belongs to the decoder.
type CUDAHandles struct {
	memory  MemoryReader
	layouts *cufunction.Layouts
	builds  map[uint32]string // which libcuda a process has
	failed  map[cufunction.Reason]uint64
}

func NewCUDAHandles(memory MemoryReader) *CUDAHandles {
	return &CUDAHandles{memory, cufunction.NewLayouts(), map[uint32]string{}, map[cufunction.Reason]uint64{}}
}

func (h *CUDAHandles) read(pid uint32) cufunction.Memory {
	return func(address uint64, b []byte) error { return h.memory.Read(pid, address, b) }
}

// KernelName implements Namer.
func (h *CUDAHandles) KernelName(pid uint32, kernel KernelHandle) (symbol, source string, ok bool) {
	if kernel.Runtime != "cuda" || kernel.Stub {
		return "", "", false
	}
	symbol, reason := h.layouts.Name(h.builds[pid], kernel.Handle, h.read(pid))
	if reason != cufunction.Named {
		h.failed[reason]++
		return "", "", false
	}
	return symbol, NameStruct, true
}

// Learnt implements nameLearner.
func (h *CUDAHandles) Learnt(pid uint32, kernel KernelHandle, symbol string) {
	if kernel.Runtime == "cuda" && !kernel.Stub {
		h.layouts.Learn(h.builds[pid], kernel.Handle, symbol, h.read(pid))
	}
}

func (h *CUDAHandles) Ended(pid uint32) { delete(h.builds, pid) }

// mapped notes a driver library of a process by its build id. Where something
// stands in front of libcuda under the same name (an interposer), the pair of
// them is a build of its own.
func (h *CUDAHandles) Mapped(pid uint32, build string) {
	builds := strings.Fields(h.builds[pid])
	if !slices.Contains(builds, build) {
		builds = append(builds, build)
		slices.Sort(builds)
		h.builds[pid] = strings.Join(builds, " ")
	}
}

// IsDriver: libcuda.so.1, libcuda.so.550.163.01, libcuda-wrapped.so; not
// libcudart.so.12 and the other libraries of the toolkit.
func IsDriver(base string) bool {
	rest, ok := strings.CutPrefix(base, "libcuda")
	return ok && strings.Contains(rest, ".so") && !(rest[0] >= 'a' && rest[0] <= 'z')
}

// losses lists the reasons why handles have no name.
func (h *CUDAHandles) Losses() []event.Warning {
	var rows []event.Warning
	for reason, n := range h.failed {
		rows = append(rows, event.Warning{
			Kind: "incomplete", Source: "kernel_name:" + reason.String(), Count: int64(n),
			Detail: "kernel handles that were made before the recording, and behind which no name was found",
		})
	}
	slices.SortFunc(rows, func(a, b event.Warning) int { return strings.Compare(a.Source, b.Source) })
	return rows
}
