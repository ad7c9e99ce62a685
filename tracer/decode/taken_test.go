package decode

import (
	"bytes"
	"os"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

func TestTakenRecordsAreWhatWasAddedAndAligned(t *testing.T) {
	var taken takenRecords
	for range 2 {
		taken.clear()
		var want [][]byte
		for n := 1; n < 40; n += 3 {
			raw := bytes.Repeat([]byte{byte(n)}, n)
			want = append(want, bytes.Clone(raw))
			taken.add(raw)
			clear(raw) // the ring is written on
		}
		i := 0
		for raw := range taken.all() {
			if !bytes.Equal(raw, want[i]) || uintptr(unsafe.Pointer(&raw[0]))%8 != 0 {
				t.Errorf("record %d: %v, want %v", i, raw, want[i])
			}
			i++
		}
		if i != len(want) {
			t.Errorf("%d records of %d", i, len(want))
		}
	}
	for len(taken.bytes) < takenBytes {
		taken.add(make([]byte, 4096))
	}
	if n := len(taken.bytes); n > takenBytes+4096 {
		t.Errorf("%d bytes were taken before it was full", n)
	}
}

// fakeRing is a ring of samples; read is told of each record that is taken out.
type fakeRing struct {
	mu      sync.Mutex
	records [][]byte
	read    func(raw []byte)
}

func (r *fakeRing) put(raw []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, raw)
}

func (r *fakeRing) ReadInto(record *ringbuf.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.records) == 0 {
		return os.ErrDeadlineExceeded
	}
	record.RawSample = append(record.RawSample[:0], r.records[0]...)
	r.records = r.records[1:]
	r.read(record.RawSample)
	return nil
}

func (r *fakeRing) AvailableBytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.records)
}

func (*fakeRing) SetDeadline(time.Time) {}

// To read a symbol table takes up to seconds, in which a job ends: what comes meanwhile is
// taken, and read of the job, before the table is there.
func TestWhatComesWhileASymbolTableIsReadIsTaken(t *testing.T) {
	d, _, _ := testDecoder(t)
	stack := func(id uint64) []byte {
		raw := make([]byte, stacks.StackBytes+8)
		r := (*bpf.SampleStackRecord)(unsafe.Pointer(&raw[0]))
		r.Kind, r.Id, r.Tgid, r.Kernel = uint8(bpf.CallRecordKindRECORD_STACK), id, 10, 1
		return raw
	}
	taken := make(chan struct{})
	ring := &fakeRing{read: func(raw []byte) {
		if (*bpf.SampleStackRecord)(unsafe.Pointer(&raw[0])).Id == 2 {
			close(taken)
		}
	}}
	d.samples.ring = ring
	slow := 0
	stacks.Beside(d.Rows.Stacks, func(read func()) {
		d.samples.beside(func() {
			slow++
			ring.put(stack(2))
			select {
			case <-taken:
			case <-time.After(20 * time.Second):
				t.Error("the ring was not read meanwhile")
			}
			read()
		})
	})
	ring.put(stack(1))
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	if slow != 1 {
		t.Errorf("%d tables were read", slow)
	}
	for id := uint64(1); id <= 2; id++ {
		if !d.Rows.Stacks.Knows(id) {
			t.Errorf("stack %d was lost", id)
		}
	}
}
