package tracer

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/unwinding"
)

// maxSpecs bounds the probe table: two copies of PyTorch and some runtimes.
const maxSpecs = 8192

// kernel is what the tracer has loaded: programs, maps and the links of the
// process tracepoints. Nothing is pinned: when the tracer dies, the kernel
// takes everything out.
type kernel struct {
	hastener   hastener
	call, life *ebpf.Collection
	unwind     *unwinding.Maps
	tracepoint []link.Link
	multi      bool // uprobe.multi links, else one perf uprobe a site
	sizes      kernelSizes
	features   *Features
	memo       memo
}

// MostFrames is for how many frames of each kind a stack has room in the kernel.
const MostFrames = 256

// kernelSizes are what the programs are loaded for.
type kernelSizes struct {
	ring    int    // bytes of the call ring, a power of two multiple of the page size
	frames  int    // of each kind in a stack; what the programs say if 0
	targets int    // processes; what the programs say if 0
	verify  uint32 // of so many remembered stacks one is walked again, a power of two; 0: none is remembered
}

// loadKernel loads the programs.
func loadKernel(sizes kernelSizes, features *Features) (*kernel, error) {
	if err := rlimit.RemoveMemlock(); err != nil && !errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("raising the locked-memory limit: %w", err)
	}
	k, err := newKernel(sizes, features)
	if err != nil {
		return nil, err
	}
	callSpec, err := k.callSpec()
	if err != nil {
		k.Close()
		return nil, err
	}
	lifeSpec, err := k.lifeSpec()
	if err != nil {
		k.Close()
		return nil, err
	}
	k.call, err = ebpf.NewCollectionWithOptions(callSpec, ebpf.CollectionOptions{MapReplacements: k.replacements(callSpec)})
	if err != nil {
		k.Close()
		return nil, loadError("the call programs", err)
	}
	k.memo = newMemo(k.call)
	k.life, err = ebpf.NewCollectionWithOptions(lifeSpec, ebpf.CollectionOptions{MapReplacements: k.replacements(lifeSpec)})
	if err != nil {
		k.Close()
		return nil, loadError("the process programs", err)
	}
	return k, nil
}

// newKernel makes what the programs share, and loads none.
func newKernel(sizes kernelSizes, features *Features) (*kernel, error) {
	k := &kernel{multi: features.UprobeMulti, sizes: sizes, features: features}
	var err error
	if k.unwind, err = unwinding.NewMaps(features.DynamicHash); err != nil {
		return nil, loadError("the unwind tables", err)
	}
	return k, nil
}

// callSpec reads the programs of calls, for this kernel.
func (k *kernel) callSpec() (*ebpf.CollectionSpec, error) {
	spec, err := bpf.LoadCall()
	if err != nil {
		return nil, fmt.Errorf("reading the call programs: %w", err)
	}
	if err := k.adapt(spec); err != nil {
		return nil, err
	}
	if err := adaptMemo(spec, k.sizes.verify); err != nil {
		return nil, loadError("the call programs", err)
	}
	if !k.multi {
		for _, p := range spec.Programs {
			p.AttachType = ebpf.AttachNone
		}
	}
	return spec, nil
}

// lifeSpec reads the programs of processes, likewise.
func (k *kernel) lifeSpec() (*ebpf.CollectionSpec, error) {
	spec, err := bpf.LoadLife()
	if err != nil {
		return nil, fmt.Errorf("reading the process programs: %w", err)
	}
	return spec, k.adapt(spec)
}

// adapt sizes the maps of a program collection and takes out what the kernel
// does not have.
func (k *kernel) adapt(spec *ebpf.CollectionSpec) error {
	features := k.features
	for name, entries := range map[string]int{
		"calls": k.sizes.ring, "probe_specs": maxSpecs, "probe_counts": maxSpecs, "samples": sampleRingBytes,
	} {
		if m, ok := spec.Maps[name]; ok {
			m.MaxEntries = uint32(entries)
		}
	}
	if targets, ok := spec.Maps["targets"]; ok && k.sizes.targets > 0 {
		targets.MaxEntries = uint32(k.sizes.targets)
	}
	switch {
	case !features.PreemptGuard:
		bpf.StripGuard(spec)
	case !features.GuardedCalls:
		bpf.MakeStatic(spec)
	}
	if without, ok := spec.Variables["without_bpf_loop"]; ok && !features.BPFLoop {
		if err := without.Set(uint32(1)); err != nil {
			return fmt.Errorf("going without bpf_loop: %w", err)
		}
	}
	if threads, ok := spec.Maps["threads"]; ok && !features.DynamicHash {
		threads.Flags, threads.MaxEntries = 0, 2048
	}
	if frames, ok := spec.Variables["max_frames"]; ok && k.sizes.frames > 0 {
		if err := frames.Set(uint32(min(k.sizes.frames, MostFrames))); err != nil {
			return fmt.Errorf("limiting stacks to %d frames: %w", k.sizes.frames, err)
		}
	}
	return nil
}

// replacements are the maps that a further collection shares with those before;
// its constants and uninitialised data are its own.
func (k *kernel) replacements(spec *ebpf.CollectionSpec) map[string]*ebpf.Map {
	shared := k.unwind.Replacements(spec)
	for name := range spec.Maps {
		if m := k.shared(name); m != nil && name != ".bss" && name != ".rodata" {
			shared[name] = m
		}
	}
	return shared
}

// shared finds a map by its name in C.
func (k *kernel) shared(name string) *ebpf.Map {
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

// loadError keeps the verifier's last word in the sentence; %+v has it all.
func loadError(what string, err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("loading %s: %w (%w)", what, ErrNotPermitted, err)
	}
	return fmt.Errorf("loading %s: %w", what, err)
}

// watchLife attaches the tracepoints of fork, exec and exit.
func (k *kernel) watchLife() error {
	for program, tracepoint := range map[string]string{
		"process_fork": "sched_process_fork",
		"process_exec": "sched_process_exec",
		"process_exit": "sched_process_exit",
	} {
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: tracepoint, Program: k.life.Programs[program]})
		if err != nil {
			return fmt.Errorf("attaching to tracepoint %s: %w", tracepoint, err)
		}
		k.tracepoint = append(k.tracepoint, l)
	}
	return nil
}

// Close removes every link and map.
func (k *kernel) Close() {
	k.hastener.close()
	for _, l := range k.tracepoint {
		l.Close()
	}
	if k.life != nil {
		k.life.Close()
	}
	if k.call != nil {
		k.call.Close()
	}
	if k.unwind != nil {
		k.unwind.Close()
	}
}

func (k *kernel) setSpec(index uint32, spec *bpf.CallProbeSpec) error {
	return k.call.Maps["probe_specs"].Put(index, spec)
}

// setEpoch is called when probes are taken out: what is open has no visible end.
func (k *kernel) setEpoch(epoch uint32) error {
	return k.call.Variables["epoch"].Set(epoch)
}

// setAnchorEpoch begins an epoch before which the end of nothing was seen, of
// what is in all the time either.
func (k *kernel) setAnchorEpoch(epoch uint32) error {
	if err := k.call.Variables["anchor_epoch"].Set(epoch); err != nil {
		return err
	}
	return k.setEpoch(epoch)
}

// counts sums one probe's counters over the CPUs.
func (k *kernel) count(index uint32) (bpf.CallProbeCount, error) {
	var per []bpf.CallProbeCount
	if err := k.call.Maps["probe_counts"].Lookup(index, &per); err != nil {
		return bpf.CallProbeCount{}, err
	}
	return sumCounts(per), nil
}

// stopRecording lets nothing begin any more; what is open may still end.
func (k *kernel) stopRecording() error { return k.call.Variables["recording"].Set(uint32(0)) }

// setDetail makes the detail groups record, or pass by what they see.
func (k *kernel) setDetail(on bool) error {
	value := uint32(0)
	if on {
		value = 1
	}
	return k.call.Variables["detail_on"].Set(value)
}

// clearCount forgets what a probe counted.
func (k *kernel) clearCount(index uint32) error {
	n, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	return k.call.Maps["probe_counts"].Put(index, make([]bpf.CallProbeCount, n))
}

func sumCounts(per []bpf.CallProbeCount) (sum bpf.CallProbeCount) {
	for _, c := range per {
		sum.Entries += c.Entries
		sum.Exits += c.Exits
		sum.Lost += c.Lost
		sum.Passed += c.Passed
	}
	return sum
}

// loss returns the counter of one reason.
func (k *kernel) loss(of Loss) (sum uint64, err error) {
	var per []uint64
	if err := k.call.Maps["losses"].Lookup(uint32(of), &per); err != nil {
		return 0, fmt.Errorf("reading the loss counters: %w", err)
	}
	for _, n := range per {
		sum += n
	}
	return sum, nil
}

// losses returns the counters by reason, in the order of Losses.
func (k *kernel) losses() ([]uint64, error) {
	sums := make([]uint64, len(Losses))
	if k.lossesAtOnce(sums) {
		return sums, nil
	}
	for i, r := range Losses {
		var err error
		if sums[i], err = k.loss(r.Loss); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// lossesAtOnce reads all counters in one system call, where the kernel can (since 5.13).
func (k *kernel) lossesAtOnce(sums []uint64) bool {
	counters := k.call.Maps["losses"]
	entries, cpus := int(counters.MaxEntries()), ebpf.MustPossibleCPU()
	reasons, counts := make([]uint32, entries), make([]uint64, entries*cpus)
	n, err := counters.BatchLookup(new(ebpf.MapBatchCursor), reasons, counts, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) || n != entries { // that error says that these are all
		return false
	}
	byReason := make([]uint64, entries)
	for i, reason := range reasons {
		for _, count := range counts[i*cpus : (i+1)*cpus] {
			byReason[reason] += count
		}
	}
	for i, r := range Losses {
		sums[i] = byReason[r.Loss]
	}
	return true
}

// callsOpen reports whether a thread is in a call of the detail groups that was
// seen to begin; once nothing begins any more, in any call.
func (k *kernel) callsOpen() bool {
	var tid, on uint32
	var state bpf.CallThreadState
	recording := k.call.Variables["recording"].Get(&on) == nil && on != 0
	for threads := k.call.Maps["threads"].Iterate(); threads.Next(&tid, &state); {
		for _, f := range state.Frame[:min(int(state.Depth), len(state.Frame))] {
			if !recording || f.Flags&uint16(bpf.CallSpecFlagSPEC_DETAIL) != 0 {
				return true
			}
		}
	}
	return false
}

// openCall is a call that had not ended when the recording did.
type openCall struct {
	spec      uint32
	tgid, tid uint32
	spanID    uint64
	parentID  uint64
	startNS   uint64
	epoch     uint32
}

// openCalls reads what is still open, from the kernel's thread table and the
// table of scopes.
func (k *kernel) openCalls() (calls []openCall, err error) {
	var tid uint32
	var state bpf.CallThreadState
	threads := k.call.Maps["threads"].Iterate()
	for threads.Next(&tid, &state) {
		for _, f := range state.Frame[:min(int(state.Depth), len(state.Frame))] {
			calls = append(calls, openCall{f.Spec, state.Tgid, tid, f.SpanId, f.ParentId, f.StartNs, f.Epoch})
		}
	}
	if err := threads.Err(); err != nil {
		return nil, fmt.Errorf("reading the open calls: %w", err)
	}
	return append(calls, k.takeScopes()...), nil
}

// takeScopes takes what is left out of the table of open scopes. Nothing that
// ends scopes may be attached.
func (k *kernel) takeScopes() (open []openCall) {
	var key bpf.CallScopeKey
	var v bpf.CallScopeValue
	scopes := k.call.Maps["scopes"]
	for it := scopes.Iterate(); it.Next(&key, &v); {
		open = append(open, openCall{v.Spec, key.Tgid, v.Tid, v.SpanId, v.ParentId, v.StartNs, v.Epoch})
	}
	for it := scopes.Iterate(); it.Next(&key, &v); {
		scopes.Delete(key)
	}
	return open
}
