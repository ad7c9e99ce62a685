package kernel

import (
	"github.com/ebpfprof/ebpfprof/bpf"
)

// Loss is a reason why something that happened is not, or not wholly, in the
// dataset. Its name is the same in bpf/wire.h, here, in the terminal and in the
// source column of the warning table.
type Loss uint32

// Losses lists every reason in the order of enum loss in bpf/wire.h.
var Losses = []struct {
	Loss   Loss
	Name   string
	Row    bool // a row is missing; otherwise only a value of one
	Detail string
}{
	{Loss(bpf.CallLossLOSS_RING_FULL), "ring_full", true, "the ring buffer was full: raise --buffer-size or narrow --probe"},
	{Loss(bpf.CallLossLOSS_LIFE_RING_FULL), "life_ring_full", true, "the ring buffer of process events was full"},
	{Loss(bpf.CallLossLOSS_THREAD_TABLE_FULL), "thread_table_full", true, "more threads than the kernel table holds"},
	{Loss(bpf.CallLossLOSS_STACK_DEPTH), "stack_depth", true, "more nested calls than the kernel keeps for a thread"},
	{Loss(bpf.CallLossLOSS_SCOPE_DEPTH), "scope_depth", false, "more nested scopes than the kernel keeps for a thread: the parents inside " +
		"are the enclosing scope's"},
	{Loss(bpf.CallLossLOSS_SCOPE_LOST), "scope_lost", true, "a scope whose end was not seen, or more open scopes than the kernel keeps"},
	{Loss(bpf.CallLossLOSS_READ_FAULT), "read_fault", false, "memory behind a pointer was not resident: the value is NULL"},
	{Loss(bpf.CallLossLOSS_TEXT_CUT), "text_cut", false, "a string longer than 127 bytes was cut"},
	{Loss(bpf.CallLossLOSS_TEXT_LOST), "text_lost", false, "the ring buffer was full for a name: its span, if that was not lost too, has " +
		"the name of its function"},
	{Loss(bpf.CallLossLOSS_UNMATCHED_EXIT), "unmatched_exit", false, "a call that began before the probes were in place: no span"},
	{Loss(bpf.CallLossLOSS_FOREIGN_HIT), "foreign_hit", false, "a process that is not traced passed a probe and paid for it"},
	{Loss(bpf.CallLossLOSS_SAMPLE_RING_FULL), "sample_ring_full", true, "the ring buffer of samples was full"},
	{Loss(bpf.CallLossLOSS_STACK_RING_FULL), "stack_ring_full", false, "the ring buffer of samples was full for the frames of a stack: they " +
		"are sent when it is seen again"},
	{Loss(bpf.CallLossLOSS_SAMPLE_BUSY), "sample_busy", true, "a stack was being taken on the same CPU: no second one at that moment"},
	{Loss(bpf.CallLossLOSS_WAIT_TABLE_FULL), "wait_table_full", true, "more threads off the CPU than the kernel table holds"},
	{Loss(bpf.CallLossLOSS_PROCESS_TABLE_FULL), "process_table_full", true, "children that were not recorded: more processes than the " +
		"kernel's table holds"},
	{Loss(bpf.CallLossLOSS_WALK_TABLE_FULL), "walk_table_full", false, "children whose call stacks could not be walked before the tracer " +
		"had looked at them: more processes than the kernel's tables hold"},
	{Loss(bpf.CallLossLOSS_THREAD_QUOTA), "thread_quota", true, "calls of threads beyond the share of one process, or of one user, of the " +
		"kernel's table"},
	{Loss(bpf.CallLossLOSS_WAIT_QUOTA), "wait_quota", true, "waits of threads beyond the share of one process, or of one user, of the " +
		"kernel's table"},
	{Loss(bpf.CallLossLOSS_SCOPE_QUOTA), "scope_quota", true, "scopes that a process opened beyond its share, or its user's, of the " +
		"kernel's table of open ones"},
	{Loss(bpf.CallLossLOSS_SHAPES_LOST), "shapes_lost", false, "the ring buffer was full for the shapes of a call: its span, if that was " +
		"not lost too, has none"},
	{Loss(bpf.CallLossLOSS_IO_LOST), "io_lost", true, "threads whose last reads and writes, less than a second of them, found no room in " +
		"the ring buffer of samples when they ended"},
	{Loss(bpf.CallLossLOSS_IO_TABLE_FULL), "io_table_full", true, "reads and writes of threads beyond those that the kernel's table holds"},
	{Loss(bpf.CallLossLOSS_IO_QUOTA), "io_quota", true, "reads and writes of threads beyond the share of one process, or of one user, of " +
		"the kernel's table"},
	{Loss(bpf.CallLossLOSS_PREEMPTED_STACK), "preempted_stack", false, "samples of threads that waited for a CPU, without a stack: more " +
		"threads lost theirs than stacks are taken for"},
	{Loss(bpf.CallLossLOSS_SHORT_LIVES), "short_lives", true, "short processes of more commands than the kernel's table holds"},
	{Loss(bpf.CallLossLOSS_PROCESS_QUOTA), "process_quota", true, "children that were not recorded: their user has its share of the " +
		"kernel's table of processes"},
}

// Name is the reason's name, as it is in the dataset.
func (l Loss) Name() string {
	for _, r := range Losses {
		if r.Loss == l {
			return r.Name
		}
	}
	return "unknown"
}
