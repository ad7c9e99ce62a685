package waits

import (
	"encoding/binary"
	"hash/fnv"
	"strconv"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// group is a group of ranks in one process.
type group struct {
	event.Communicator
	issued    bool
	completed bool
}

type groupKey struct {
	pid     int32
	address uint64
	ended   bool // the process has: another one may get its number
}

// group finds a group, or reads what it is.
func (s *State) group(pid int32, address uint64, runtime string) *group {
	key := groupKey{pid: pid, address: address}
	if g := s.groups[key]; g != nil {
		return g
	}
	g := &group{Communicator: event.Communicator{PID: pid, Handle: int64(address), Runtime: runtime}}
	if o, ok := readObject(s.memory, pid, address); ok {
		g.Rank, g.Ranks, g.Name, g.Description = &o.rank, &o.ranks, o.name, o.description
		g.ID = s.identity(pid, g)
	}
	if !s.groups.room(s.of, pid) {
		s.Dropped++
		return g
	}
	s.groups[key] = g
	s.of.process(pid).groups++
	return g
}

// again finds a group for a collective of this number. Numbers only grow: where one is far
// below the last, or the first, the address is another group's by now.
func (s *State) again(pid int32, address uint64, runtime string, number int64) *group {
	g := s.group(pid, address, runtime)
	const reordered = 64 // threads that ask at once
	if g.issued && number >= 0 && (*g.IssuedNumber-number > reordered || number == 0 && *g.IssuedNumber > 0) {
		s.of.process(pid).groups--
		delete(s.groups, groupKey{pid: pid, address: address})
		g = s.group(pid, address, runtime)
	}
	return g
}

// identity hashes what all ranks of a group know of it, and others do not. Where a
// group has no name (before 2.1), only the one of all ranks can be told from others.
func (s *State) identity(pid int32, g *group) *int64 {
	job, name := s.jobs[pid], g.Name
	if name == "" {
		if job.WorldSize == nil || *job.WorldSize != *g.Ranks {
			return nil
		}
		name = "of all ranks"
	}
	hash := fnv.New64a()
	for _, part := range []string{"c10d", job.ID, g.Runtime, name, strconv.Itoa(int(*g.Ranks))} {
		hash.Write([]byte(part))
		hash.Write([]byte{0})
	}
	id := int64(hash.Sum64() &^ (1 << 63))
	return &id
}

// describe gives a call its group, and its number in it unless that is negative.
func (g *group) describe(span *event.Span, number int64) {
	d := span.MakeDetail()
	handle := g.Handle
	d.CommunicatorHandle, d.Communicator, d.Rank, d.Ranks = &handle, g.ID, g.Rank, g.Ranks
	if number >= 0 {
		span.SequenceNumber = number
	}
}

// asked notes the last collective that the process asked for.
func (g *group) asked(number int64, span *event.Span) {
	if g.issued && *g.IssuedNumber > number {
		return
	}
	start := span.StartNS
	g.issued, g.IssuedNumber, g.IssuedName, g.IssuedNS = true, &number, span.Call.Name, &start
}

// ended notes the last collective that has ended.
func (g *group) ended(number, nowNS int64) {
	if g.completed && *g.CompletedNumber > number {
		return
	}
	g.completed, g.CompletedNumber, g.CompletedNS = true, &number, &nowNS
}

// The number of a collective, of what its group had counted when the call that asks for
// it began, and when that had queued it. Gloo's are from 0: what is counted is the next
// one's tag. NCCL's are from 1: what is counted is the last one's number.
func issuedNumber(runtime string, counted int64) int64 {
	if runtime == "nccl" && counted >= 0 {
		return counted + 1
	}
	return counted
}

func queuedNumber(runtime string, counted int64) int64 {
	if runtime != "nccl" && counted >= 0 {
		return counted - 1
	}
	return counted
}

// object is what a group says of itself.
type object struct {
	rank, ranks       int32
	name, description string
}

const (
	// objectBytes is as much of a group as is read.
	objectBytes = 0x70
	// mostRanks bounds what is taken for the size of a group.
	mostRanks = 1 << 22
	// mostName is how long a group's name or description may be.
	mostName = 128
)

// readObject reads rank and size of a c10d::Backend (ProcessGroup before 2.0). They
// follow its vtable pointer and reference counts: two words of those until 2.8, one since
// (as in tracer/tensor). A count is never a rank and a size, so the place shows. Behind
// them lie the debug level and, since 2.1, two strings: pg_uid_ and pg_desc_.
func readObject(memory MemoryReader, pid int32, address uint64) (o object, ok bool) {
	var b [objectBytes]byte
	if memory.Read(uint32(pid), address, b[:]) != nil {
		return o, false
	}
	for _, at := range []int{16, 24} {
		rank, ranks := int32(binary.LittleEndian.Uint32(b[at:])), int32(binary.LittleEndian.Uint32(b[at+4:]))
		if rank < 0 || ranks <= rank || ranks > mostRanks {
			continue
		}
		o.rank, o.ranks = rank, ranks
		name, named := readString(memory, pid, address+uint64(at)+16, b[at+16:])
		description, described := readString(memory, pid, address+uint64(at)+48, b[at+48:])
		if named && described {
			o.name, o.description = name, description
		}
		return o, true
	}
	return o, false
}

// readString reads a std::string of libstdc++ (pointer, length, and 16 bytes: the
// characters of a short one, the capacity of a long one) that lies at an address; false
// where the pointer leads to none.
func readString(memory MemoryReader, pid int32, address uint64, b []byte) (string, bool) {
	if len(b) < 32 {
		return "", false
	}
	pointer, length := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	text := []byte(nil)
	switch {
	case length > mostName:
		return "", false
	case pointer == address+16:
		if length > 15 {
			return "", false
		}
		text = b[16 : 16+length]
	case binary.LittleEndian.Uint64(b[16:]) < length:
		return "", false
	default:
		text = make([]byte, length)
		if length > 0 && memory.Read(uint32(pid), pointer, text) != nil {
			return "", false
		}
	}
	for _, c := range text {
		if c < ' ' || c > '~' {
			return "", false
		}
	}
	return string(text), true
}
