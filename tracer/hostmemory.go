package tracer

// hostMemory is what the host allocator has handed out and not taken back, as far
// as it was seen: a free tells an address only. Between two slices addresses are
// freed and come again unseen, so what is known ends with the slice.
type hostMemory struct {
	epoch uint32               // of what is known
	size  map[allocation]int64 // bytes
	live  map[int32]int64      // their sum, by process
	peak  int64                // the most that any process had
}

type allocation struct {
	pid     int32
	address int64
}

func newHostMemory() hostMemory {
	return hostMemory{size: map[allocation]int64{}, live: map[int32]int64{}}
}

// follow keeps an allocation, and gives a free the size of what it frees. It
// reports whether the event is one: freeing a null pointer is not.
func (h *hostMemory) follow(m *Memory, epoch uint32) bool {
	if m.Address == 0 && (m.Action == "alloc" || m.Action == "free") {
		return false
	}
	if epoch > h.epoch {
		clear(h.size)
		clear(h.live)
		h.epoch = epoch
	}
	if epoch < h.epoch {
		return true // a straggler of the slice before
	}
	key := allocation{m.PID, m.Address}
	switch m.Action {
	case "alloc":
		if m.Bytes == nil {
			return true
		}
		h.live[m.PID] += *m.Bytes - h.size[key] // an address comes twice where its free was lost
		h.size[key] = *m.Bytes
		h.peak = max(h.peak, h.live[m.PID])
	case "free":
		if bytes, ok := h.size[key]; ok {
			m.Bytes = &bytes
			h.live[m.PID] -= bytes
			delete(h.size, key)
		}
	}
	return true
}

// ended forgets a process.
func (h *hostMemory) ended(pid int32) {
	for key := range h.size {
		if key.pid == pid {
			delete(h.size, key)
		}
	}
	delete(h.live, pid)
}
