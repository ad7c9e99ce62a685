// Package cupti reads what the library of `run --device-times cupti` hands over of CUPTI's records (the format is in
// internal/record/injection/cupti/records.h). The process that it is in could have made it up: nothing is believed beyond
// what a bound allows.
package cupti

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

const (
	magic       = 0x31435045
	chunkHeader = 32
)

// Kinds of records.
const (
	kindState = iota + 1
	kindClock
	kindName
	kindKernel
	kindCopy
	kindSet
	kindWait
	kindCall
	kindLost
)

// sizes of the records, without what follows a name.
var sizes = map[uint16]int{
	kindState: 280, kindClock: 32, kindName: 24, kindKernel: 88, kindCopy: 64, kindSet: 64, kindWait: 40, kindCall: 40, kindLost: 32,
}

// Kind says what a device did.
type Kind uint8

const (
	Kernel Kind = iota + 1
	Copy
	Set
	Wait
)

// Work is one thing that a device did, or one wait for it. Times are CLOCK_MONOTONIC.
type Work struct {
	PID                     int32
	Kind                    Kind
	Correlation             uint32 // of the Call that gave it to the device
	StartNS, EndNS          int64
	Name                    string // of a kernel; "" where it was lost
	Node                    uint64 // of a graph, by CUPTI's number; 0 of other work
	Device, Context, Stream uint32
	Bytes                   uint64
	Grid, Block             [3]uint32
	Shared                  uint32
	Way                     uint32 // of a copy, CUpti_ActivityMemcpyKind; of a wait, CUpti_ActivitySynchronizationType
}

// Call is a call of the driver or of the runtime that gave a device work.
type Call struct {
	PID            int32
	Correlation    uint32
	Thread         int32 // as the process itself numbers it
	Driver         bool
	StartNS, EndNS int64
}

// State is what a process's library says of itself.
type State struct {
	PID     int32
	Version uint32 // CUPTI's
	OwnPID  int32  // the process's number for itself
	State   uint32
	Code    int32
	Text    string // where libcupti is, or what it lacks or refused
}

// Recording is the State.State of a library whose CUPTI records.
const Recording = 0

// String is a sentence about a library that does not record; "" of one that does.
func (s State) String() string {
	switch s.State {
	case Recording:
		return ""
	case 1:
		return "no libcupti was found: put its directory into LD_LIBRARY_PATH " +
			"(pip's nvidia-cuda-cupti has it, and the CUDA toolkit in extras/CUPTI/lib64)"
	case 2:
		return fmt.Sprintf("libcupti is too old: it has no %s; CUDA 12.0 to 13.2 have what is needed", s.Text)
	case 3:
		return fmt.Sprintf("CUPTI has version %d, whose records are not known: CUDA 12.0 to 13.2 are", s.Version)
	case 4:
		return fmt.Sprintf("CUPTI refused %s with its error %d: is another profiler in the job?", s.Text, s.Code)
	}
	return fmt.Sprintf("the library in the job is in a state that is not known, %d", s.State)
}

// record is one record of a chunk, whose size was checked.
type record []byte

func (r record) kind() uint16      { return binary.LittleEndian.Uint16(r) }
func (r record) size() int         { return int(binary.LittleEndian.Uint16(r[2:])) }
func (r record) u32(at int) uint32 { return binary.LittleEndian.Uint32(r[at:]) }
func (r record) u64(at int) uint64 { return binary.LittleEndian.Uint64(r[at:]) }
func (r record) three(at int) (n [3]uint32) {
	for i := range n {
		n[i] = r.u32(at + 4*i)
	}
	return n
}

// records calls each for the records of a chunk, and reports whether all of it was one.
func records(chunk []byte, each func(version uint32, r record)) bool {
	if len(chunk) < chunkHeader {
		return false
	}
	head := record(chunk)
	length, left := int(head.u32(4)), head.u32(8)
	if head.u32(0) != magic || length < chunkHeader || length > len(chunk) {
		return false
	}
	for rest := chunk[chunkHeader:length]; left > 0; left-- {
		if len(rest) < 8 {
			return false
		}
		size, known := sizes[record(rest).kind()]
		given := record(rest).size()
		if !known || given < size || given > len(rest) || given%8 != 0 {
			return false
		}
		each(head.u32(12), record(rest[:given]))
		rest = rest[given:]
	}
	return true
}

func (r record) state(pid int32, version uint32) State {
	text := r[24:280]
	return State{PID: pid, Version: version, State: r.u32(8), Code: int32(r.u32(12)), OwnPID: int32(r.u32(20)),
		Text: string(bytes.ToValidUTF8(text[:min(int(r.u32(16)), len(text))], []byte("?")))}
}

// name is what stands for a name, and the name.
func (r record) name() (id uint64, text string, ok bool) {
	length := int(r.u32(16))
	if length > len(r)-24 {
		return 0, "", false
	}
	text = string(bytes.ToValidUTF8(r[24:24+length], []byte("?")))
	if r.u32(20) > 0 {
		text += "…"
	}
	return r.u64(8), text, true
}

// longest is what a device can have been at one thing, at most: times that are farther apart are made up.
const longest = 24 * 3600 * 1e9

// interval moves a record's times to CLOCK_MONOTONIC; false if they are invalid, or if no reading of both clocks came before
// them: the chunk that had it was lost.
func (r record) interval(c *clock) (start, end int64, ok bool) {
	s, e := r.u64(8), r.u64(16)
	if c.readings == 0 || s == 0 || e < s || e-s > longest || e > math.MaxInt64/2 {
		return 0, 0, false
	}
	start = c.monotonic(int64(s))
	return start, start + int64(e-s), true
}
