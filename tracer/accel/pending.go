package accel

import (
	"encoding/binary"
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// pendingHandles are communicators of a process whose handle was not there when the
// call that makes them returned. NCCL keeps null where the handle will go until
// the communicator is whole (ncclCommInitChildComm): that is at the end of the
// group of calls, or, of one that does not block, some time later. The addresses are
// looked at meanwhile. The first value that is seen there is believed only when an
// unknown handle is used, and it is that very value: the memory may be
// used for anything later.
type pendingHandles struct {
	waiting []*pendingHandle
	tried   map[uint64]bool // handles that matched none; nil after any change
	read    func(address uint64) (uint64, bool)
}

type pendingHandle struct {
	address uint64 // where the job asked for the handle
	seen    uint64 // what was there first, but for null
	looks   int
	made    *communicator
}

const (
	// mostPending is how many are kept: of those that never come the oldest go.
	mostPending = 256
	// mostLooks is how often an address is looked at that nothing comes to, each time
	// the ring has run empty, ten milliseconds apart or more: a minute at least.
	mostLooks = 6000
)

// expect keeps a communicator that the call will make, if it said where.
func (m *communicators) expect(c *Call, made *communicator) {
	address, p := c.args.value[spec.FieldHandleAddress], &m.pending
	if address == 0 {
		return
	}
	p.look() // for the last time, at what was expected here before
	if len(p.waiting) == mostPending {
		p.waiting = p.waiting[1:]
	}
	p.waiting, p.tried = append(p.waiting, &pendingHandle{address: address, made: made}), nil
}

// look reads the addresses. It is called whenever the ring has run empty.
func (p *pendingHandles) look() {
	for i, one := range p.waiting {
		again := slices.ContainsFunc(p.waiting[i+1:], func(later *pendingHandle) bool { return later.address == one.address })
		if again || one.seen != 0 || one.looks == mostLooks {
			continue
		}
		one.looks++
		if value, ok := p.read(one.address); ok && value != 0 {
			one.seen, p.tried = value, nil
		}
	}
}

// byHandle is the communicator of a handle: the one expected last whose address has
// held it, where it is none that is known.
func (m *communicators) byHandle(handle uint64) *communicator {
	known, p := m.known[handle], &m.pending
	if known != nil || handle == 0 || len(p.waiting) == 0 || p.tried[handle] {
		return known
	}
	p.look()
	for i, one := range slices.Backward(p.waiting) {
		if one.seen == handle {
			m.known[handle] = one.made
			p.waiting = slices.Delete(p.waiting, i, i+1)
			return one.made
		}
	}
	if p.tried == nil || len(p.tried) >= mostTried {
		p.tried = map[uint64]bool{}
	}
	p.tried[handle] = true
	return nil
}

// word reads a word of a process.
func word(memory MemoryReader, pid uint32, address uint64) (uint64, bool) {
	var b [8]byte
	if err := memory.Read(pid, address, b[:]); err != nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}
