package tracer

import (
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/cufunction"
)

// cudaHandles names kernels whose handles are older than the recording by what
// libcuda keeps behind them. It reads once for each distinct handle, in user
// space. It belongs to the decoder.
type cudaHandles struct {
	memory  *processMemory
	layouts *cufunction.Layouts
	builds  map[uint32]string // which libcuda a process has
	failed  map[cufunction.Reason]uint64
}

func newCUDAHandles(memory *processMemory) *cudaHandles {
	return &cudaHandles{memory, cufunction.NewLayouts(), map[uint32]string{}, map[cufunction.Reason]uint64{}}
}

func (h *cudaHandles) read(pid uint32) cufunction.Memory {
	return func(address uint64, b []byte) error { return h.memory.read(pid, address, b) }
}

// KernelName implements handleNamer.
func (h *cudaHandles) KernelName(pid uint32, kernel kernelHandle) (symbol, source string, ok bool) {
	if kernel.runtime != "cuda" || kernel.stub {
		return "", "", false
	}
	symbol, reason := h.layouts.Name(h.builds[pid], kernel.handle, h.read(pid))
	if reason != cufunction.Named {
		h.failed[reason]++
		return "", "", false
	}
	return symbol, NameStruct, true
}

// Learnt implements nameLearner.
func (h *cudaHandles) Learnt(pid uint32, kernel kernelHandle, symbol string) {
	if kernel.runtime == "cuda" && !kernel.stub {
		h.layouts.Learn(h.builds[pid], kernel.handle, symbol, h.read(pid))
	}
}

func (h *cudaHandles) ended(pid uint32) { delete(h.builds, pid) }

// mapped notes a driver library of a process by its build id. Where something
// stands in front of libcuda under the same name (an interposer), the pair of
// them is a build of its own.
func (h *cudaHandles) mapped(pid uint32, build string) {
	builds := strings.Fields(h.builds[pid])
	if !slices.Contains(builds, build) {
		builds = append(builds, build)
		slices.Sort(builds)
		h.builds[pid] = strings.Join(builds, " ")
	}
}

// isDriver: libcuda.so.1, libcuda.so.550.163.01, libcuda-wrapped.so; not
// libcudart.so.12 and the other libraries of the toolkit.
func isDriver(base string) bool {
	rest, ok := strings.CutPrefix(base, "libcuda")
	return ok && strings.Contains(rest, ".so") && !(rest[0] >= 'a' && rest[0] <= 'z')
}

// losses lists the reasons why handles have no name.
func (h *cudaHandles) losses() []Warning {
	var rows []Warning
	for reason, n := range h.failed {
		rows = append(rows, Warning{
			Kind: "incomplete", Source: "kernel_name:" + reason.String(), Count: int64(n),
			Detail: "kernel handles that were made before the recording, and behind which no name was found",
		})
	}
	slices.SortFunc(rows, func(a, b Warning) int { return strings.Compare(a.Source, b.Source) })
	return rows
}
