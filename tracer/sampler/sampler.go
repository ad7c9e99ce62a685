package sampler

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/python"
)

// Sampler looks at the threads of the traced processes: on the CPU by a clock,
// off it when a long wait ends. It covers every thread from its first
// instruction on, because it watches CPUs and not threads.
type Sampler struct {
	collection *ebpf.Collection
	events     []int // perf events, one a CPU
	links      []link.Link
	endIO      func() // takes the program out at which reads and writes begin
}

// loadSampler loads the programs for a kernel that has those of calls; nothing runs
// before start.
func loadSampler(k *kernel.Programs, options Options) (*Sampler, error) {
	spec, err := Spec(k, options)
	if err != nil {
		return nil, err
	}
	return newSampler(spec, k.Replacements(spec), options)
}

// newSampler loads the clock's program beside those of waits: half of the verifier's work
// each.
func newSampler(spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map, options Options) (*Sampler, error) {
	if options.onlyIO() {
		c, err := bpf.Load(kernel.OnlyPrograms(spec, func(name string) bool { return name == syscallEnd || name == syscallBegin }), shared)
		if err != nil {
			return nil, kernel.LoadError("the programs of reads and writes", err)
		}
		return &Sampler{collection: c, endIO: func() {}}, nil
	}
	clock := kernel.OnlyPrograms(spec, func(name string) bool { return name == clockProgram })
	waits := kernel.OnlyPrograms(spec, func(name string) bool { return name != clockProgram && (name != syscallBegin || options.IO) })
	tables, err := bpf.Load(kernel.OnlyPrograms(spec, func(string) bool { return false }), shared)
	if err != nil {
		return nil, kernel.LoadError("the tables of samples", err)
	}
	defer tables.Close()
	var ticks *ebpf.Collection
	var tickErr error
	var beside sync.WaitGroup
	beside.Go(func() { ticks, tickErr = bpf.Load(clock, tables.Maps) })
	c, err := bpf.Load(waits, tables.Maps)
	beside.Wait()
	if ticks != nil {
		defer ticks.Close()
	}
	if err := errors.Join(err, tickErr); err != nil {
		if c != nil {
			c.Close()
		}
		return nil, kernel.LoadError("the sampling programs", err)
	}
	c.Programs[clockProgram] = ticks.DetachProgram(clockProgram)
	return &Sampler{collection: c, endIO: func() {}}, nil
}

const (
	clockProgram = "sample_tick"
	syscallBegin = "io_begin"
	syscallEnd   = "sample_syscall_end"
)

// Spec reads the programs, for this kernel.
func Spec(k *kernel.Programs, options Options) (*ebpf.CollectionSpec, error) {
	spec, err := bpf.LoadSample()
	if err != nil {
		return nil, fmt.Errorf("reading the sampling programs: %w", err)
	}
	if err := k.Adapt(spec); err != nil {
		return nil, err
	}
	if options.Frequency > 0 {
		if err := spec.Variables["sample_period_ns"].Set(uint64(time.Second) / uint64(options.Frequency)); err != nil {
			return nil, err
		}
	}
	if err := spec.Variables["wait_threshold_ns"].Set(uint64(options.OffCPU)); err != nil {
		return nil, err
	}
	if err := setIO(spec, options); err != nil {
		return nil, err
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, err
	}
	spec.Maps["walk_caches"].MaxEntries *= uint32(cpus)
	return spec, setKernelText(spec)
}

// Start begins to look: so many times a second at each CPU, and at waits.
func (s *Sampler) Start(options Options) error {
	if options.Frequency > 0 {
		if err := s.startClock(options.Frequency); err != nil {
			return err
		}
	}
	// The end of a wait and of a call before its beginning, so that none is seen half.
	for _, program := range watching(options) {
		l, err := link.AttachTracing(link.TracingOptions{Program: s.collection.Programs[program]})
		if err != nil {
			return fmt.Errorf("attaching %s: %w", program, features.NotPermitted(err))
		}
		if program == syscallBegin {
			s.endIO = sync.OnceFunc(func() { l.Close() })
			continue
		}
		s.links = append(s.links, l)
	}
	return nil
}

// watching are the programs that watch threads wait, read and write, in their order.
func watching(options Options) []string {
	var programs []string
	if options.OffCPU > 0 || options.IO {
		programs = append(programs, syscallEnd)
	}
	if options.OffCPU > 0 {
		programs = append(programs, "sample_waking", "sample_switch")
	}
	if options.IO {
		programs = append(programs, syscallBegin)
	}
	return programs
}

// startClock opens a software clock on each CPU. It is no hardware counter: it
// runs in virtual machines, and its interrupt can be masked, so that the
// program may use spin locks. The period is fixed: every sample stands for the
// same time.
func (s *Sampler) startClock(frequency int) error {
	cpus, err := onlineCPUs()
	if err != nil {
		return err
	}
	for _, cpu := range cpus {
		attr := unix.PerfEventAttr{
			Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK,
			Size: unix.PERF_ATTR_SIZE_VER1, Sample: uint64(time.Second) / uint64(frequency), Bits: unix.PerfBitDisabled,
		}
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ENODEV) {
			continue // it went offline
		}
		if err != nil {
			return fmt.Errorf("opening the sampling clock of CPU %d: %w", cpu, features.NotPermitted(err))
		}
		s.events = append(s.events, fd)
		l, err := link.AttachRawLink(link.RawLinkOptions{Target: fd, Program: s.collection.Programs[clockProgram], Attach: ebpf.AttachPerfEvent})
		if err != nil {
			return fmt.Errorf("attaching to the sampling clock of CPU %d: %w", cpu, features.NotPermitted(err))
		}
		s.links = append(s.links, l)
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return fmt.Errorf("starting the sampling clock of CPU %d: %w", cpu, err)
		}
	}
	return nil
}

// Stop ends all looking; what is in the ring stays.
func (s *Sampler) Stop() {
	s.endIO()
	for _, l := range s.links {
		l.Close()
	}
	for _, fd := range s.events {
		unix.Close(fd)
	}
	s.links, s.events = nil, nil
}

func (s *Sampler) Close() {
	s.Stop()
	s.collection.Close()
}

func (s *Sampler) Reader() (*ringbuf.Reader, error) {
	r, err := ringbuf.NewReader(s.collection.Maps["samples"])
	if err != nil {
		return nil, fmt.Errorf("opening the ring buffer of samples: %w", err)
	}
	return r, nil
}

// Map finds a map by its name in C.
func (s *Sampler) Map(name string) *ebpf.Map { return s.collection.Maps[name] }

// PythonCount is one of the counters of enum python_outcome, all CPUs together.
func (s *Sampler) PythonCount(what python.Outcome) (sum uint64, err error) {
	var per []uint64
	if err := s.Map("python_counts").Lookup(uint32(what), &per); err != nil {
		return 0, fmt.Errorf("reading the count %s of the Python walks: %w", what.Name(), err)
	}
	for _, n := range per {
		sum += n
	}
	return sum, nil
}
