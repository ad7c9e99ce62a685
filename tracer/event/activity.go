package event

import (
	"encoding/binary"
	"errors"
	"io"
)

// ActivityChunk is what a library inside a job handed over at once of what a device did: bytes that the job could have
// made up.
type ActivityChunk struct {
	TSNS  int64 // when, CLOCK_MONOTONIC
	PID   int32 // in the tracer's pid namespace
	Bytes []byte
}

// ActivityChunkBytes is how large a chunk is at the most.
const ActivityChunkBytes = 8192

// ErrActivityChunk: a stream has something else than chunks.
var ErrActivityChunk = errors.New("no chunk of activities")

const activityHeader = 16

// AppendTo writes the chunk behind b, as ReadNext reads it.
func (c *ActivityChunk) AppendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(c.TSNS))
	b = binary.LittleEndian.AppendUint32(b, uint32(c.PID))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Bytes)))
	return append(b, c.Bytes...)
}

// ReadNext reads the next chunk of a stream into c, whose Bytes it reuses; io.EOF at the end.
func (c *ActivityChunk) ReadNext(r io.Reader) error {
	var header [activityHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return err
	}
	c.TSNS = int64(binary.LittleEndian.Uint64(header[:]))
	c.PID = int32(binary.LittleEndian.Uint32(header[8:]))
	length := binary.LittleEndian.Uint32(header[12:])
	if length > ActivityChunkBytes {
		return ErrActivityChunk
	}
	if cap(c.Bytes) < ActivityChunkBytes {
		c.Bytes = make([]byte, ActivityChunkBytes)
	}
	c.Bytes = c.Bytes[:length]
	if _, err := io.ReadFull(r, c.Bytes); err != nil {
		return io.ErrUnexpectedEOF
	}
	return nil
}
