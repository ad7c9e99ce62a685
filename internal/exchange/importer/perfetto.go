package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/klauspost/compress/zlib"
	"google.golang.org/protobuf/encoding/protowire"
)

// perfettoText is a trace in Perfetto's protocol buffers as the same events in Chrome's JSON, which the rest of the import
// reads: slices of track events and stages of GPUs; instants and counters keep their place there and are left out like
// Chrome's. The field numbers are those of Perfetto's protos/perfetto/trace.
type perfettoText struct {
	in   *bufio.Reader
	read int64
	out  []byte
	// ended: the text has its last byte in out.
	ended bool
	any   bool // an event was written

	sequences map[uint64]*perfettoSequence
	tracks    map[uint64]*perfettoTrack
	numbers   map[perfettoLane]int32
	process   int32 // the first that was named: rows of devices are its, if no other is known
	// realtime is what is added to a clock's time, by the clock.
	realtime map[uint64]int64
}

// perfettoSequence is what one writer has said: names by number, and what its packets leave out.
type perfettoSequence struct {
	events, categories, notes, texts, stages map[uint64]string
	clock, track                             uint64
	// clocks of its own count from the last packet.
	clocks map[uint64]*deltaClock
}

type deltaClock struct {
	last, unit  int64
	incremental bool
}

const (
	// mostPacket is larger than any packet: writers flush far earlier.
	mostPacket = 64 << 20
	// perfettoParents is how far a track is looked for its process.
	perfettoParents = 16
	// mostPerfettoNames are kept of a file.
	mostPerfettoNames = 1 << 22

	clockRealtime, clockBoottime = 1, 6
	// Clocks from here to lastSequenceClock are a sequence's own.
	firstSequenceClock, lastSequenceClock = 64, 127

	sliceBegin, sliceEnd, sliceInstant, sliceCounter = 1, 2, 3, 4
)

// isPerfetto reports whether a file begins with a packet, field 1 of a Trace, and not with a line of text.
func isPerfetto(head []byte) bool {
	if len(head) < 4 || head[0] != 0x0a {
		return false
	}
	size, n := protowire.ConsumeVarint(head[1:])
	if n < 0 || size == 0 || size > mostPacket {
		return false
	}
	number, _, n := protowire.ConsumeTag(head[1+n:])
	return n > 0 && number < 1000 && bytes.ContainsFunc(head[:min(len(head), headBytes)], func(r rune) bool {
		return r == utf8.RuneError || r < ' ' && r != '\t' && r != '\n' && r != '\r'
	})
}

func newPerfettoText(in io.Reader) *perfettoText {
	p := &perfettoText{in: bufio.NewReaderSize(in, 1<<18), sequences: map[uint64]*perfettoSequence{}, tracks: map[uint64]*perfettoTrack{},
		numbers: map[perfettoLane]int32{}, realtime: map[uint64]int64{}}
	p.out = append(p.out, `{"traceEvents":[`...)
	return p
}

func (p *perfettoText) Read(b []byte) (int, error) {
	for len(p.out) == 0 {
		if p.ended {
			return 0, io.EOF
		}
		if err := p.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.out)
	p.out = p.out[:copy(p.out, p.out[n:])]
	return n, nil
}

// next reads a packet. A file that ends in the middle of one ends the text without its end.
func (p *perfettoText) next() error {
	tag, err := p.in.ReadByte()
	if errors.Is(err, io.EOF) {
		p.out, p.ended = append(p.out, "]}"...), true
		return nil
	}
	if err != nil {
		return err
	}
	if p.read++; tag != 0x0a {
		return fmt.Errorf("%w: no packet of Perfetto's at byte %d", ErrFormat, p.read-1)
	}
	size, n, err := readVarint(p.in)
	p.read += n
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		p.ended = true
		return nil
	case err != nil:
		return err
	case size > mostPacket:
		return fmt.Errorf("%w: a packet of Perfetto's at byte %d has %d bytes", ErrFormat, p.read, size)
	}
	packet := make([]byte, size)
	if _, err := io.ReadFull(p.in, packet); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			p.ended = true
			return nil
		}
		return err
	}
	p.read += int64(size)
	if err := p.packet(packet, 0); err != nil {
		// Not %w: what ends early is the packet and not the file.
		return fmt.Errorf("%w: a packet of Perfetto's at byte %d: %v", ErrFormat, p.read-int64(size), err)
	}
	return nil
}

func readVarint(in *bufio.Reader) (value uint64, n int64, err error) {
	for shift := 0; shift < 64; shift += 7 {
		b, err := in.ReadByte()
		if err != nil {
			return 0, n, err
		}
		n++
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return value, n, nil
		}
	}
	return 0, n, fmt.Errorf("%w: a length of more than ten bytes", ErrFormat)
}

// field is one of a message. Of numbers and fixed values number is set, of the others value.
type field struct {
	id     protowire.Number
	number uint64
	value  []byte
}

// fieldsOf calls f for each field of a message.
func fieldsOf(message []byte, f func(field) error) error {
	for len(message) > 0 {
		id, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		at := field{id: id}
		switch kind {
		case protowire.VarintType:
			at.number, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			at.number, n = protowire.ConsumeFixed64(message)
		case protowire.Fixed32Type:
			var small uint32
			small, n = protowire.ConsumeFixed32(message)
			at.number = uint64(small)
		case protowire.BytesType:
			at.value, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(id, kind, message)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if err := f(at); err != nil {
			return err
		}
	}
	return nil
}

// parts of a packet that are read.
type parts struct {
	at, clock                                                          uint64
	timed, clocked, cleared                                            bool
	sequence                                                           uint64
	interned, defaults, event, descriptor, snapshot, compressed, stage []byte
}

func (p *perfettoText) packet(packet []byte, depth int) error {
	var of parts
	err := fieldsOf(packet, func(f field) error {
		switch f.id {
		case 8:
			of.at, of.timed = f.number, true
		case 58:
			of.clock, of.clocked = f.number, true
		case 10:
			of.sequence = f.number
		case 13:
			of.cleared = f.number&1 != 0 // SEQ_INCREMENTAL_STATE_CLEARED
		case 6:
			of.snapshot = f.value
		case 11:
			of.event = f.value
		case 12:
			of.interned = f.value
		case 50:
			of.compressed = f.value
		case 53:
			of.stage = f.value
		case 59:
			of.defaults = f.value
		case 60:
			of.descriptor = f.value
		}
		return nil
	})
	if err != nil {
		return err
	}
	if of.compressed != nil {
		if depth > 0 {
			return errors.New("packed packets in packed packets")
		}
		return p.unpack(of.compressed)
	}
	s := p.sequence(of.sequence, of.cleared)
	for _, step := range []struct {
		message []byte
		read    func(*perfettoSequence, []byte) error
	}{{of.interned, p.intern}, {of.defaults, p.assume}, {of.snapshot, p.clocks}, {of.descriptor, p.describe}} {
		if step.message != nil {
			if err := step.read(s, step.message); err != nil {
				return err
			}
		}
	}
	at := p.time(s, &of)
	if of.event != nil {
		return p.event(s, of.event, at)
	}
	if of.stage != nil {
		return p.stage(s, of.stage, at)
	}
	return nil
}

// unpack reads packets that were compressed together.
func (p *perfettoText) unpack(compressed []byte) error {
	z, err := zlib.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return err
	}
	plain, err := io.ReadAll(io.LimitReader(z, mostPacket+1))
	if err != nil {
		return err
	}
	if len(plain) > mostPacket {
		return errors.New("it unpacks to more than any packet")
	}
	return fieldsOf(plain, func(f field) error {
		if f.id != 1 || f.value == nil {
			return nil
		}
		return p.packet(f.value, 1)
	})
}

func (p *perfettoText) sequence(id uint64, cleared bool) *perfettoSequence {
	s := p.sequences[id]
	if s == nil || cleared {
		s = &perfettoSequence{events: map[uint64]string{}, categories: map[uint64]string{}, notes: map[uint64]string{},
			texts: map[uint64]string{}, stages: map[uint64]string{}, clocks: map[uint64]*deltaClock{}}
		p.sequences[id] = s
	}
	return s
}

// intern reads names by number: each message has an iid 1 and a name 2.
func (p *perfettoText) intern(s *perfettoSequence, message []byte) error {
	return fieldsOf(message, func(f field) error {
		var table map[uint64]string
		switch f.id {
		case 1:
			table = s.categories
		case 2:
			table = s.events
		case 3:
			table = s.notes
		case 24:
			table = s.stages
		case 29:
			table = s.texts
		default:
			return nil
		}
		var id uint64
		var name string
		if err := fieldsOf(f.value, func(f field) error {
			switch f.id {
			case 1:
				id = f.number
			case 2:
				name = string(f.value)
			}
			return nil
		}); err != nil {
			return err
		}
		if len(table) >= mostPerfettoNames {
			return errors.New("it has more names than any trace")
		}
		table[id] = name
		return nil
	})
}

// assume reads what a sequence's packets leave out (TracePacketDefaults).
func (p *perfettoText) assume(s *perfettoSequence, message []byte) error {
	return fieldsOf(message, func(f field) error {
		switch f.id {
		case 58:
			s.clock = f.number
		case 11:
			return fieldsOf(f.value, func(f field) error {
				if f.id == 11 {
					s.track = f.number
				}
				return nil
			})
		}
		return nil
	})
}

// clocks reads what several clocks said at one time (ClockSnapshot).
func (p *perfettoText) clocks(s *perfettoSequence, message []byte) error {
	type reading struct {
		id   uint64
		at   int64
		unit int64
	}
	var all []reading
	err := fieldsOf(message, func(f field) error {
		if f.id != 1 {
			return nil
		}
		r, incremental := reading{unit: 1}, false
		err := fieldsOf(f.value, func(f field) error {
			switch f.id {
			case 1:
				r.id = f.number
			case 2:
				r.at = int64(f.number)
			case 3:
				incremental = f.number != 0
			case 4:
				r.unit = int64(f.number)
			}
			return nil
		})
		if r.id >= firstSequenceClock && r.id <= lastSequenceClock {
			s.clocks[r.id] = &deltaClock{last: r.at * r.unit, unit: r.unit, incremental: incremental}
			r.at *= r.unit
		}
		all = append(all, r)
		return err
	})
	if err != nil {
		return err
	}
	for _, wall := range all {
		if wall.id != clockRealtime {
			continue
		}
		for _, r := range all {
			if _, known := p.realtime[r.id]; !known || r.id >= firstSequenceClock { // one offset for all: times stay in order
				p.realtime[r.id] = wall.at - r.at
			}
		}
	}
	return nil
}

// time is when a packet is from, of the wall clock if the file says how far apart they are.
func (p *perfettoText) time(s *perfettoSequence, of *parts) int64 {
	clock := of.clock
	if !of.clocked {
		clock = s.clock
	}
	if clock == 0 {
		clock = clockBoottime
	}
	at := int64(of.at)
	if c := s.clocks[clock]; c != nil && of.timed {
		if at *= c.unit; c.incremental {
			c.last += at
			at = c.last
		}
	}
	return at + p.realtime[clock]
}
