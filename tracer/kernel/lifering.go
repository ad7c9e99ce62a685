package kernel

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

// LifeReader passes what the kernel tells of processes on to the manager, on a
// goroutine of its own. records is closed when nothing more comes, and err then
// says why: nil after close.
type LifeReader struct {
	ring    lifeRing
	Records chan bpf.CallLifeRecord
	Err     error
	Damaged atomic.Uint64 // records that did not decode
	stop    chan struct{}
}

// lifeRecordBytes is the size of what comes through the ring.
const lifeRecordBytes = int(unsafe.Sizeof(bpf.CallLifeRecord{}))

// lifeBacklog is how many records wait for the manager before they stay in the ring.
const lifeBacklog = 256

func (k *Programs) OpenLifeRing() (*LifeReader, error) {
	ring, err := ringbuf.NewReader(k.call.Maps["life"])
	if err != nil {
		return nil, fmt.Errorf("opening the ring buffer of processes: %w", err)
	}
	return readLife(ring), nil
}

func readLife(ring lifeRing) *LifeReader {
	l := &LifeReader{ring: ring, Records: make(chan bpf.CallLifeRecord, lifeBacklog), stop: make(chan struct{})}
	go l.read()
	return l
}

func (l *LifeReader) read() {
	defer close(l.Records)
	var record ringbuf.Record
	for {
		err := l.ring.ReadInto(&record)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			l.Err = fmt.Errorf("reading the ring buffer of processes: %w", err)
			return
		}
		r, ok := decodeLife(record.RawSample)
		if !ok {
			l.Damaged.Add(1)
			continue
		}
		select {
		case l.Records <- r:
		case <-l.stop:
			return
		}
	}
}

// Close ends the reading, whether or not a receiver is left.
func (l *LifeReader) Close() {
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
