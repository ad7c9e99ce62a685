package sampler

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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
	clocks     []link.Link
	links      map[string]link.Link // of what watches, by its program
	bareCall   time.Duration        // what a system call takes without programs
	callPath   time.Duration        // how much longer it takes, of any process, while programs are at them
	waits      eventPrice           // of a switch of a thread
	calls      eventPrice           // of a system call
	giveUp     atomic.Bool          // reads and writes are not to be measured any more
}

// walkers are the programs that walk stacks: each is a third of the verifier's work, which
// looks at one program on one CPU.
var walkers = []string{clockProgram, switchProgram, syscallEnd}

// newSampler loads the programs that walk stacks beside each other.
func newSampler(spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map, options Options) (*Sampler, error) {
	if options.onlyIO() {
		c, err := bpf.Load(kernel.OnlyPrograms(spec, func(name string) bool { return name == syscallEnd || ofIO[name] }), shared)
		if err != nil {
			return nil, kernel.LoadError("the programs of reads and writes", err)
		}
		return &Sampler{collection: c, links: map[string]link.Link{}}, nil
	}
	c, err := bpf.Load(kernel.OnlyPrograms(spec, func(string) bool { return false }), shared)
	if err != nil {
		return nil, kernel.LoadError("the tables of samples", err)
	}
	parts := []*ebpf.CollectionSpec{kernel.OnlyPrograms(spec, func(name string) bool {
		return !slices.Contains(walkers, name) && (options.IO || !ofIO[name])
	})}
	for _, walker := range walkers {
		parts = append(parts, kernel.OnlyPrograms(spec, func(name string) bool { return name == walker }))
	}
	if err := loadBeside(parts, c); err != nil {
		c.Close()
		return nil, kernel.LoadError("the sampling programs", err)
	}
	return &Sampler{collection: c, links: map[string]link.Link{}}, nil
}

// loadBeside adds the programs of some specifications, which are loaded beside each other,
// to a collection that has their maps.
func loadBeside(parts []*ebpf.CollectionSpec, c *ebpf.Collection) error {
	loaded, failed := make([]*ebpf.Collection, len(parts)), make([]error, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() { loaded[i], failed[i] = bpf.Load(part, c.Maps) })
	}
	all.Wait()
	for _, one := range loaded {
		if one == nil {
			continue
		}
		for name := range one.Programs {
			c.Programs[name] = one.DetachProgram(name)
		}
		one.Close()
	}
	return errors.Join(failed...)
}

const (
	clockProgram  = "sample_tick"
	switchProgram = "sample_switch"
	wakingProgram = "sample_waking"
	syscallBegin  = "io_begin"
	syscallEnd    = "sample_syscall_end"
	majorFault    = "io_fault"
)

// ofIO are the programs of reads and writes alone.
var ofIO = map[string]bool{syscallBegin: true, majorFault: true}

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
		if err := s.onEachCPU("the sampling clock", clockProgram, unix.PERF_COUNT_SW_CPU_CLOCK,
			uint64(time.Second)/uint64(options.Frequency)); err != nil {
			return err
		}
	}
	if options.IO {
		if err := s.onEachCPU("the counter of major faults", majorFault, unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1); err != nil {
			return err
		}
	}
	// The end of a wait and of a call before its beginning, so that none is seen half.
	s.bareCall = callTime()
	for _, program := range watching(options) {
		l, err := link.AttachTracing(link.TracingOptions{Program: s.collection.Programs[program]})
		if err != nil {
			return fmt.Errorf("attaching %s: %w", program, features.NotPermitted(err))
		}
		s.links[program] = l
	}
	s.callPath = max(0, callTime()-s.bareCall)
	return nil
}

// watching are the programs that watch threads wait, read and write, in their order.
func watching(options Options) []string {
	var programs []string
	if options.OffCPU > 0 || options.IO {
		programs = append(programs, syscallEnd)
	}
	if options.OffCPU > 0 {
		programs = append(programs, wakingProgram, switchProgram)
	}
	if options.IO {
		programs = append(programs, syscallBegin)
	}
	return programs
}

// onEachCPU runs a program every so often (period) that an event of the kernel's software
// comes on a CPU. The clock is no hardware counter: it runs in virtual machines, and its
// interrupt can be masked, so that the program may use spin locks. The period is fixed:
// every sample stands for the same time.
func (s *Sampler) onEachCPU(what, program string, config, period uint64) error {
	cpus, err := onlineCPUs()
	if err != nil {
		return err
	}
	for _, cpu := range cpus {
		attr := unix.PerfEventAttr{
			Type: unix.PERF_TYPE_SOFTWARE, Config: config,
			Size: unix.PERF_ATTR_SIZE_VER1, Sample: period, Bits: unix.PerfBitDisabled,
		}
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ENODEV) {
			continue // it went offline
		}
		if err != nil {
			return fmt.Errorf("opening %s of CPU %d: %w", what, cpu, features.NotPermitted(err))
		}
		s.events = append(s.events, fd)
		l, err := link.AttachRawLink(link.RawLinkOptions{Target: fd, Program: s.collection.Programs[program], Attach: ebpf.AttachPerfEvent})
		if err != nil {
			return fmt.Errorf("attaching to %s of CPU %d: %w", what, cpu, features.NotPermitted(err))
		}
		s.clocks = append(s.clocks, l)
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return fmt.Errorf("starting %s of CPU %d: %w", what, cpu, err)
		}
	}
	return nil
}

// Stop ends all looking; what is in the ring stays.
func (s *Sampler) Stop() {
	s.end(syscallBegin, switchProgram, wakingProgram, syscallEnd)
	for _, l := range s.clocks {
		l.Close()
	}
	for _, fd := range s.events {
		unix.Close(fd)
	}
	s.clocks, s.events = nil, nil
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
