package otlp

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Bounds of a window: a request of a collector's is at most 20 MiB by default.
const (
	mostStacks  = 20_000
	mostSamples = 50_000 // that differ in more than their time
	mostNames   = 65_536 // of threads and processes
)

// Window adds up the samples of one window.
type Window struct {
	frequency int64

	stacks    map[int64][]symbolize.Frame
	samples   map[sampled]int64
	processes map[int32]event.Process
	threads   map[[2]int32]string
	from, to  int64
	dropped   int64
}

// sampled is what samples that are added up have in common.
type sampled struct {
	pid, tid       int32
	stack          int64
	offCPU         bool
	cause, syscall string
}

// NewWindow returns one of looks at a frequency.
func NewWindow(frequency int) *Window {
	return &Window{frequency: int64(frequency), stacks: map[int64][]symbolize.Frame{}, samples: map[sampled]int64{},
		processes: map[int32]event.Process{}, threads: map[[2]int32]string{}, from: math.MaxInt64}
}

// Dropped is how many samples are not in the window, for want of room.
func (w *Window) Dropped() int64 { return w.dropped }

// Write implements event.Sink.
func (w *Window) Write(b *event.Batch) error {
	for i := range b.Processes {
		w.addProcess(b.Processes[i])
	}
	for i := range b.Threads {
		w.addThread(b.Threads[i])
	}
	w.addStacks(b.Stacks)
	w.addSamples(b.Samples)
	return nil
}

func (w *Window) addStacks(all []event.Stack) {
	for i := range all {
		if _, known := w.stacks[all[i].ID]; !known && len(w.stacks) < mostStacks {
			w.stacks[all[i].ID] = slices.Clone(all[i].Frames)
		}
	}
}

func (w *Window) addSamples(all []event.Sample) {
	for i := range all {
		s := &all[i]
		key := sampled{pid: s.PID, tid: s.TID, offCPU: s.State == event.OffCPU, cause: s.Cause, syscall: s.Syscall}
		there := true
		if s.StackID != nil {
			key.stack = *s.StackID
			_, there = w.stacks[key.stack]
		}
		if _, known := w.samples[key]; !there || !known && len(w.samples) >= mostSamples {
			w.dropped++
			continue
		}
		w.samples[key] += s.WeightNS
		w.from, w.to = min(w.from, s.TSNS), max(w.to, s.TSNS+s.WeightNS)
	}
}

func (w *Window) addProcess(p event.Process) {
	if len(w.processes) < mostNames {
		w.processes[p.PID] = p
	}
}

func (w *Window) addThread(t event.Thread) {
	if len(w.threads) < mostNames {
		w.threads[[2]int32{t.PID, t.TID}] = t.Name
	}
}

// ErrNothing is returned by Request of a window without a sample.
var ErrNothing = errors.New("nothing was sampled")

// The kinds of samples. What is on the CPU is looked at periodically; what is off it is
// measured.
var (
	onCPU  = Value{"cpu", "nanoseconds"}
	offCPU = Value{"off_cpu", "nanoseconds"}
)

// Request is the window as a request of OTLP, gzipped, and when it began.
func (w *Window) Request(job, host, tool string) (content []byte, beginNS int64, err error) {
	if len(w.samples) == 0 {
		return nil, 0, ErrNothing
	}
	b := NewBuilder(tool)
	order := slices.SortedFunc(maps.Keys(w.samples), func(x, y sampled) int {
		kind := func(s sampled) int {
			if s.offCPU {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(x.pid, y.pid), cmp.Compare(kind(x), kind(y)), cmp.Compare(x.tid, y.tid), cmp.Compare(x.stack, y.stack),
			cmp.Compare(x.cause, y.cause), cmp.Compare(x.syscall, y.syscall))
	})
	var of Resource
	var profile Profile
	for i, s := range order {
		if i == 0 || s.pid != order[i-1].pid {
			of = b.Resource(w.resource(s.pid, job, host)...)
		}
		if i == 0 || s.pid != order[i-1].pid || s.offCPU != order[i-1].offCPU {
			if s.offCPU {
				profile = of.Profile(offCPU, w.from, w.to-w.from, Value{}, 0)
			} else {
				profile = of.Profile(onCPU, w.from, w.to-w.from, onCPU, int64(1e9)/max(w.frequency, 1))
			}
		}
		profile.Add(w.stacks[s.stack], w.samples[s], w.attributes(s)...)
	}
	plain, err := b.Marshal()
	if err != nil {
		return nil, 0, err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(plain)
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, 0, fmt.Errorf("packing profiles: %w", err)
	}
	return packed.Bytes(), w.from, nil
}

// resource describes a process, with OpenTelemetry's names where it has any.
func (w *Window) resource(pid int32, job, host string) []Attribute {
	all := []Attribute{{"service.name", job}, {"host.name", host}, {"process.pid", int64(pid)}}
	p, ok := w.processes[pid]
	if !ok {
		return all
	}
	if p.Exe != "" {
		all = append(all, Attribute{"process.executable.path", p.Exe})
	}
	if p.ContainerID != nil {
		all = append(all, Attribute{"container.id", *p.ContainerID})
	}
	if p.Rank != nil {
		all = append(all, Attribute{"ebpfprof.rank", int64(*p.Rank)})
	}
	return all
}

func (w *Window) attributes(s sampled) []Attribute {
	all := []Attribute{{"thread.id", int64(s.tid)}}
	for _, a := range []Attribute{{"thread.name", w.threads[[2]int32{s.pid, s.tid}]}, {"ebpfprof.cause", s.cause},
		{"ebpfprof.syscall", s.syscall}} {
		if a.Value != "" {
			all = append(all, a)
		}
	}
	return all
}
