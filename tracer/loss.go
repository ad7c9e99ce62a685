package tracer

import (
	"fmt"
	"slices"
	"time"

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
	{Loss(bpf.CallLossLOSS_SCOPE_DEPTH), "scope_depth", false, "more nested scopes than the kernel keeps for a thread: the parents inside are the enclosing scope's"},
	{Loss(bpf.CallLossLOSS_SCOPE_LOST), "scope_lost", true, "a scope whose end was not seen, or more open scopes than the kernel keeps"},
	{Loss(bpf.CallLossLOSS_READ_FAULT), "read_fault", false, "memory behind a pointer was not resident: the value is NULL"},
	{Loss(bpf.CallLossLOSS_TEXT_CUT), "text_cut", false, "a string longer than 127 bytes was cut"},
	{Loss(bpf.CallLossLOSS_TEXT_LOST), "text_lost", false, "the ring buffer was full for a name: its span, if that was not lost too, has the name of its function"},
	{Loss(bpf.CallLossLOSS_UNMATCHED_EXIT), "unmatched_exit", false, "a call that began before the probes were in place: no span"},
	{Loss(bpf.CallLossLOSS_FOREIGN_HIT), "foreign_hit", false, "a process that is not traced passed a probe and paid for it"},
	{Loss(bpf.CallLossLOSS_SAMPLE_RING_FULL), "sample_ring_full", true, "the ring buffer of samples was full"},
	{Loss(bpf.CallLossLOSS_STACK_RING_FULL), "stack_ring_full", false, "the ring buffer of samples was full for the frames of a stack: they are sent when it is seen again"},
	{Loss(bpf.CallLossLOSS_SAMPLE_BUSY), "sample_busy", true, "a stack was being taken on the same CPU: no second one at that moment"},
	{Loss(bpf.CallLossLOSS_WAIT_TABLE_FULL), "wait_table_full", true, "more threads off the CPU than the kernel table holds"},
	{Loss(bpf.CallLossLOSS_PROCESS_TABLE_FULL), "process_table_full", true, "children that were not recorded: more processes than the kernel's table holds"},
	{Loss(bpf.CallLossLOSS_WALK_TABLE_FULL), "walk_table_full", false, "children whose call stacks could not be walked before the tracer had looked at them: more processes than the kernel's tables hold"},
	{Loss(bpf.CallLossLOSS_THREAD_QUOTA), "thread_quota", true, "calls of threads beyond one process's share of the kernel's table"},
	{Loss(bpf.CallLossLOSS_WAIT_QUOTA), "wait_quota", true, "waits of threads beyond one process's share of the kernel's table"},
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

// writeLosses puts every loss counter into the dataset.
func (s *Session) writeLosses() error {
	losses, err := s.kernel.losses()
	if err != nil {
		return err
	}
	s.stats.lose(losses)
	now := time.Now().UnixNano()
	for i, n := range losses {
		if n == 0 {
			continue
		}
		kind := "incomplete"
		if Losses[i].Row {
			kind = "lost"
		}
		err := s.sink.Warning(Warning{TSNS: now, Kind: kind, Source: Losses[i].Name, Count: int64(n), Detail: Losses[i].Detail})
		if err != nil {
			return err
		}
	}
	if err := s.writeIncomplete(now); err != nil {
		return err
	}
	if err := s.writeMemo(now); err != nil {
		return err
	}
	if err := s.writeKnownCode(now); err != nil {
		return err
	}
	for _, w := range slices.Concat(s.decoder.losses(), s.unopened(), s.nameLosses()) {
		w.TSNS = now
		if w.Count == 0 {
			continue
		}
		if w.Kind == "lost" {
			s.stats.loseMore(w.Source, uint64(w.Count))
		}
		if err := s.sink.Warning(w); err != nil {
			return err
		}
	}
	return nil
}

// losses are those that the decoder counts, not the kernel.
func (d *decoder) losses() []Warning {
	return append(d.cuda.Losses(), []Warning{
		{Kind: "lost", Source: "damaged_record", Count: int64(d.damaged), Detail: "records of the ring that did not decode: a defect, please report it"},
		{Kind: "incomplete", Source: "linker_hooks", Count: int64(d.unhooked), Detail: "processes beyond the first 64 children: what they loaded while they were recorded was found up to 2 s later"},
		{Kind: "incomplete", Source: "allocation_quota", Count: int64(d.host.crowded), Detail: fmt.Sprintf("allocations of a process that had %d live ones: their frees have no size, and live bytes are too few", maxLiveAllocations)},
		{Kind: "incomplete", Source: "summary_names", Count: int64(d.unsummed), Detail: fmt.Sprintf("calls whose name is not among the first %d: the summary adds them up under one; their rows have their own", maxSummaryNames)},
		{Kind: "incomplete", Source: "name_given_up", Count: int64(d.texts.given), Detail: "names whose call had not ended half a million names later: its span, if it comes, has the name of its function"},
		{Kind: "incomplete", Source: "communicator_unknown", Count: int64(d.accelerators.Strangers()), Detail: "collectives on communicators that were made before the recording, or by a call that it did not see: they have a handle and no identity, and rank and size only if the job asked NCCL for them meanwhile"},
		{Kind: "incomplete", Source: "graph_replay_cut", Count: int64(d.accelerators.ReplaysCut), Detail: "replays of graphs with more than 65536 nodes, child graphs included: the edges beyond, and what memory nodes beyond did, are missing"},
		{Kind: "incomplete", Source: "graph_body_unread", Count: int64(d.accelerators.BodiesUnread), Detail: "bodies of conditional nodes of graphs beyond the second of a node, or that could not be read: what they may have run is not told"},
		{Kind: "incomplete", Source: "edge_without_operator", Count: int64(d.edgeless), Detail: "backward nodes whose operator has no row (it ran before the recording, outside of a slice, or half a million operators earlier): no forward_backward edge"},
	}...)
}
