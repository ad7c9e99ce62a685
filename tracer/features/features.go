package features

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
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
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

// Set is what this kernel can do. Every field is probed, never guessed
// from a version number: distributions carry features back and leave some out.
type Set struct {
	UprobeMulti  bool // one link for thousands of sites
	PerfUprobe   bool // one perf event a site
	PreemptGuard bool // bpf_preempt_disable, bpf_preempt_enable
	GuardedCalls bool // global functions may be called between the two
	DynamicHash  bool // hash maps that allocate safely in tracing programs
	BPFLoop      bool // the helper bpf_loop
	FindVMA      bool // the helper bpf_find_vma
	List         []Feature
}

// withoutVariable names the environment variable with keys of features that are
// taken for missing: tests run the ways of older kernels with it. What would
// then be dangerous is refused all the same.
const withoutVariable = "EBPFPROF_WITHOUT"

var errSwitchedOff = errors.New("switched off by " + withoutVariable)

// Probe tries what the tracer needs; the result is kept for the life
// of the process. It needs the privileges of a tracer: without them every
// feature looks missing, so call CheckPermitted first.
var Probe = sync.OnceValue(probeFeatures)

// All are the features in the order in which they are probed; none has an error.
func All() []Feature { return slices.Clone(all) }

var all = []Feature{
	{Key: "btf", Name: "type information (BTF)", Since: "5.4", Required: true, Without: "no program loads"},
	{Key: "ring_buffer", Name: "BPF ring buffer", Since: "5.8", Required: true, Without: "no record leaves the kernel"},
	{Key: "attach_cookie", Name: "attach cookies", Since: "5.15", Required: true, Without: "one program cannot serve many probes"},
	{Key: "raw_tracepoint", Name: "raw tracepoints", Since: "4.17", Required: true, Without: "fork, exec and exit go unseen"},
	{Key: "bpf_loop", Name: "bpf_loop", Since: "5.17", Without: "every launch's stack is walked: none is memoised"},
	{Key: "find_vma", Name: "bpf_find_vma", Since: "5.17", Without: "the first samples of a program have no native frames, until its " +
		"mappings were read"},
	{Key: "uprobe_multi", Name: "uprobe.multi links", Since: "6.6",
		Without: "each site is a perf event of its own: it needs CAP_SYS_ADMIN, and is slow to remove: within a budget operators, " +
			"autograd nodes and allocations are left out, and launches too where they would exceed it (--budget off records them)"},
	{Key: "perf_uprobe", Name: "perf uprobes", Since: "4.17", Without: "only uprobe.multi can attach"},
	{Key: "preempt_guard", Name: "preemption guard", Since: "6.10",
		Without: "not needed below 6.13; from 6.13 on the tracer refuses to attach without it"},
	{Key: "guarded_calls", Name: "global functions under the guard", Since: "6.15", Without: "programs take longer to load"},
	{Key: "dynamic_hash", Name: "hash maps that allocate on demand", Since: "6.1",
		Without: "the table of threads is allocated whole and smaller"},
}

func probeFeatures() *Set {
	f := &Set{}
	without := strings.Split(os.Getenv(withoutVariable), ",")
	add := func(key string, probe func() error) bool {
		feature := all[slices.IndexFunc(all, func(one Feature) bool { return one.Key == key })]
		feature.Err = errSwitchedOff
		if !slices.Contains(without, key) {
			feature.Err = probe()
		}
		f.List = append(f.List, feature)
		return feature.Err == nil
	}
	add("btf", haveBTF)
	add("ring_buffer", func() error { return features.HaveMapType(ebpf.RingBuf) })
	add("attach_cookie", haveHelper(asm.FnGetAttachCookie))
	add("raw_tracepoint", func() error { return features.HaveProgramType(ebpf.RawTracepoint) })
	f.BPFLoop = add("bpf_loop", haveHelper(asm.FnLoop))
	f.FindVMA = add("find_vma", haveFindVMA)
	f.UprobeMulti = add("uprobe_multi", uprobe.HaveMulti)
	f.PerfUprobe = add("perf_uprobe", havePerfUprobe)
	f.PreemptGuard = add("preempt_guard", bpf.HasGuard)
	if f.PreemptGuard {
		f.GuardedCalls = add("guarded_calls", bpf.HasGuardedCalls)
	}
	f.DynamicHash = add("dynamic_hash", func() error { return haveKernelFunc("bpf_mem_alloc_init") })
	return f
}

func haveHelper(helper asm.BuiltinFunc) func() error {
	return func() error { return features.HaveProgramHelper(ebpf.Kprobe, helper) }
}

// haveFindVMA: with other pages the programs would take a mapping's offset for another.
func haveFindVMA() error {
	if size := os.Getpagesize(); size != 4096 {
		return fmt.Errorf("pages of %d bytes: %w", size, ebpf.ErrNotSupported)
	}
	return haveHelper(asm.FnFindVma)()
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
	spec, err := bpf.KernelTypes().Kernel()
	if err != nil {
		return fmt.Errorf("reading the kernel's BTF: %w", err)
	}
	var fn *btf.Func
	return spec.TypeByName(name, &fn)
}

// Check returns nil when the kernel can trace, else an error that wraps
// ErrUnsupported and names the feature and the version that has it.
func (f *Set) Check() error {
	for _, feature := range f.List {
		if feature.Required && feature.Err != nil {
			return fmt.Errorf("%s (Linux %s): %w: %w", feature.Name, feature.Since, ErrUnsupported, feature.Err)
		}
	}
	if !f.UprobeMulti && !f.PerfUprobe {
		return fmt.Errorf("uprobes (CONFIG_UPROBE_EVENTS, or uprobe.multi links of Linux 6.6): %w", ErrUnsupported)
	}
	if !f.PreemptGuard && PrivateStacks() {
		return fmt.Errorf("this kernel runs probe programs on per-CPU private stacks (6.13) but has no bpf_preempt_disable (6.10), and "+
			"can panic: %w", ErrUnsupported)
	}
	return nil
}

// PrivateStacks reports whether tracing programs run on per-CPU private stacks.
func PrivateStacks() bool { return haveKernelFunc("bpf_jit_supports_private_stack") == nil }
