package decode

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
	"github.com/ebpfprof/ebpfprof/tracer/transfers"
)

const (
	sampleBytes = int(unsafe.Sizeof(bpf.SampleSampleRecord{}))
	ioBytes     = int(unsafe.Sizeof(bpf.SampleIoRecord{}))
	ioCallBytes = int(unsafe.Sizeof(bpf.SampleIoCallRecord{}))
	ioPathBytes = int(unsafe.Sizeof(bpf.SampleIoPathRecord{}))
)

// samples makes rows of what is in the ring of samples: samples, and the stacks of those
// and of calls.
type samples struct {
	rows     *rows.Rows
	threads  *sampledThreads
	last     lastSamples
	io       *transfers.Table
	offsetNS int64      // Unix epoch minus CLOCK_MONOTONIC
	ring     sampleRing // nil: nothing takes stacks
	buffer   ringbuf.Record
	taken    takenRecords
	tookAt   time.Time                            // when the ring was last empty, or taken was full
	failed   error                                // of a take while others were decoded
	called   func(pid uint32, from *cpython.Code) // a call's stack is there; may be nil
	damaged  uint64                               // records that did not decode
	any      bool                                 // something was in the ring at the last look
	behind   bool                                 // so much that the next look comes soon
}

// sampleRing is what samples come from.
type sampleRing interface {
	ReadInto(*ringbuf.Record) error
	AvailableBytes() int
	SetDeadline(time.Time)
}

func newSamples(to *rows.Rows, offsetNS int64, waits bool, giveUp func()) *samples {
	s := &samples{rows: to, threads: newSampledThreads(&to.Out), last: lastSamples{}, offsetNS: offsetNS}
	s.io = transfers.New(offsetNS, waits, func(w event.Warning) { to.Out.Add(&event.Batch{Warnings: []event.Warning{w}}) }, giveUp)
	return s
}

// HeldIO makes rows of what the kernel has not sent yet of the threads' reads and writes,
// up to a time, CLOCK_MONOTONIC: of threads that have read or written nothing since.
// What is in the ring was sent before, and is read before.
func (d *Decoder) HeldIO(threads iter.Seq2[uint32, *bpf.SampleIoThread], before uint64) error {
	s := d.samples
	if err := s.read(); err != nil {
		return err
	}
	for tid, of := range threads {
		for slot := range of.Slots {
			if row, ok := s.io.Held(tid, of, slot, before); ok {
				s.rows.Batch.IO(row)
			}
		}
	}
	return nil
}

// read reads what is in the ring, without waiting: it comes before the rows that refer to
// its stacks are handed on.
func (s *samples) read() error {
	if s.ring == nil {
		return nil
	}
	bytes := s.ring.AvailableBytes()
	s.any, s.behind = bytes > 0, bytes > kernel.SampleRingBytes/16
	s.ring.SetDeadline(time.Unix(1, 0))
	for {
		more, err := s.take(takenBytes)
		if err != nil {
			return err
		}
		for raw := range s.taken.all() {
			s.record(raw)
			s.takeOn()
		}
		s.taken.clear()
		if s.failed != nil {
			return s.failed
		}
		if !more {
			return nil
		}
	}
}

// take takes records out of the ring until about so many bytes are there, and reads what
// their Python code is called: the job may end at any moment, and to name a native frame a
// symbol table may have to be read first, which takes up to seconds. more reports whether
// it stopped for want of room.
func (s *samples) take(most int) (more bool, err error) {
	defer func() { s.tookAt = time.Now() }()
	for len(s.taken.bytes) < most {
		err := s.ring.ReadInto(&s.buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ringbuf.ErrFlushed) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading the ring buffer of samples: %w", err)
		}
		raw := s.buffer.RawSample
		if len(raw) > 0 && bpf.CallRecordKind(raw[0]) == bpf.CallRecordKindRECORD_STACK {
			if r, ok := stacks.Parse(raw); ok {
				if from := stacks.ReadPython(s.rows.Stacks, &r); from != nil && s.called != nil {
					s.called(r.Tgid, from)
				}
			}
		}
		s.taken.add(raw)
	}
	return true, nil
}

// takeOn takes what has come since while records are decoded, now and then: what the
// Python code in it is called can be read while the job lives, and not later.
func (s *samples) takeOn() {
	if len(s.taken.ends) > 0 && s.failed == nil && time.Since(s.tookAt) >= pollWait {
		_, s.failed = s.take(takenMost)
	}
}

// beside runs something that takes long, as the reading of a symbol table does, and takes
// on meanwhile.
func (s *samples) beside(slow func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		slow()
	}()
	tick := time.NewTicker(pollWait)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			s.takeOn()
		}
	}
}

// record decodes one record.
func (s *samples) record(raw []byte) {
	if len(raw) == 0 {
		s.damaged++
		return
	}
	switch bpf.CallRecordKind(raw[0]) {
	case bpf.CallRecordKindRECORD_STACK:
		r, ok := stacks.Parse(raw)
		if !ok {
			s.damaged++
			return
		}
		s.rows.Stacks.Add(&r)
	case bpf.CallRecordKindRECORD_SAMPLE:
		if r := of[bpf.SampleSampleRecord](s, raw, sampleBytes); r != nil {
			s.sample(r)
		}
	case bpf.CallRecordKindRECORD_IO:
		if r := of[bpf.SampleIoRecord](s, raw, ioBytes); r != nil {
			if row, ok := s.io.Sums(r); ok {
				s.rows.Batch.IO(row)
			}
		}
	case bpf.CallRecordKindRECORD_IO_CALL:
		if r := of[bpf.SampleIoCallRecord](s, raw, ioCallBytes); r != nil {
			s.rows.Sums.Totals.Spans++
			s.rows.Batch.Span(s.io.Call(r, syscallName(r.Syscall)))
		}
	case bpf.CallRecordKindRECORD_IO_PATH:
		if r := of[bpf.SampleIoPathRecord](s, raw, ioPathBytes); r != nil {
			s.io.Path(r)
		}
	default:
		s.damaged++
	}
}

// of is a record as the kernel wrote it; nil where it is none.
func of[T any](s *samples, raw []byte, bytes int) *T {
	if len(raw) < bytes || uintptr(unsafe.Pointer(&raw[0]))%8 != 0 {
		s.damaged++
		return nil
	}
	return (*T)(unsafe.Pointer(&raw[0]))
}

// sampleCauses are the words for enum sample_state.
var sampleCauses = map[bpf.SampleSampleState]string{
	bpf.SampleSampleStateSAMPLE_IN_SYSCALL: event.CauseSyscall,
	bpf.SampleSampleStateSAMPLE_IN_FAULT:   event.CauseFault,
	bpf.SampleSampleStateSAMPLE_PREEMPTED:  event.CausePreempted,
	bpf.SampleSampleStateSAMPLE_STOPPED:    event.CauseStopped,
}

func (s *samples) sample(r *bpf.SampleSampleRecord) {
	row := event.Sample{
		TSNS: int64(r.TsNs) + s.offsetNS, PID: int32(r.Tgid), TID: int32(r.Tid), CPU: int32(r.Cpu), State: event.OffCPU,
		Cause: sampleCauses[bpf.SampleSampleState(r.State)], WeightNS: int64(r.WeightNs), ReadyNS: int64(r.ReadyNs), SpanID: int64(r.SpanId),
		HoldsGIL: known(r.HoldsGil), InGC: known(r.InGc),
	}
	if row.Cause == "" {
		row.State = event.OnCPU
	}
	if r.StackId != 0 {
		row.StackID = s.rows.Stacks.Resolve(r.StackId)
	}
	if r.Syscall >= 0 {
		row.Syscall = syscallName(r.Syscall)
	}
	if r.Waker != 0 {
		waker := int32(r.Waker)
		row.WakerTID = &waker
	}
	s.rows.Batch.Sample(row)
	s.last.saw(&row)
	s.threads.saw(row.PID, row.TID, row.TSNS)
}

// known is a flag of a walk: 0 no, 1 yes, else not known.
func known(flag uint8) *bool {
	if flag > 1 {
		return nil
	}
	yes := flag == 1
	return &yes
}

func syscallName(number int32) string {
	if name, ok := syscallNames[number]; ok {
		return name
	}
	return fmt.Sprintf("syscall_%d", number)
}
