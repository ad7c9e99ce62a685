package tracer

import (
	"fmt"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/mapped"
)

// writeLosses puts every loss counter into the dataset.
func (s *Session) writeLosses() error {
	losses, err := s.kernel.AllLost()
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
		if kernel.Losses[i].Row {
			kind = "lost"
		}
		err := s.sink.Warning(Warning{TSNS: now, Kind: kind, Source: kernel.Losses[i].Name, Count: int64(n), Detail: kernel.Losses[i].Detail})
		if err != nil {
			return err
		}
	}
	if err := s.writeIncomplete(now); err != nil {
		return err
	}
	if err := s.writeUnresolvedLines(now); err != nil {
		return err
	}
	if err := s.writeMemo(now); err != nil {
		return err
	}
	if err := s.writeKnownCode(now); err != nil {
		return err
	}
	for _, w := range slices.Concat(s.decoder.losses(), s.unopened(), s.nameLosses(), s.distrusted(), s.filtered.Losses()) {
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

// unopened says how many libraries were not opened to name what is in them.
func (s *Session) unopened() []Warning {
	return []Warning{{
		Kind: "incomplete", Source: "library_quota", Count: int64(s.classes.files.Refused() + s.stubs.Unopened()),
		Detail: fmt.Sprintf("libraries beyond the %d that are open at once: autograd nodes and kernels that are in them have no name", mapped.MaxOpen),
	}}
}

// losses are those that the decoder counts, not the kernel.
func (d *decoder) losses() []Warning {
	return append(d.cuda.Losses(), []Warning{
		{Kind: "lost", Source: "damaged_record", Count: int64(d.damaged), Detail: "records of the ring that did not decode: a defect, please report it"},
		{Kind: "incomplete", Source: "linker_hooks", Count: int64(d.unhooked), Detail: "processes beyond the first 64 children: what they loaded while they were recorded was found up to 2 s later"},
		{Kind: "incomplete", Source: "allocation_quota", Count: int64(d.host.crowded), Detail: fmt.Sprintf("allocations of a process that had %d live ones: their frees have no size, and live bytes are too few", maxLiveAllocations)},
		{Kind: "incomplete", Source: "summary_names", Count: int64(d.unsummed), Detail: fmt.Sprintf("calls whose name is not among the first %d: the summary adds them up under one; their rows have their own", maxSummaryNames)},
		{Kind: "incomplete", Source: "name_given_up", Count: int64(d.texts.Dropped), Detail: "names whose call had not ended half a million names later: its span, if it comes, has the name of its function"},
		{Kind: "incomplete", Source: "communicator_unknown", Count: int64(d.accelerators.Strangers()), Detail: "collectives on communicators that were made before the recording, or by a call that it did not see: they have a handle and no identity, and rank and size only if the job asked NCCL for them meanwhile"},
		{Kind: "incomplete", Source: "handle_quota", Count: int64(d.accelerators.Forgotten), Detail: fmt.Sprintf("times that all handles of an accelerator's runtime in a process were forgotten, for there were more than %d: names, devices and communicators that were made before are not known after", accel.MaxHandles)},
		{Kind: "incomplete", Source: "split_quota", Count: int64(d.accelerators.SplitsGivenUp()), Detail: fmt.Sprintf("divisions of communicators that were forgotten before all of their ranks had been seen, for their process had %d of them, or the recording %d: rank and size of the parts are known only if the job asked for them", accel.MaxSplitsOfProcess, accel.MaxSplits)},
		{Kind: "incomplete", Source: "graph_replay_cut", Count: int64(d.accelerators.ReplaysCut), Detail: "replays of graphs with more than 65536 nodes, child graphs included: the edges beyond, and what memory nodes beyond did, are missing"},
		{Kind: "incomplete", Source: "graph_body_unread", Count: int64(d.accelerators.BodiesUnread), Detail: "bodies of conditional nodes of graphs beyond the second of a node, or that could not be read: what they may have run is not told"},
		{Kind: "incomplete", Source: "shapes_unlikely", Count: int64(d.shapeless), Detail: "calls whose tensors' sizes could not be read, or do not multiply to their elements, or do not fit into their storage (those of a compiler's tracing have none), or came before any that did: no shapes"},
		{Kind: "incomplete", Source: "shapes_given_up", Count: int64(d.shapesOf.Dropped), Detail: "shapes whose call had not ended half a million of them later: its span, if it comes, has none"},
		{Kind: "incomplete", Source: "waits_dropped", Count: int64(d.waits.Dropped), Detail: "collectives of torch.distributed, or groups, beyond those that are followed at once (16384 and 4096): they have no number or group, and do not show as open"},
		{Kind: "incomplete", Source: "edge_without_operator", Count: int64(d.edgeless), Detail: "backward nodes whose operator has no row (it ran before the recording, outside of a slice, or half a million operators earlier): no forward_backward edge"},
	}...)
}
