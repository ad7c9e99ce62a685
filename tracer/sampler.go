package tracer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/bpf"
)

//go:generate go run ./syscallnames

// sampleRingBytes holds some seconds of samples, and the frames of a few
// thousand stacks that are new at once.
const sampleRingBytes = 16 << 20

// sampler looks at the threads of the traced processes: on the CPU by a clock,
// off it when a long wait ends. It covers every thread from its first
// instruction on, because it watches CPUs and not threads.
type sampler struct {
	collection *ebpf.Collection
	events     []int // perf events, one a CPU
	links      []link.Link
}

// loadSampler loads the programs; nothing runs before start.
func loadSampler(k *kernel, frequency int, threshold time.Duration) (*sampler, error) {
	spec, err := samplerSpec(k, frequency, threshold)
	if err != nil {
		return nil, err
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: k.replacements(spec)})
	if err != nil {
		return nil, loadError("the sampling programs", err)
	}
	return &sampler{collection: c}, nil
}

// samplerSpec reads the programs, for this kernel.
func samplerSpec(k *kernel, frequency int, threshold time.Duration) (*ebpf.CollectionSpec, error) {
	spec, err := bpf.LoadSample()
	if err != nil {
		return nil, fmt.Errorf("reading the sampling programs: %w", err)
	}
	if err := k.adapt(spec); err != nil {
		return nil, err
	}
	if frequency > 0 {
		if err := spec.Variables["sample_period_ns"].Set(uint64(time.Second) / uint64(frequency)); err != nil {
			return nil, err
		}
	}
	if err := spec.Variables["wait_threshold_ns"].Set(uint64(threshold)); err != nil {
		return nil, err
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, err
	}
	spec.Maps["known_stacks"].MaxEntries *= uint32(cpus)
	return spec, setKernelText(spec)
}

// start begins to look: frequency times a second at each CPU, and at waits.
func (s *sampler) start(frequency int, threshold time.Duration) error {
	if frequency > 0 {
		if err := s.startClock(frequency); err != nil {
			return err
		}
	}
	if threshold <= 0 {
		return nil
	}
	// The end of a wait before its beginning, so that none is seen half.
	for _, program := range []string{"sample_syscall_end", "sample_waking", "sample_switch"} {
		l, err := link.AttachTracing(link.TracingOptions{Program: s.collection.Programs[program]})
		if err != nil {
			return fmt.Errorf("attaching %s: %w", program, notPermitted(err))
		}
		s.links = append(s.links, l)
	}
	return nil
}

// startClock opens a software clock on each CPU. It is no hardware counter: it
// runs in virtual machines, and its interrupt can be masked, so that the
// program may use spin locks. The period is fixed: every sample stands for the
// same time.
func (s *sampler) startClock(frequency int) error {
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
			return fmt.Errorf("opening the sampling clock of CPU %d: %w", cpu, notPermitted(err))
		}
		s.events = append(s.events, fd)
		l, err := link.AttachRawLink(link.RawLinkOptions{Target: fd, Program: s.collection.Programs["sample_tick"], Attach: ebpf.AttachPerfEvent})
		if err != nil {
			return fmt.Errorf("attaching to the sampling clock of CPU %d: %w", cpu, notPermitted(err))
		}
		s.links = append(s.links, l)
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return fmt.Errorf("starting the sampling clock of CPU %d: %w", cpu, err)
		}
	}
	return nil
}

// takesStacks reports whether anything is to have a call stack: samples, or at
// LevelDeep, every operator, whether or not there are samples too.
func (o *Options) takesStacks() bool {
	return o.Frequency > 0 || o.OffCPU > 0 || o.Level == LevelDeep
}

// openSampler loads what the options ask for. A kernel that refuses it costs
// the samples, not the recording.
func (s *Session) openSampler() {
	if !s.options.takesStacks() {
		return
	}
	var err error
	if s.sampler, err = loadSampler(s.kernel, s.options.Frequency, s.options.OffCPU); err != nil {
		s.noSamples(err)
		return
	}
	s.walks = newWalks(s.kernel, s.decoder.stacks, s.warn)
}

func (s *Session) startSampler() {
	if s.sampler == nil {
		return
	}
	if err := s.sampler.start(s.options.Frequency, s.options.OffCPU); err != nil {
		s.noSamples(err)
	}
}

func (s *Session) noSamples(err error) {
	s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "attach", Source: "samples", Count: 1, Detail: err.Error()})
}

// stop ends all looking; what is in the ring stays.
func (s *sampler) stop() {
	for _, l := range s.links {
		l.Close()
	}
	for _, fd := range s.events {
		unix.Close(fd)
	}
	s.links, s.events = nil, nil
}

func (s *sampler) close() {
	s.stop()
	s.collection.Close()
}

func (s *sampler) reader() (*ringbuf.Reader, error) {
	r, err := ringbuf.NewReader(s.collection.Maps["samples"])
	if err != nil {
		return nil, fmt.Errorf("opening the ring buffer of samples: %w", err)
	}
	return r, nil
}

// setKernelText tells the programs where the kernel's entries of interrupts and
// breakpoints are. Where that is hidden, no wait has a waker, and samples in the
// handling of a probe lose their callers.
func setKernelText(spec *ebpf.CollectionSpec) error {
	kallsyms, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		return nil
	}
	set := func(variable string, address uint64) error { return spec.Variables[variable].Set(address) }
	interrupts, _ := kernelSymbol(kallsyms, "__irqentry_text_start")
	end, _ := kernelSymbol(kallsyms, "__irqentry_text_end")
	breakpoint, breakpointEnd := kernelSymbol(kallsyms, "asm_exc_int3")
	return errors.Join(
		set("interrupt_text_start", interrupts), set("interrupt_text_end", end),
		set("breakpoint_text_start", breakpoint), set("breakpoint_text_end", breakpointEnd))
}

// kernelSymbol finds a symbol and the next higher address that has one; zeros
// where there is none.
func kernelSymbol(kallsyms []byte, name string) (address, next uint64) {
	at := bytes.Index(kallsyms, []byte(" "+name+"\n"))
	if at < 0 {
		return 0, 0
	}
	line := func(start int) (uint64, int) {
		end := bytes.IndexByte(kallsyms[start:], '\n')
		if end < 0 {
			return 0, len(kallsyms)
		}
		digits, _, _ := bytes.Cut(kallsyms[start:start+end], []byte{' '})
		value, _ := strconv.ParseUint(string(digits), 16, 64)
		return value, start + end + 1
	}
	address, following := line(bytes.LastIndexByte(kallsyms[:at], '\n') + 1)
	for next = address; next == address && following < len(kallsyms); {
		next, following = line(following)
	}
	return address, next
}

func onlineCPUs() ([]int, error) {
	list, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("listing the CPUs: %w", err)
	}
	return parseCPUList(strings.TrimSpace(string(list)))
}

// parseCPUList reads the kernel's way to write a set: "0-3,8".
func parseCPUList(list string) (cpus []int, err error) {
	for _, part := range strings.Split(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(high)
		}
		if err != nil || last < first || last-first > 1<<16 {
			return nil, fmt.Errorf("listing the CPUs: unreadable %q", list)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}
