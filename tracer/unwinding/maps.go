// Package unwinding keeps the kernel's unwind tables: which file's code is where
// in each traced process, and how a frame of it is left. The walk that reads
// them is bpf/unwind.h.
//
// The package is no part of the public API: it may change with any version.
package unwinding

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

// Maps are the maps of bpf/unwind_maps.h. Every object that walks shares them:
// load it with MapReplacements of Replacements.
type Maps struct {
	rules, files, shards, processes, found, wanted, outcomes *ebpf.Map
	vmaMaps
}

// tables is where an Unwinder writes: the kernel's maps, or in tests the walk in
// user space.
type tables interface {
	putRule(number uint16, rule *bpf.NativeWalkUnwindRule) error
	putFile(number uint32, file *bpf.NativeWalkUnwindFile) error
	putProcess(pid int, process *bpf.NativeWalkUnwindProcess) error
	deleteProcess(pid int) error
	// putInode says which number a file has, for mappings that putProcess was not told
	// of yet.
	putInode(inode bpf.NativeWalkUnwindInode, file *bpf.NativeWalkUnwindInodeFile) error
	deleteInode(inode bpf.NativeWalkUnwindInode) error
	// forgetVMAs has walks look again for the mappings that they found by themselves.
	forgetVMAs() error
	newShard(number int) (shard, error)
	// takeWanted names the processes in which walks met generated code, or
	// mappings, that they were not told of, and forgets them.
	takeWanted() ([]int, error)
	// settle returns when no walk uses what it looked up before.
	settle() error
}

// shard is room for shardLeaves leaves.
type shard struct {
	memory []byte
	close  func()
}

// The maps' names in C.
const (
	rulesName     = "unwind_rules"
	filesName     = "unwind_files"
	shardsName    = "unwind_shards"
	processesName = "unwind_processes"
	foundName     = "unwind_found"
	wantedName    = "unwind_wanted"
	outcomesName  = "native_outcomes"
	inodesName    = "unwind_inodes"
	vmasName      = "vma_caches"
)

// fewProcesses is for kernels before 6.1, where a program on the clock may only
// look into hash maps that are allocated in whole: 24 KiB a process.
const fewProcesses = 128

// Sizes of bpf/unwind_maps.h.
const (
	shardLeaves = 512
	maxShards   = 128
	maxMappings = 1024
	maxFiles    = 4096
	maxRules    = 32768
	firstFile   = 2
	anonymous   = 1
	noFile      = 0
	untold      = 0 // UNTOLD_PROCESS
)

// NewMaps creates the maps, empty. dynamicHash says that programs on the clock
// may use hash maps that grow.
func NewMaps(dynamicHash bool) (*Maps, error) {
	spec, err := bpf.LoadNativeWalk()
	if err != nil {
		return nil, fmt.Errorf("reading the native walk: %w", err)
	}
	Fit(spec, dynamicHash)
	m := &Maps{}
	for name, place := range m.byName() {
		if *place, err = ebpf.NewMap(spec.Maps[name]); err != nil {
			m.Close()
			return nil, fmt.Errorf("creating the map %s: %w", name, err)
		}
	}
	return m, nil
}

// Fit makes the maps of a specification those that NewMaps creates: one that another
// replaces has to be like it.
func Fit(spec *ebpf.CollectionSpec, dynamicHash bool) {
	if processes, ok := spec.Maps[processesName]; ok && !dynamicHash {
		processes.Flags, processes.MaxEntries = 0, fewProcesses
	}
}

// byName are the fields of the maps, by the names in C.
func (m *Maps) byName() map[string]**ebpf.Map {
	return map[string]**ebpf.Map{
		rulesName: &m.rules, filesName: &m.files, shardsName: &m.shards, processesName: &m.processes, foundName: &m.found, wantedName: &m.wanted,
		outcomesName: &m.outcomes,
		inodesName:   &m.inodes, vmasName: &m.vmas,
	}
}

// Replacements are the maps by their names in C, those that the spec has.
func (m *Maps) Replacements(spec *ebpf.CollectionSpec) map[string]*ebpf.Map {
	shared := map[string]*ebpf.Map{}
	for name, place := range m.byName() {
		if _, ok := spec.Maps[name]; ok {
			shared[name] = *place
		}
	}
	return shared
}

// Close closes the maps; programs that use them keep them.
func (m *Maps) Close() {
	for _, place := range m.byName() {
		if *place != nil {
			(*place).Close()
		}
	}
}

// Outcome is why a walk ended: enum native_outcome. Its name is the same in
// bpf/unwind_maps.h, here, in the terminal and in the warning table.
type Outcome uint32

// Outcomes lists every outcome.
var Outcomes = []struct {
	Outcome  Outcome
	Name     string
	Complete bool // down to the thread's start
	Detail   string
}{
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_END), "native_end", true, "down to the thread's outermost frame"},
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_MAX_FRAMES), "native_max_frames", false, "more frames than are kept (--max-frames): the " +
		"outermost are missing"},
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_NO_PROCESS), "native_no_process", false, "the process's mappings were not loaded yet"},
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_NO_MAPPING), "native_no_mapping", false, "an address where no code is mapped, or is since " +
		"a moment ago"},
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_NO_TABLE), "native_no_table", false, "a file whose unwind table is not ready, or that has " +
		"none, and no frame pointers"},
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_NO_ROW), "native_no_row", false, "code that its file describes no frames of"},
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_ANONYMOUS_CODE), "native_anonymous_code", false, "generated code that was not understood, " +
		"without frame pointers"},
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_BAD_READ), "native_bad_read", false, "stack memory that could not be read"},
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_LOOP), "native_loop", false, "frames that do not rise on the stack"},
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_EXPRESSION), "native_expression", false, "a frame that only an interpreter of DWARF " +
		"expressions could leave"},
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_REGISTER), "native_register", false, "a frame found through a register whose value was lost"},
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_RETURN_PROBE), "native_return_probe", false,
		"a pending return probe whose address was not found"},
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_COMPAT), "native_compat", false, "32-bit code"},
	{Outcome(bpf.NativeWalkNativeOutcomeNATIVE_NOT_A_CALL), "native_not_a_call", false, "code without a description whose instructions " +
		"misled: what they gave as return address follows no call"},
}

// String is the outcome's name.
func (o Outcome) String() string {
	for _, known := range Outcomes {
		if known.Outcome == o {
			return known.Name
		}
	}
	return "native_unknown"
}

// Outcomes counts how often each outcome was, in the order of Outcomes.
func (m *Maps) Outcomes() ([]uint64, error) {
	sums := make([]uint64, len(Outcomes))
	for i, o := range Outcomes {
		var each []uint64
		if err := m.outcomes.Lookup(uint32(o.Outcome), &each); err != nil {
			return nil, fmt.Errorf("reading the outcomes of the native walk: %w", err)
		}
		for _, n := range each {
			sums[i] += n
		}
	}
	return sums, nil
}

// Memory is how many bytes the kernel has given the maps, but for the shards
// (Unwinder.Memory). 0 before 5.10, which does not say.
func (m *Maps) Memory() int {
	sum := uint64(0)
	for _, place := range m.byName() {
		if info, err := (*place).Info(); err == nil {
			bytes, _ := info.Memlock()
			sum += bytes
		}
	}
	return int(sum)
}

func (m *Maps) putRule(number uint16, rule *bpf.NativeWalkUnwindRule) error {
	return m.rules.Put(uint32(number), rule)
}

func (m *Maps) putFile(number uint32, file *bpf.NativeWalkUnwindFile) error {
	return m.files.Put(number, file)
}

func (m *Maps) putProcess(pid int, process *bpf.NativeWalkUnwindProcess) error {
	if err := m.processes.Put(uint32(pid), process); err != nil {
		return err
	}
	return deleteFrom(m.vmas, uint32(pid))
}

func (m *Maps) deleteProcess(pid int) error {
	return errors.Join(deleteFrom(m.processes, uint32(pid)), deleteFrom(m.vmas, uint32(pid)))
}

// deleteFrom deletes what may be gone already.
func deleteFrom(from *ebpf.Map, key any) error {
	if err := from.Delete(key); !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}

func (m *Maps) takeWanted() ([]int, error) {
	var pid uint32
	var pids []int
	for m.wanted.NextKey(nil, &pid) == nil && len(pids) < int(m.wanted.MaxEntries()) {
		if err := m.wanted.Delete(pid); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return pids, fmt.Errorf("taking a process off those with new code: %w", err)
		}
		if !slices.Contains(pids, int(pid)) {
			pids = append(pids, int(pid))
		}
	}
	return pids, nil
}

func (m *Maps) newShard(number int) (shard, error) {
	inner, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "unwind_shard", Type: ebpf.Array, KeySize: 4, ValueSize: unwind.LeafBytes, MaxEntries: shardLeaves, Flags: unix.BPF_F_MMAPABLE,
	})
	if err != nil {
		return shard{}, fmt.Errorf("creating a shard of the unwind tables: %w", err)
	}
	memory, err := unix.Mmap(inner.FD(), 0, shardLeaves*unwind.LeafBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		inner.Close()
		return shard{}, fmt.Errorf("mapping a shard of the unwind tables: %w", err)
	}
	s := shard{memory, func() { _ = unix.Munmap(memory); inner.Close() }}
	if err := m.shards.Put(uint32(number), inner); err != nil {
		s.close()
		return shard{}, fmt.Errorf("adding a shard of the unwind tables: %w", err)
	}
	return s, nil
}

// settle uses that the kernel waits for all programs after a change to a map of
// maps (maybe_wait_bpf_programs in kernel/bpf/syscall.c). The last slot is given
// out only when the tables are as large as can be, and then it is put back.
func (m *Maps) settle() error {
	const last = uint32(maxShards - 1)
	var id ebpf.MapID
	if m.shards.Lookup(last, &id) == nil {
		inner, err := ebpf.NewMapFromID(id)
		if err != nil {
			return fmt.Errorf("waiting for the walks to end: %w", err)
		}
		defer inner.Close()
		return m.shards.Put(last, inner)
	}
	s, err := m.newShard(int(last))
	if err != nil {
		return fmt.Errorf("waiting for the walks to end: %w", err)
	}
	s.close()
	return m.shards.Delete(last)
}
