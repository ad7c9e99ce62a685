package tracer

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
)

// Feature is one thing that the kernel may or may not be able to do, as found
// by trying it.
type Feature struct {
	Name     string
	Since    string // the kernel version that has it, for people
	Required bool   // nothing works without it
	Without  string // what is lost without it
	Err      error  // nil: it is there
}

// Features is what this kernel can do. Every field is probed, never guessed
// from a version number: distributions carry features back and leave some out.
type Features struct {
	UprobeMulti  bool // one link for thousands of sites
	PerfUprobe   bool // one perf event a site
	PreemptGuard bool // bpf_preempt_disable, bpf_preempt_enable
	DynamicHash  bool // hash maps that allocate safely in tracing programs
	List         []Feature
}

// ProbeFeatures tries what the tracer needs; the result is kept for the life
// of the process. It needs the privileges of a tracer: without them every
// feature looks missing, so call CheckPermitted first.
var ProbeFeatures = sync.OnceValue(probeFeatures)

func probeFeatures() *Features {
	f := &Features{}
	add := func(name, since string, required bool, without string, err error) bool {
		f.List = append(f.List, Feature{name, since, required, without, err})
		return err == nil
	}
	add("type information (BTF)", "5.4", true, "no program loads", haveBTF())
	add("BPF ring buffer", "5.8", true, "no record leaves the kernel", features.HaveMapType(ebpf.RingBuf))
	add("attach cookies", "5.15", true, "one program cannot serve many probes",
		features.HaveProgramHelper(ebpf.Kprobe, asm.FnGetAttachCookie))
	add("raw tracepoints", "4.17", true, "fork, exec and exit go unseen",
		features.HaveProgramType(ebpf.RawTracepoint))
	f.UprobeMulti = add("uprobe.multi links", "6.6", false,
		"each site is a perf event of its own: slow to remove, and it needs CAP_SYS_ADMIN",
		features.HaveBPFLinkUprobeMulti())
	f.PerfUprobe = add("perf uprobes", "4.17", false, "only uprobe.multi can attach", havePerfUprobe())
	f.PreemptGuard = add("preemption guard", "6.10", false,
		"not needed below 6.13; from 6.13 on the tracer refuses to attach without it", haveKernelFunc("bpf_preempt_disable"))
	f.DynamicHash = add("hash maps that allocate on demand", "6.1", false,
		"the table of threads is allocated whole and smaller", haveKernelFunc("bpf_mem_alloc_init"))
	return f
}

func haveBTF() error {
	_, err := os.Stat("/sys/kernel/btf/vmlinux")
	return err
}

func havePerfUprobe() error {
	_, err := os.Stat("/sys/bus/event_source/devices/uprobe/type")
	return err
}

func haveKernelFunc(name string) error {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return fmt.Errorf("reading the kernel's BTF: %w", err)
	}
	var fn *btf.Func
	return spec.TypeByName(name, &fn)
}

// Check returns nil when the kernel can trace, else an error that wraps
// ErrUnsupported and names the feature and the version that has it.
func (f *Features) Check() error {
	for _, feature := range f.List {
		if feature.Required && feature.Err != nil {
			return fmt.Errorf("%s (Linux %s): %w: %w", feature.Name, feature.Since, ErrUnsupported, feature.Err)
		}
	}
	if !f.UprobeMulti && !f.PerfUprobe {
		return fmt.Errorf("uprobes (CONFIG_UPROBE_EVENTS, or uprobe.multi links of Linux 6.6): %w", ErrUnsupported)
	}
	if !f.PreemptGuard && privateStacks() {
		return fmt.Errorf("this kernel runs probe programs on per-CPU private stacks (6.13) but has no bpf_preempt_disable (6.10), and can panic: %w", ErrUnsupported)
	}
	return nil
}

// CheckLoads loads the programs, with a ring buffer of so many bytes (a power of
// two), and takes them out again: the one test that the verifier and the
// memory limits cannot be argued with.
func (f *Features) CheckLoads(bufferBytes int) error {
	k, err := loadKernel(kernelSizes{ring: bufferBytes}, f)
	if err != nil {
		return err
	}
	k.Close()
	return nil
}

// privateStacks reports whether tracing programs run on per-CPU private stacks.
func privateStacks() bool { return haveKernelFunc("bpf_jit_supports_private_stack") == nil }

// capability numbers from include/uapi/linux/capability.h.
var neededCapabilities = []struct {
	bit  uint
	name string
	why  string
	perf bool // needed only to attach through perf events
}{
	{39, "CAP_BPF", "to load programs", false},
	{38, "CAP_PERFMON", "to attach probes", false},
	{19, "CAP_SYS_PTRACE", "to read the maps of other processes", false},
	{21, "CAP_SYS_ADMIN", "to attach perf uprobes, since this kernel has no uprobe.multi", true},
}

// MissingCapabilities names the capabilities that this process lacks, with
// what each is for.
func MissingCapabilities(features *Features) ([]string, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, fmt.Errorf("reading this process's capabilities: %w", err)
	}
	effective, err := effectiveCapabilities(string(status))
	if err != nil {
		return nil, err
	}
	const sysAdmin = 1 << 21 // stands in for CAP_BPF and CAP_PERFMON
	var missing []string
	for _, c := range neededCapabilities {
		if c.perf && (features == nil || features.UprobeMulti) {
			continue
		}
		if effective&(1<<c.bit) != 0 || (c.bit >= 38 && effective&sysAdmin != 0) {
			continue
		}
		missing = append(missing, fmt.Sprintf("%s (%s)", c.name, c.why))
	}
	return missing, nil
}

func effectiveCapabilities(status string) (caps uint64, err error) {
	for line := range strings.Lines(status) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			_, err := fmt.Sscanf(strings.TrimSpace(hex), "%x", &caps)
			return caps, err
		}
	}
	return 0, errors.New("no CapEff line in the process status")
}
