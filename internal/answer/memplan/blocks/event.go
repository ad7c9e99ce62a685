// Package blocks turns allocations and frees into blocks with lifetimes. It owns
// what an event, a block and a clock of ticks are, and what is done with events
// that do not fit together: frees of what was never allocated, addresses that are
// given out twice, unknown sizes. It knows no dataset.
package blocks

import (
	"cmp"
	"slices"
)

// Action is what an event does.
type Action uint8

// Actions. Others (reserving addresses, mapping) change no live bytes.
const (
	Alloc Action = iota
	Free
	OutOfMemory
)

// Unknown marks a number that an event does not tell.
const Unknown = -1

// Event is one allocation or free.
type Event struct {
	TSNS      int64
	Address   int64
	Bytes     int64 // Unknown on a free whose allocation the recorder did not see
	Allocated int64 // what the allocator itself said was in use afterwards, or Unknown
	Reserved  int64 // likewise what it held from the driver
	Duration  int64 // ns that the call took, or Unknown
	Path      int64 // the call stack, 0 if there is none
	Span      int64 // the innermost operator around it, 0 if there is none
	Weight    float32
	TID       int32
	Arena     int32 // index of the arena
	Action    Action
}

// Arena is memory that addresses are unique in: one process, space, allocator
// and device.
type Arena struct {
	Session string // the recording: several may stand in one dataset, with the same pids
	PID     int32
	Space   string // host, device, pinned or managed
	Level   string // allocator, or driver
	Device  int32  // Unknown for host memory
}

// Framework leaves out the driver's events of a device that has a framework's
// allocator, which are its segments: the blocks that programs ask for are left.
// The largest peak comes first.
func Framework(all []*Lives) []*Lives {
	type place struct {
		session string
		pid     int32
		space   string
		device  int32
	}
	of := func(l *Lives) place { return place{l.Arena.Session, l.Arena.PID, l.Arena.Space, l.Arena.Device} }
	allocator := map[place]bool{}
	for _, l := range all {
		if l.Arena.Level == "allocator" {
			allocator[of(l)] = true
		}
	}
	all = slices.DeleteFunc(all, func(l *Lives) bool { return l.Arena.Level != "allocator" && allocator[of(l)] })
	slices.SortStableFunc(all, func(a, b *Lives) int { return cmp.Compare(b.Peak, a.Peak) })
	return all
}

// Block is a stretch of memory from its allocation to its free.
type Block struct {
	Address int64
	Bytes   int64
	// Born and Died are ticks: the clock counts allocations and frees of the
	// arena from 1. A block born before the recording has Born 0, one that is
	// still there at its end Died = Alive.
	Born, Died       int64
	BornNS, DiedNS   int64
	Path             int64
	BornIn, DiedIn   int64 // spans
	TID              int32
	AllocationTookNS int64 // Unknown if it was not measured
	FreeTookNS       int64 // likewise
}

// Alive is when a block died that is there at the end.
const Alive = int64(1<<63 - 1)

// Lives is what became of an arena's events.
type Lives struct {
	Arena  Arena
	Blocks []Block
	Ticks  int64
	// BeginNS and EndNS are the first and the last event's time.
	BeginNS, EndNS int64
	// Before is what the allocator said was in use before the first event, less
	// what blocks born before the recording account for; Unknown if it did not say.
	Before int64
	// Peak is the most live bytes of Blocks at once, at tick PeakTick.
	Peak     int64
	PeakTick int64
	PeakNS   int64
	// AllocatedPeak is the most that the allocator itself said was in use, with
	// what was there before, or Unknown.
	AllocatedPeak int64
	// ReservedPeak is the most that the allocator said it held, or Unknown.
	ReservedPeak int64
	Allocations  int64
	Frees        int64
	OutOfMemory  int64
	// AllocationNS is the time in allocations that were timed, TimedAllocations
	// how many those are.
	AllocationNS     int64
	TimedAllocations int64

	Shortages []Shortage

	Problems
}

// Shortage is a moment when an allocation found no room, and what was live then of what was seen being allocated.
type Shortage struct{ NS, Live int64 }

// Problems are events that do not fit together, by reason.
type Problems struct {
	FreedUnknown  int64 // frees of blocks that were allocated before the recording, or whose allocation was lost
	Reused        int64 // allocations at an address that was live: its free was lost
	NoSize        int64 // allocations without a size
	Sliced        int64 // events that stand for others: only slices were recorded
	FirstOutOfFit int64 // ns of the first of these
}

// Partial reports whether the live bytes are not those of the whole job.
func (p Problems) Partial() bool { return p.Reused > 0 || p.NoSize > 0 || p.Sliced > 0 }
