package tracer

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// Feature is one thing that the kernel may or may not be able to do, as found
// by trying it.
type Feature struct {
	Key      string // by which EBPFPROF_WITHOUT and tables name it
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
	GuardedCalls bool // global functions may be called between the two
	DynamicHash  bool // hash maps that allocate safely in tracing programs
	BPFLoop      bool // the helper bpf_loop
	List         []Feature
}

// withoutVariable names the environment variable with keys of features that are
// taken for missing: tests run the ways of older kernels with it. What would
// then be dangerous is refused all the same.
const withoutVariable = "EBPFPROF_WITHOUT"

var errSwitchedOff = errors.New("switched off by " + withoutVariable)

// ProbeFeatures tries what the tracer needs; the result is kept for the life
// of the process. It needs the privileges of a tracer: without them every
// feature looks missing, so call CheckPermitted first.
var ProbeFeatures = sync.OnceValue(probeFeatures)

func probeFeatures() *Features {
	f := &Features{}
	without := strings.Split(os.Getenv(withoutVariable), ",")
	add := func(feature Feature, probe func() error) bool {
		feature.Err = errSwitchedOff
		if !slices.Contains(without, feature.Key) {
			feature.Err = probe()
		}
		f.List = append(f.List, feature)
		return feature.Err == nil
	}
	add(Feature{Key: "btf", Name: "type information (BTF)", Since: "5.4", Required: true,
		Without: "no program loads"}, haveBTF)
	add(Feature{Key: "ring_buffer", Name: "BPF ring buffer", Since: "5.8", Required: true,
		Without: "no record leaves the kernel"}, func() error { return features.HaveMapType(ebpf.RingBuf) })
	add(Feature{Key: "attach_cookie", Name: "attach cookies", Since: "5.15", Required: true,
		Without: "one program cannot serve many probes"}, haveHelper(asm.FnGetAttachCookie))
	add(Feature{Key: "raw_tracepoint", Name: "raw tracepoints", Since: "4.17", Required: true,
		Without: "fork, exec and exit go unseen"}, func() error { return features.HaveProgramType(ebpf.RawTracepoint) })
	f.BPFLoop = add(Feature{Key: "bpf_loop", Name: "bpf_loop", Since: "5.17",
		Without: "every launch's stack is walked: none is remembered"}, haveHelper(asm.FnLoop))
	f.UprobeMulti = add(Feature{Key: "uprobe_multi", Name: "uprobe.multi links", Since: "6.6",
		Without: "each site is a perf event of its own: slow to remove, and it needs CAP_SYS_ADMIN"},
		features.HaveBPFLinkUprobeMulti)
	f.PerfUprobe = add(Feature{Key: "perf_uprobe", Name: "perf uprobes", Since: "4.17",
		Without: "only uprobe.multi can attach"}, havePerfUprobe)
	f.PreemptGuard = add(Feature{Key: "preempt_guard", Name: "preemption guard", Since: "6.10",
		Without: "not needed below 6.13; from 6.13 on the tracer refuses to attach without it"},
		bpf.HasGuard)
	if f.PreemptGuard {
		f.GuardedCalls = add(Feature{Key: "guarded_calls", Name: "global functions under the guard", Since: "6.15",
			Without: "programs take longer to load"}, bpf.HasGuardedCalls)
	}
	f.DynamicHash = add(Feature{Key: "dynamic_hash", Name: "hash maps that allocate on demand", Since: "6.1",
		Without: "the table of threads is allocated whole and smaller"},
		func() error { return haveKernelFunc("bpf_mem_alloc_init") })
	return f
}

func haveHelper(helper asm.BuiltinFunc) func() error {
	return func() error { return features.HaveProgramHelper(ebpf.Kprobe, helper) }
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

// CheckLoads loads what Open would for these options, and takes it out again: the
// one test that the verifier and the memory limits cannot be argued with. Without
// the programs of calls nothing can be recorded; samples is why there would be no
// samples, without which the rest goes on.
func (f *Features) CheckLoads(options Options) (calls, samples error) {
	k, err := loadKernel(options.kernelSizes(), f)
	if err != nil {
		return err, nil
	}
	defer k.Close()
	if !options.takesStacks() {
		return nil, nil
	}
	s, err := loadSampler(k, options.Frequency, options.OffCPU)
	if err != nil {
		return nil, err
	}
	s.close()
	return nil, nil
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
