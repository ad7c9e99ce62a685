package tracer

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

const (
	sampleBytes = int(unsafe.Sizeof(bpf.SampleSampleRecord{}))
)

// sampleRecord decodes one record of the ring of samples.
func (d *decoder) sampleRecord(raw []byte) {
	if len(raw) == 0 {
		d.damaged++
		return
	}
	switch bpf.CallRecordKind(raw[0]) {
	case bpf.CallRecordKindRECORD_STACK:
		r, ok := stacks.Parse(raw)
		if !ok {
			d.damaged++
			return
		}
		d.stacks.Add(&r)
	case bpf.CallRecordKindRECORD_SAMPLE:
		if len(raw) < sampleBytes || uintptr(unsafe.Pointer(&raw[0]))%8 != 0 {
			d.damaged++
			return
		}
		d.sample((*bpf.SampleSampleRecord)(unsafe.Pointer(&raw[0])))
	default:
		d.damaged++
	}
}

// sampleCauses are the words for enum sample_state.
var sampleCauses = map[bpf.SampleSampleState]string{
	bpf.SampleSampleStateSAMPLE_IN_SYSCALL: CauseSyscall,
	bpf.SampleSampleStateSAMPLE_IN_FAULT:   CauseFault,
	bpf.SampleSampleStateSAMPLE_PREEMPTED:  CausePreempted,
	bpf.SampleSampleStateSAMPLE_STOPPED:    CauseStopped,
}

func (d *decoder) sample(r *bpf.SampleSampleRecord) {
	s := Sample{
		TSNS: int64(r.TsNs) + d.offsetNS, PID: int32(r.Tgid), TID: int32(r.Tid), CPU: int32(r.Cpu), State: OffCPU,
		Cause: sampleCauses[bpf.SampleSampleState(r.State)], WeightNS: int64(r.WeightNs), SpanID: int64(r.SpanId),
		HoldsGIL: known(r.HoldsGil), InGC: known(r.InGc),
	}
	if s.Cause == "" {
		s.State = OnCPU
	}
	if r.StackId != 0 {
		s.StackID = d.stacks.Resolve(r.StackId)
	}
	if r.Syscall >= 0 {
		s.Syscall = syscallName(r.Syscall)
	}
	if r.Waker != 0 {
		waker := int32(r.Waker)
		s.WakerTID = &waker
	}
	d.samples = append(d.samples, s)
	d.totals.Samples++
	d.introduce(s.PID, s.TID, s.TSNS)
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

// readSamples reads what is in the ring of samples, without waiting: it comes
// before the spans that refer to its stacks are handed on.
func (d *decoder) readSamples() error {
	if d.sampleRing == nil {
		return nil
	}
	bytes := d.sampleRing.AvailableBytes()
	d.sampled, d.behind = bytes > 0, bytes > kernel.SampleRingBytes/16
	d.sampleRing.SetDeadline(time.Unix(1, 0))
	for {
		err := d.sampleRing.ReadInto(&d.sampleBuffer)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ringbuf.ErrFlushed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the ring buffer of samples: %w", err)
		}
		d.sampleRecord(d.sampleBuffer.RawSample)
	}
}

// flushSamples hands stacks and samples to the sink, the stacks first, and
// gives the spans and the memory rows the ids of theirs.
func (d *decoder) flushSamples() error {
	if err := d.readSamples(); err != nil {
		return err
	}
	d.resolveStacks()
	if rows := d.stacks.TakeRows(); len(rows) > 0 {
		if err := d.sink.Stacks(rows); err != nil {
			return err
		}
	}
	if len(d.samples) > 0 {
		if err := d.sink.Samples(d.samples); err != nil {
			return err
		}
		d.samples = d.samples[:0]
	}
	return nil
}
