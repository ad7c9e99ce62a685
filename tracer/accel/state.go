// Package accel follows the calls of processes into their accelerator runtimes
// (CUDA, HIP, NCCL and RCCL, OpenCL, Level Zero, Neuron, PJRT): which device a
// context or a stream is on, what a kernel is called, what a graph holds, which
// rank a communicator is, how long work may have taken on the device. It owns
// what those calls tell of handles, and the rows that wait for their bounds; it
// makes events of what it knows and leaves it to others to hand them on.
//
// Nothing here is safe for concurrent use but State.Mapped: one goroutine decodes.
//
// The package is no part of the public API: it may change with any version.
package accel

import (
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Rows takes the rows that calls make beside their own spans, and names calls.
type Rows interface {
	// Span takes a row that has waited for its time on the device.
	Span(event.Span)
	// Memory takes an allocation or free; stack is the kernel's name for its stack, 0: none.
	Memory(row event.Memory, stack uint64)
	Flow(event.Flow)
	// Name returns a call like base with another name, the same one each time.
	Name(spec uint32, base *event.Call, name string) *event.Call
	// Recategorize returns a call like base of another category, the same one each time.
	Recategorize(spec uint32, base *event.Call, category string) *event.Call
}

// MemoryReader reads the memory of a process.
type MemoryReader interface {
	Read(pid uint32, address uint64, b []byte) error
}

// Record is what the kernel saw of one call.
type Record struct {
	Spec     uint32 // the probe's number
	PID, TID uint32
	Args     []uint64 // captured values, in the order of the catalog's
	Faults   uint32   // a bit for each that could not be read
	EndSeen  bool     // a probe saw the call end: only then were its results read
	Stack    uint64   // the kernel's name for its stack, 0: none
	Epoch    uint32   // between two, probes have been out
}

// State is what is known of the runtimes of all traced processes.
type State struct {
	// ReplaysCut counts replays of graphs with more nodes than are followed,
	// BodiesUnread conditional nodes whose bodies could not be read.
	ReplaysCut, BodiesUnread uint64
	// Forgotten counts how often all that was known of a process's runtime was dropped:
	// it was more than MaxHandles.
	Forgotten uint64

	rows    Rows
	names   *kernelNames
	of      map[runtimeKey]*runtime
	splits  *splits
	remote  MemoryReader
	strange uint64 // collectives on communicators without an identity, of processes that ended
	// The one asked for last: launches come in runs.
	lastKey runtimeKey
	last    *runtime
}

type runtimeKey struct {
	pid     uint32
	runtime string
}

// runtime is one runtime in one process.
type runtime struct {
	state         *State
	devices       devices
	graphs        graphs
	memory        driverMemory
	communicators communicators
	lists         commandLists
	times         deviceTimes
	inner         map[uint32]innerCall // by thread
}

// New makes a State that reads words of the processes through remote and hands
// what it makes to rows.
func New(remote MemoryReader, rows Rows) *State {
	return &State{rows: rows, names: newKernelNames(), of: map[runtimeKey]*runtime{}, splits: newSplits(), remote: remote}
}

// AddNamer has kernels named whose handles are older than the recording; the first
// namer that knows one is believed.
func (s *State) AddNamer(n Namer) { s.names.namers = append(s.names.namers, n) }

// Mapped tells which libraries a process has now. Unlike the rest it may be called
// from another goroutine than the one that decodes.
func (s *State) Mapped(pid int, libraries []*process.Library) { s.names.callers.mapped(pid, libraries) }

// Remapped forgets what could not be named before a process mapped new files.
func (s *State) Remapped(pid uint32) { s.names.remapped(pid) }

func (s *State) get(pid uint32, name string) *runtime {
	key := runtimeKey{pid, name}
	if s.last != nil && s.lastKey == key {
		return s.last
	}
	one, ok := s.of[key]
	if !ok {
		one = &runtime{
			state: s, devices: newDevices(), graphs: newGraphs(), memory: driverMemory{},
			communicators: newCommunicators(s.splits, func(address uint64) (uint64, bool) { return word(s.remote, pid, address) }),
			lists:         newCommandLists(), times: newDeviceTimes(), inner: map[uint32]innerCall{},
		}
		s.of[key] = one
	}
	s.lastKey, s.last = key, one
	return one
}

// FlushExpired hands on the rows that have waited long enough.
func (s *State) FlushExpired() {
	s.bound()
	for _, one := range s.of {
		one.times.flushExpired(s.rows)
	}
}

// FlushAll hands on every row that still waits.
func (s *State) FlushAll() {
	for _, one := range s.of {
		one.times.flushAll(s.rows)
	}
}

// Look looks for handles of communicators that the runtimes had not made yet. It is
// called whenever the ring has run empty.
func (s *State) Look() {
	for _, one := range s.of {
		one.communicators.pending.look()
	}
}

// Strangers counts collectives on communicators without an identity.
func (s *State) Strangers() uint64 {
	n := s.strange
	for _, one := range s.of {
		n += one.communicators.strange
	}
	return n
}

// SplitsGivenUp counts the divisions of communicators that were forgotten before all
// of their ranks had been seen.
func (s *State) SplitsGivenUp() uint64 { return s.splits.givenUp }

// Ended forgets a process, and lets go of its rows.
func (s *State) Ended(pid uint32) {
	s.names.ended(pid)
	s.splits.ended(pid)
	for key, one := range s.of {
		if key.pid == pid {
			one.times.flushAll(s.rows)
			s.strange += one.communicators.strange
			delete(s.of, key)
		}
	}
	s.last = nil
}
