package tracer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// lifeRing is where the kernel tells of processes and threads: a ringbuf.Reader.
type lifeRing interface {
	ReadInto(*ringbuf.Record) error
	Close() error
}

// lifeReader passes what the kernel tells of processes on to the manager, on a
// goroutine of its own. records is closed when nothing more comes, and err then
// says why: nil after close.
type lifeReader struct {
	ring    lifeRing
	records chan bpf.CallLifeRecord
	err     error
	damaged atomic.Uint64 // records that did not decode
	stop    chan struct{}
}

// lifeRecordBytes is the size of what comes through the ring.
const lifeRecordBytes = int(unsafe.Sizeof(bpf.CallLifeRecord{}))

// lifeBacklog is how many records wait for the manager before they stay in the ring.
const lifeBacklog = 256

func readLife(ring lifeRing) *lifeReader {
	l := &lifeReader{ring: ring, records: make(chan bpf.CallLifeRecord, lifeBacklog), stop: make(chan struct{})}
	go l.read()
	return l
}

func (l *lifeReader) read() {
	defer close(l.records)
	var record ringbuf.Record
	for {
		err := l.ring.ReadInto(&record)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			l.err = fmt.Errorf("reading the ring buffer of processes: %w", err)
			return
		}
		r, ok := decodeLife(record.RawSample)
		if !ok {
			l.damaged.Add(1)
			continue
		}
		select {
		case l.records <- r:
		case <-l.stop:
			return
		}
	}
}

// close ends the reading, whether or not somebody still receives.
func (l *lifeReader) close() {
	close(l.stop)
	l.ring.Close()
}

// decodeLife reads a record, with its times as /proc here says them.
func decodeLife(raw []byte) (r bpf.CallLifeRecord, ok bool) {
	if len(raw) < lifeRecordBytes {
		return r, false
	}
	if _, err := binary.Decode(raw, binary.NativeEndian, &r); err != nil {
		return r, false
	}
	r.StartTicks, r.ProcessTicks = localTicks(r.StartTicks), localTicks(r.ProcessTicks)
	return r, true
}
