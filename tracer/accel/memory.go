package accel

import (
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// driverMemory is what a process has from one runtime, by address. Handles of
// physical memory without an address are kept apart from addresses: they may
// be small numbers.
type driverMemory struct {
	blocks map[memoryKey]memoryBlock
}

type memoryKey struct {
	address  uint64
	physical bool
}

type memoryBlock struct {
	refs   int // holders beyond the first
	bytes  *int64
	space  string
	device *int32
}

// allocate makes the memory row of a call, if it succeeded, or if there was no
// room.
func (c *Call) allocate() {
	m := event.Memory{
		TSNS: c.span.StartNS, PID: c.span.PID, TID: c.span.TID, SpanID: c.span.ID, Weight: 1,
		PythonStackID: c.span.PythonStackID, PythonStackSource: c.span.PythonStackSource,
		Space: c.f.Memory.Space, Level: c.f.Memory.Level, Action: c.f.Memory.Action, Bytes: bytesOf(c.span.Detail),
	}
	for _, s := range c.f.Memory.Spaces {
		if c.args.value[spec.FieldFlags]&s.Flag != 0 {
			m.Space = s.Space
		}
	}
	m.Pool = c.args.Int64(spec.FieldPool)
	c.locate(&m)
	switch {
	case c.span.Status == event.StatusOK:
		if !c.memory.follow(&m, c.args) {
			return
		}
		if took := c.span.DurationNS; took >= 0 && c.r.EndSeen {
			m.DurationNS = &took
		}
		if m.Action == "alloc" && c.span.DurationNS > 0 {
			m.TSNS += c.span.DurationNS // it is there once the call has returned
		}
	case c.span.Status == event.StatusError && c.outOfMemory():
		m.Action = event.ActionOutOfMemory
	default:
		return
	}
	c.state.rows.Memory(m, c.r.Stack)
}

// locate says which device memory is on, and which kind of memory it is where
// the call says that itself.
func (c *Call) locate(m *event.Memory) {
	if c.args.onHost() {
		m.Space = "pinned"
	}
	if m.Space != "pinned" && m.Space != "host" {
		m.DeviceID = deviceOf(c.span.Detail)
	}
}

// replayMemory tells what the memory nodes of a graph do in a replay: one row a
// node, in their order and a nanosecond apart, the last when the call returns.
// What the replay before allocated and no call freed is freed by the launch, or
// the driver would have refused it (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH).
func (c *Call) replayMemory(nodes []*event.Memory) {
	exec := c.args.Int64(spec.FieldGraphExec)
	var rows []event.Memory
	for _, node := range nodes {
		row := *node
		row.PID, row.TID, row.SpanID, row.Weight = c.span.PID, c.span.TID, c.span.ID, 1
		row.PythonStackID, row.PythonStackSource = c.span.PythonStackID, c.span.PythonStackSource
		row.GraphExec = exec
		key := memoryKey{address: uint64(row.Address)}
		if block, live := c.memory.blocks[key]; live && row.Action == "alloc" {
			left := row
			left.Action, left.Bytes, left.Space, left.DeviceID = "free", block.bytes, block.space, block.device
			rows = append(rows, left)
		}
		c.memory.change(&row, key)
		rows = append(rows, row)
	}
	for i := range rows {
		rows[i].TSNS = max(c.span.StartNS, end(c.span)-int64(len(rows)-1-i))
		c.state.rows.Memory(rows[i], c.r.Stack)
	}
}

func (c *Call) outOfMemory() bool {
	if c.span.Detail == nil {
		return false
	}
	code := c.span.Detail.ErrorCode
	return c.f.OutOfMemory != 0 && code != nil && *code == int64(c.f.OutOfMemory)
}

// follow gives the row its address, and a free what its allocation had. It
// reports whether the call did anything: freeing a null pointer does not.
func (memory *driverMemory) follow(m *event.Memory, args *Arguments) bool {
	address, known := args.value[spec.FieldAddress], args.Has(spec.FieldAddress)
	key := memoryKey{address: address}
	if m.Action != "map" && args.Has(spec.FieldAllocation) {
		address, known = args.value[spec.FieldAllocation], true
		key = memoryKey{address, true}
	}
	if !known || address == 0 {
		return false
	}
	m.Address = int64(address)
	switch m.Action {
	case "alloc", "free":
		memory.change(m, key)
	case "retain":
		if block, ok := memory.blocks[key]; ok {
			block.refs++
			memory.blocks[key] = block
		}
		return false
	case "release":
		return memory.release(m, key)
	case "map":
		if block, ok := memory.blocks[memoryKey{args.value[spec.FieldAllocation], true}]; ok && m.DeviceID == nil {
			m.DeviceID = block.device
		}
	}
	return true
}

// change keeps an allocation, and gives a free what its allocation had.
func (memory *driverMemory) change(m *event.Memory, key memoryKey) {
	if m.Action == "alloc" {
		if memory.blocks == nil {
			memory.blocks = map[memoryKey]memoryBlock{}
		}
		memory.blocks[key] = memoryBlock{bytes: m.Bytes, space: m.Space, device: m.DeviceID}
		return
	}
	if block, ok := memory.blocks[key]; ok {
		m.Bytes, m.Space, m.DeviceID = block.bytes, block.space, block.device
		delete(memory.blocks, key)
	}
}

// release lets go of one holder's share. With the last the memory is free; of
// memory from before the recording, whether it was the last is unknown.
func (memory *driverMemory) release(m *event.Memory, key memoryKey) bool {
	block, ok := memory.blocks[key]
	if !ok {
		return false
	}
	if block.refs > 0 {
		block.refs--
		memory.blocks[key] = block
		return false
	}
	m.Action, m.Bytes, m.Space, m.DeviceID = "free", block.bytes, block.space, block.device
	delete(memory.blocks, key)
	return true
}

func bytesOf(d *event.Detail) *int64 {
	if d == nil {
		return nil
	}
	return d.Bytes
}

func deviceOf(d *event.Detail) *int32 {
	if d == nil {
		return nil
	}
	return d.DeviceID
}
