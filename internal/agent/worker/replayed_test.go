package worker

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// replayed is a job of two ranks whose events are made up for as long as is wanted, as the
// kernel would have made them: records of its calls, which the tracer's own decoder reads,
// and samples, stacks and processes as the tracer tells them.
type replayed struct {
	to     event.Sink
	random *rand.Rand
	now    int64 // ns; the job's clock
	id     uint64
	ranks  [2]rank
	looked int64 // when the last samples were taken
	epoch  int64 // when its loader workers began
	next   int32 // pid of the next one
	often  []int64
	once   int64 // id of the last stack that is seen once
	slower float64
	calls  []*event.Call
	decode *decode.Replay
	events int64
}

type rank struct {
	pid     int32
	loaders []int32
	number  int64 // of its last collective
}

const (
	stepNS     = 500e6
	epochNS    = 300e9
	loaders    = 4
	newShare   = 0.3 // of looks find a stack that was never seen
	oftenSeen  = 300 // stacks are most others
	nativeDeep = 40
	recordSize = int(unsafe.Sizeof(bpf.CallCallRecord{}))
	opsOfAStep = 300 // in a window
)

// The calls of the job, by their places.
const (
	callLoad = iota
	callBackward
	callOptimize
	callReduce
	callOp
)

var reduction = &event.Call{Layer: "collective", Category: "work", Name: "allreduce"}

func newReplayed(begin int64) *replayed {
	r := &replayed{random: rand.New(rand.NewPCG(1, 2)), now: begin, looked: begin, id: 1, next: 10_000, once: 1 << 40, slower: 1,
		calls: []*event.Call{
			callLoad:     {Layer: "scope", Name: "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"},
			callBackward: {Layer: "autograd", Category: "backward", Name: "Engine::execute"},
			callOptimize: {Layer: "scope", Name: "Optimizer.step#AdamW.step"},
			callReduce:   {Layer: "collective", Category: "", Name: "allreduce"},
			callOp:       {Layer: "op", Category: "forward", Name: "aten::mm"},
		}}
	r.ranks = [2]rank{{pid: 1000}, {pid: 2000}}
	return r
}

// begin has a session's sink take what follows: it is told first what there is.
func (r *replayed) begin(to event.Sink) error {
	r.to, r.decode = to, decode.NewReplay(to, r.calls)
	var err error
	for i := range r.ranks {
		number := int32(i)
		err = errors.Join(err, to.Write(&event.Batch{Processes: []event.Process{{ID: int64(r.ranks[i].pid), PID: r.ranks[i].pid, StartedNS: r.now,
			Rank: &number}}}))
		for _, pid := range r.ranks[i].loaders {
			err = errors.Join(err, r.process(i, pid, nil))
		}
	}
	r.often = r.often[:0]
	for k := range int64(oftenSeen) {
		r.often = append(r.often, k+1)
		err = errors.Join(err, to.Write(&event.Batch{Stacks: []event.Stack{r.stack(k+1, int(k))}}))
	}
	return err
}

func (r *replayed) process(of int, pid int32, ended *int64) error {
	parent := r.ranks[of].pid
	return errors.Join(r.to.Write(&event.Batch{Processes: []event.Process{{ID: int64(pid), PID: pid, ParentPID: &parent, StartedNS: r.epoch,
		EndedNS: ended}}}),
		r.to.Write(&event.Batch{Threads: []event.Thread{{PID: pid, TID: pid, Name: "pt_data_worker", EndedNS: ended}}}))
}

var natives = func() (names [400]string) {
	for i := range names {
		names[i] = fmt.Sprintf("at::native::some_function_of_the_framework_%d", i)
	}
	return names
}()

// stack is one as a training step has them: a few Python functions, below many of the
// framework's, of which the innermost differ.
func (r *replayed) stack(id int64, form int) event.Stack {
	frames := make([]event.Frame, 0, nativeDeep+8)
	for k := range nativeDeep {
		f := (int(id)*31 + k*k) % len(natives)
		frames = append(frames, event.Frame{Kind: symbolize.Native, Function: natives[f], Module: "libtorch_cpu.so", Offset: int64(f)<<12 +
			id%64*16})
	}
	switch form % 4 {
	case 0:
		frames = append(frames, event.Frame{Kind: symbolize.Native, Function: "c10d::Work::wait", Module: "libtorch_cpu.so"})
	case 1:
		frames = append(frames, event.Frame{Kind: symbolize.Native, Function: "at::_ops::mm::call", Module: "libtorch_cpu.so"})
	}
	for k := range 7 {
		frames = append(frames, event.Frame{Kind: symbolize.Python, Function: "forward", File: fmt.Sprintf("/home/u/model%d.py", k),
			Line: int32(form%50 + k)})
	}
	var folded strings.Builder
	for i := range frames {
		folded.WriteString(frames[len(frames)-1-i].Function)
		folded.WriteByte(';')
	}
	return event.Stack{ID: id, Frames: frames, Folded: folded.String(), Status: event.StackComplete}
}

// record is a call of a rank's main thread, as the kernel tells it.
func (r *replayed) record(pid int32, call int, start, duration int64) error {
	r.id++
	r.events++
	record := bpf.CallCallRecord{Kind: uint8(bpf.CallRecordKindRECORD_SPAN), End: uint8(event.EndExitSite), Status: uint8(event.StatusOK),
		Spec:   uint32(call),
		SpanId: r.id, StartNs: uint64(start), EndNs: uint64(start + duration), Tgid: uint32(pid), Tid: uint32(pid), Sequence: math.MaxUint64,
		Epoch: 1}
	return r.decode.Record(unsafe.Slice((*byte)(unsafe.Pointer(&record)), recordSize))
}

// step is one of all ranks: they load, compute, reduce, and step the optimizer together.
// In a window its operators are recorded, too.
func (r *replayed) step(window bool) (err error) {
	period := int64(stepNS * r.slower * (1 + 0.01*(r.random.Float64()-0.5)))
	part := period / 10
	var works []event.Span
	for i := range r.ranks {
		p := &r.ranks[i]
		add := func(call int, start, duration int64) { err = errors.Join(err, r.record(p.pid, call, start, duration)) }
		add(callLoad, r.now, part)
		if window {
			for k := range int64(opsOfAStep) {
				add(callOp, r.now+part+k*part/100, part/200)
			}
		}
		add(callBackward, r.now+5*part, 3*part)
		for k := range int64(4) {
			p.number++
			at := r.now + (5+k)*part
			add(callReduce, at, part/10)
			bytes, group := int64(25<<20), int64(77)
			works = append(works, event.Span{ID: int64(r.id) + 1<<50 + p.number, PID: p.pid, TID: p.pid + 1, Call: reduction, StartNS: at,
				DurationNS: part, Weight: 1,
				SequenceNumber: p.number, Status: event.StatusOK, Detail: &event.Detail{Bytes: &bytes, Communicator: &group}})
		}
		add(callOptimize, r.now+9*part, part/2)
	}
	if _, _, flushed := r.decode.Flush(); flushed != nil {
		err = errors.Join(err, flushed)
	}
	r.events += int64(len(works))
	err = errors.Join(err, r.to.Write(&event.Batch{Spans: works}), r.look(r.now+period, window), r.epochs())
	r.now += period
	return err
}

// look takes the samples and waits of a step.
func (r *replayed) look(until int64, window bool) (err error) {
	every := int64(1e9) / frequency
	if window {
		every = int64(1e9) / 99
	}
	var stacks []event.Stack
	var samples []event.Sample
	at := func(pid int32, ns, weight int64, state, cause string, stack int64) {
		samples = append(samples, event.Sample{TSNS: ns, PID: pid, TID: pid, State: state, Cause: cause, WeightNS: weight, StackID: &stack})
	}
	for ; r.looked < until; r.looked += every {
		for i := range r.ranks {
			stack := r.often[r.random.IntN(len(r.often))]
			if r.random.Float64() < newShare {
				r.once++
				stack = r.once
				stacks = append(stacks, r.stack(stack, r.random.IntN(1000)))
			}
			at(r.ranks[i].pid, r.looked, every, event.OnCPU, "", stack)
			for _, pid := range r.ranks[i].loaders {
				if r.random.IntN(4) == 0 {
					at(pid, r.looked, every, event.OnCPU, "", r.often[1])
				}
			}
		}
	}
	for i := range r.ranks {
		for k := range int64(4) {
			at(r.ranks[i].pid, until-stepNS/2+k*stepNS/20, stepNS/40, event.OffCPU, event.CauseSyscall, r.often[0])
		}
	}
	r.events += int64(len(samples) + len(stacks))
	return errors.Join(r.to.Write(&event.Batch{Stacks: stacks}), r.to.Write(&event.Batch{Samples: samples}))
}

// epochs has the loader workers end and others begin.
func (r *replayed) epochs() (err error) {
	if r.now-r.epoch < epochNS {
		return nil
	}
	r.epoch = r.now
	for i := range r.ranks {
		p := &r.ranks[i]
		for _, pid := range p.loaders {
			ended := r.now
			err = errors.Join(err, r.process(i, pid, &ended))
		}
		p.loaders = p.loaders[:0]
		for range loaders {
			r.next++
			p.loaders = append(p.loaders, r.next)
			err = errors.Join(err, r.process(i, r.next, nil))
		}
	}
	return err
}
