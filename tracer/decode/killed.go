package decode

import "github.com/ebpfprof/ebpfprof/tracer/event"

// lastSamples are the last samples with a stack, by process: where one was that the kernel
// kills. There are some of each, as a process that is killed is sampled on its way out,
// where it has no stack of its own any more.
type lastSamples map[int32]*lastOfProcess

// lastOfProcess are those of a process on the CPU, and those that waited.
type lastOfProcess struct{ onCPU, waited recentSamples }

// recentSamples are the last of one kind.
type recentSamples struct {
	kept []lastSample
	next int // the oldest, once there are so many
}

// mostRecent are kept of each: those of the half second until the tracer learns of it.
const mostRecent = 64

type lastSample struct {
	ns     int64
	tid    int32
	stack  *int64
	spanID int64
}

// freshly is how long one on the CPU is the last one, though others came that waited.
const freshly = 1e9

func (l lastSamples) saw(s *event.Sample) {
	if s.StackID == nil {
		return
	}
	of := l[s.PID]
	if of == nil {
		of = &lastOfProcess{}
		l[s.PID] = of
	}
	r := &of.waited
	if s.State == event.OnCPU {
		r = &of.onCPU
	}
	r.keep(lastSample{s.TSNS, s.TID, s.StackID, s.SpanID})
}

func (r *recentSamples) keep(one lastSample) {
	if len(r.kept) < mostRecent {
		r.kept = append(r.kept, one)
		return
	}
	r.kept[r.next] = one
	r.next = (r.next + 1) % mostRecent
}

// before is the last one until a time; without a stack where there is none.
func (r *recentSamples) before(ns int64) (last lastSample) {
	for _, one := range r.kept {
		if one.ns <= ns && (last.stack == nil || one.ns > last.ns) {
			last = one
		}
	}
	return last
}

// before is the last sample of a process until a time; without a stack where there is none.
func (l lastSamples) before(pid int32, ns int64) lastSample {
	of := l[pid]
	if of == nil {
		return lastSample{}
	}
	onCPU, waited := of.onCPU.before(ns), of.waited.before(ns)
	if onCPU.stack == nil || waited.stack != nil && waited.ns >= onCPU.ns+freshly {
		return waited
	}
	return onCPU
}

// Forget implements Owner.
func (l lastSamples) Forget(pid uint32) { delete(l, int32(pid)) }

// Killed makes the row of a process that the kernel kills since there is no memory left. It
// has the stack of the process's last sample: what the kernel tells has none.
func (d *Decoder) Killed(pid int32, ns int64) {
	d.Rows.Out.Keep(d.samples.read())
	row := event.Memory{TSNS: ns, PID: pid, TID: pid, Space: "host", Level: event.LevelKernel, Action: event.ActionOutOfMemory, Weight: 1}
	if last := d.samples.last.before(pid, ns); last.stack != nil {
		row.TID, row.StackID, row.StackSource, row.SpanID = last.tid, last.stack, event.StackOfLastSample, last.spanID
	}
	d.Rows.Batch.Memory(row, 0)
}
