package kernel

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf/ringbuf"
)

// brokenRing fails after so many records.
type brokenRing struct {
	records int
	err     error
	closed  chan struct{}
}

func (r *brokenRing) ReadInto(record *ringbuf.Record) error {
	if r.records > 0 {
		r.records--
		record.RawSample = make([]byte, lifeRecordBytes)
		return nil
	}
	if r.err != nil {
		return r.err
	}
	<-r.closed
	return os.ErrClosed
}

func (r *brokenRing) Close() error { close(r.closed); return nil }

func TestTheEndOfTheLifeRingIsTold(t *testing.T) {
	broken := errors.New("the ring broke")
	l := readLife(&brokenRing{records: 2, err: broken, closed: make(chan struct{})})
	n := 0
	for range l.Records {
		n++
	}
	if n != 2 || !errors.Is(l.Err, broken) {
		t.Errorf("%d records, then %v", n, l.Err)
	}
}

func TestTheLifeReaderEndsThoughNobodyReceives(t *testing.T) {
	ring := &brokenRing{records: 10 * lifeBacklog, closed: make(chan struct{})}
	l := readLife(ring)
	for len(l.Records) < lifeBacklog {
		time.Sleep(time.Millisecond)
	}
	l.Close()
	ended := make(chan struct{})
	go func() {
		for range l.Records {
		}
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("its goroutine hangs")
	}
}
