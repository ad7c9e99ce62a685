package kernel

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/unwinding"
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

// MaxSpecs bounds the probe table, unless told otherwise: a process's half of it
// has two copies of PyTorch and some runtimes.
const MaxSpecs = 16384

// SampleRingBytes holds some seconds of samples, and the frames of a few
// thousand stacks that are new at once.
const SampleRingBytes = 16 << 20

// sampleRing is its size beside a ring of calls. Who has little room for those, to record
// little for long, has a quarter: its pages are mapped twice, and all of them have been written.
func sampleRing(calls int) int { return min(SampleRingBytes, max(SampleRingBytes/4, 2*calls)) }

// Programs is what the tracer has loaded: programs, maps and the links of the
// process tracepoints. Nothing is pinned: when the tracer dies, the kernel
// takes everything out.
type Programs struct {
	// What is done with the programs of calls, by what it is done to.
	switches
	counts
	targets
	young
	openCalls
	attacher
	callPrograms

	callRing   callRing
	call, life *ebpf.Collection
	Unwind     *unwinding.Maps
	tracepoint []link.Link
	sizes      Sizes
	features   *features.Set
	Memo       memo
	LimitUse   limitUse
	Shares     *shares
}

// MostFrames is for how many native frames a stack has room in the kernel; of Python
// there is room for MostPythonFrames.
const (
	MostFrames       = 512
	MostPythonFrames = 256
)

// Sizes are what the programs are loaded for.
type Sizes struct {
	Ring    int    // bytes of the call ring, a power of two multiple of the page size
	Frames  int    // of each kind in a stack; what the programs say if 0
	Targets int    // processes that one user may have; what the programs say if 0
	Probes  int    // places of the probe table; MaxSpecs if 0
	Verify  uint32 // of so many memoised stacks one is walked again, a power of two; 0: none is memoised
}

// Load loads the programs of calls and processes.
func Load(sizes Sizes, can *features.Set) (*Programs, error) {
	if err := RaiseLimits(); err != nil {
		return nil, err
	}
	k, err := New(sizes, can)
	if err != nil {
		return nil, err
	}
	call, life, err := k.Specs()
	if err != nil {
		k.Close()
		return nil, err
	}
	if err := k.LoadSpecs(call, life, nil); err != nil {
		return nil, err
	}
	return k, nil
}

func RaiseLimits() error {
	if err := rlimit.RemoveMemlock(); err != nil && !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("raising the locked-memory limit: %w", err)
	}
	return nil
}

// Specs reads the programs of calls and processes, for this kernel.
func (k *Programs) Specs() (call, life *ebpf.CollectionSpec, err error) {
	if call, err = k.CallSpec(); err != nil {
		return nil, nil, err
	}
	life, err = k.LifeSpec()
	return call, life, err
}

// LoadSpecs loads them, with maps that were made before, and closes the kernel if it refuses.
func (k *Programs) LoadSpecs(call, life *ebpf.CollectionSpec, made map[string]*ebpf.Map) (err error) {
	defer func() {
		if err != nil {
			k.Close()
		}
	}()
	k.postpone(call)
	k.call, err = bpf.Load(call, k.Among(call, made))
	if err != nil {
		return LoadError("the call programs", err)
	}
	k.Memo = newMemo(k.call)
	k.Shares = newShares(k.call)
	k.switches, k.counts = switches{k.call, newSlicing()}, counts{k.call}
	k.targets, k.openCalls = targets{k.call, k.Shares}, openCalls{k.call, k.Shares}
	k.callPrograms.call = k.call
	k.attacher.programs, k.attacher.open, k.attacher.counts = &k.callPrograms, &k.openCalls, &k.counts
	k.life, err = bpf.Load(life, k.Among(life, made))
	if err != nil {
		return LoadError("the process programs", err)
	}
	k.young = young{k.call, k.life, k.Shares}
	return nil
}

// New makes what the programs share, and loads none.
func New(sizes Sizes, can *features.Set) (*Programs, error) {
	k := &Programs{attacher: attacher{multi: can.UprobeMulti}, sizes: sizes, features: can, LimitUse: newLimitUse()}
	var err error
	if k.Unwind, err = unwinding.NewMaps(can.DynamicHash); err != nil {
		k.LimitUse.close()
		return nil, LoadError("the unwind tables", err)
	}
	if can.FindVMA {
		if err := k.Unwind.FindVMAs(); err != nil {
			k.Close()
			return nil, LoadError("the unwind tables", err)
		}
	}
	return k, nil
}

// CallSpec reads the programs of calls, for this kernel.
func (k *Programs) CallSpec() (*ebpf.CollectionSpec, error) {
	spec, err := bpf.LoadCall()
	if err != nil {
		return nil, fmt.Errorf("reading the call programs: %w", err)
	}
	if err := k.Adapt(spec); err != nil {
		return nil, err
	}
	if err := adaptMemo(spec, k.sizes.Verify); err != nil {
		return nil, LoadError("the call programs", err)
	}
	if !k.multi {
		uprobe.Fit(spec)
	}
	return spec, nil
}

// LifeSpec reads the programs of processes, likewise.
func (k *Programs) LifeSpec() (*ebpf.CollectionSpec, error) {
	spec, err := bpf.LoadLife()
	if err != nil {
		return nil, fmt.Errorf("reading the process programs: %w", err)
	}
	return spec, k.Adapt(spec)
}

// Adapt sizes the maps of a program collection and takes out what the kernel
// does not have.
func (k *Programs) Adapt(spec *ebpf.CollectionSpec) error {
	can := k.features
	for name, entries := range map[string]int{
		"calls": k.sizes.Ring, "probe_specs": int(k.Reference()) + 1, "probe_counts": int(k.Reference()) + 1, "samples": sampleRing(k.sizes.Ring),
	} {
		if m, ok := spec.Maps[name]; ok {
			m.MaxEntries = uint32(entries)
		}
	}
	if workspaces, ok := spec.Maps["stack_workspaces"]; ok {
		cpus, err := ebpf.PossibleCPU()
		if err != nil {
			return err
		}
		workspaces.MaxEntries *= uint32(cpus)
	}
	if targets, ok := spec.Maps["targets"]; ok && k.sizes.Targets > 0 {
		targets.MaxEntries = uint32(roomFor(k.sizes.Targets))
	}
	if processes, ok := spec.Variables["user_processes"]; ok && k.sizes.Targets > 0 {
		if err := processes.Set(uint32(k.sizes.Targets)); err != nil {
			return fmt.Errorf("sharing the table of processes: %w", err)
		}
	}
	switch {
	case !can.PreemptGuard:
		bpf.StripGuard(spec)
	case !can.GuardedCalls:
		bpf.MakeStatic(spec)
	}
	if without, ok := spec.Variables["without_bpf_loop"]; ok && !can.BPFLoop {
		if err := without.Set(uint32(1)); err != nil {
			return fmt.Errorf("going without bpf_loop: %w", err)
		}
	}
	if without, ok := spec.Variables["without_find_vma"]; ok && !can.FindVMA {
		if err := without.Set(uint32(1)); err != nil {
			return fmt.Errorf("going without bpf_find_vma: %w", err)
		}
	}
	if threads, ok := spec.Maps["threads"]; ok && !can.DynamicHash {
		threads.Flags, threads.MaxEntries = 0, 2048
	}
	unwinding.Fit(spec, can.DynamicHash)
	if frames, ok := spec.Variables["max_frames"]; ok && k.sizes.Frames > 0 {
		if err := frames.Set(uint32(min(k.sizes.Frames, MostFrames))); err != nil {
			return fmt.Errorf("limiting stacks to %d frames: %w", k.sizes.Frames, err)
		}
	}
	return nil
}

// Replacements are the maps that a further collection shares with those before;
// its constants and uninitialised data are its own.
func (k *Programs) Replacements(spec *ebpf.CollectionSpec) map[string]*ebpf.Map {
	shared := k.Unwind.Replacements(spec)
	for name := range spec.Maps {
		if m := k.Map(name); m != nil && !ownData(name) {
			shared[name] = m
		}
	}
	return shared
}

// Map finds a map by its name in C.
func (k *Programs) Map(name string) *ebpf.Map {
	for _, c := range []*ebpf.Collection{k.call, k.life} {
		if c == nil {
			continue
		}
		if m, ok := c.Maps[name]; ok {
			return m
		}
	}
	return nil
}

// LoadError keeps the verifier's last word in the sentence; %+v has it all.
func LoadError(what string, err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("loading %s: %w (%w)", what, features.ErrNotPermitted, err)
	}
	return fmt.Errorf("loading %s: %w", what, err)
}

// WatchLife attaches the tracepoints of fork, exec and exit, and that of the kernel's killing
// for want of memory, without which a recording is as good as with it until then.
func (k *Programs) WatchLife() error {
	for program, tracepoint := range map[string]string{
		"process_fork": "sched_process_fork",
		"process_exec": "sched_process_exec",
		"process_exit": "sched_process_exit",
		"process_free": "sched_process_free",
	} {
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: tracepoint, Program: k.life.Programs[program]})
		if err != nil {
			return fmt.Errorf("attaching to tracepoint %s: %w", tracepoint, err)
		}
		k.tracepoint = append(k.tracepoint, l)
	}
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "mark_victim", Program: k.life.Programs["process_out_of_memory"]})
	if err == nil {
		k.tracepoint = append(k.tracepoint, l)
	}
	return nil
}

// Close removes every link and map.
func (k *Programs) Close() {
	k.removal.close()
	for _, l := range k.tracepoint {
		l.Close()
	}
	if k.life != nil {
		k.life.Close()
	}
	k.callPrograms.close()
	k.callRing.close()
	if k.call != nil {
		k.call.Close()
	}
	if k.Unwind != nil {
		k.Unwind.Close()
	}
	k.LimitUse.close()
}
