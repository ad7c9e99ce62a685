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
	blocks map[int64]hostBlock // by address
	live   int64               // the sum of their bytes
}

// hostBlock is a live allocation. The record of a free comes when that is over: by then
// another thread may have been given the address, and told so.
type hostBlock struct {
	bytes       int64
	bornNS      int64
	beforeBytes int64 // what had the address before, if its free is still to come; else -1
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
		p = &hostProcess{blocks: map[int64]hostBlock{}}
		h.processes[m.PID] = p
	}
	switch m.Action {
	case "alloc":
		if m.Bytes == nil {
			return true
		}
		before, again := p.blocks[m.Address] // its free was lost, or is still to come
		if !again && len(p.blocks) >= maxLiveAllocations {
			h.crowded++
			return true
		}
		p.live += *m.Bytes - before.bytes
		block := hostBlock{bytes: *m.Bytes, bornNS: m.TSNS, beforeBytes: -1}
		if again {
			block.beforeBytes = before.bytes
		}
		p.blocks[m.Address] = block
		h.peak = max(h.peak, p.live)
	case "free":
		block, ok := p.blocks[m.Address]
		switch {
		case !ok:
		case m.TSNS < block.bornNS && block.beforeBytes >= 0:
			bytes := block.beforeBytes
			m.Bytes, block.beforeBytes = &bytes, -1
			p.blocks[m.Address] = block
		case m.TSNS < block.bornNS: // of one that was there before
		default:
			m.Bytes = &block.bytes
			p.live -= block.bytes
			delete(p.blocks, m.Address)
		}
	}
	return true
}

// Forget implements Owner.
func (h *hostMemory) Forget(pid uint32) { delete(h.processes, int32(pid)) }
