package decode

import "github.com/ebpfprof/ebpfprof/tracer/event"

// maxLiveAllocations are followed in one process.
const maxLiveAllocations = 1 << 20

// hostMemory is what the host allocator has handed out and not taken back, as far
// as it was seen: a free tells an address only. Between two slices addresses are
// freed and come again unseen, so what is known ends with the slice.
type hostMemory struct {
	epoch     uint32 // of what is known
	processes map[int32]*hostProcess
	peak      int64  // the most bytes that any process had
	crowded   uint64 // allocations that are not followed: their process has too many
}

// hostProcess is one process's live allocations.
type hostProcess struct {
	size map[int64]int64 // bytes, by address
	live int64           // their sum
}

func newHostMemory() hostMemory { return hostMemory{processes: map[int32]*hostProcess{}} }

// follow keeps an allocation, and gives a free the size of what it frees. It
// reports whether the event is one: freeing a null pointer is not.
func (h *hostMemory) follow(m *event.Memory, epoch uint32) bool {
	if m.Address == 0 && (m.Action == "alloc" || m.Action == "free") {
		return false
	}
	if epoch > h.epoch {
		clear(h.processes)
		h.epoch = epoch
	}
	if epoch < h.epoch {
		return true // a straggler of the slice before
	}
	p := h.processes[m.PID]
	if p == nil {
		p = &hostProcess{size: map[int64]int64{}}
		h.processes[m.PID] = p
	}
	switch m.Action {
	case "alloc":
		if m.Bytes == nil {
			return true
		}
		before, again := p.size[m.Address] // an address comes twice where its free was lost
		if !again && len(p.size) >= maxLiveAllocations {
			h.crowded++
			return true
		}
		p.live += *m.Bytes - before
		p.size[m.Address] = *m.Bytes
		h.peak = max(h.peak, p.live)
	case "free":
		if bytes, ok := p.size[m.Address]; ok {
			m.Bytes = &bytes
			p.live -= bytes
			delete(p.size, m.Address)
		}
	}
	return true
}

// Forget implements Owner.
func (h *hostMemory) Forget(pid uint32) { delete(h.processes, int32(pid)) }
