package decode

import (
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
)

// Losses are those that the decoder counts, not the kernel.
func (d *Decoder) Losses() []event.Warning {
	runtimes := d.Runtimes.calls
	return slices.Concat(d.Runtimes.cuda.Losses(), d.samples.io.Losses(), []event.Warning{
		{Kind: "lost", Source: "damaged_record", Count: int64(d.damaged()), Detail: "records of the ring that did not decode: a defect, " +
			"please report it"},
		{Kind: "lost", Source: "slice_full", Count: int64(d.Rows.Slices.Lost), Detail: "rows of slices that found no room among " +
			"the million that wait for their weights: these slices undercount the calls; a smaller --budget or --exclude of their groups " +
			"makes fewer rows"},
		{Kind: "incomplete", Source: "allocation_quota", Count: int64(d.calls.host.crowded),
			Detail: fmt.Sprintf("allocations of a process that had %d live ones: their frees have no size, and live bytes are too few",
				maxLiveAllocations)},
		{Kind: "incomplete", Source: "summary_names", Count: int64(d.Rows.Sums.Unnamed),
			Detail: fmt.Sprintf("calls whose name is not among the first %d: the summary adds them up under one; their rows have their own",
				rows.MaxSummaryNames)},
		{Kind: "incomplete", Source: "name_given_up", Count: int64(d.calls.texts.Dropped), Detail: "names whose call had not ended half a " +
			"million names later: its span, if it comes, has the name of its function"},
		{Kind: "incomplete", Source: "communicator_unknown", Count: int64(runtimes.Strangers()), Detail: "collectives on communicators that " +
			"were made before the recording, or by a call that it did not see: they have a handle and no identity, and rank and size only if the " +
			"job asked NCCL for them meanwhile"},
		{Kind: "incomplete", Source: "handle_quota", Count: int64(runtimes.Forgotten),
			Detail: fmt.Sprintf("times that all handles of an accelerator's runtime in a process were forgotten, for there were more than %d: "+
				"names, devices and communicators that were made before are not known after", accel.MaxHandles)},
		{Kind: "incomplete", Source: "split_quota", Count: int64(runtimes.SplitsGivenUp()),
			Detail: fmt.Sprintf("divisions of communicators that were forgotten before all of their ranks had been seen, for their process had %d "+
				"of them, or the recording %d: rank and size of the parts are known only if the job asked for them", accel.MaxSplitsOfProcess,
				accel.MaxSplits)},
		{Kind: "incomplete", Source: "graph_replay_cut", Count: int64(runtimes.ReplaysCut), Detail: "replays of graphs with more than 65536 " +
			"nodes, child graphs included: the edges beyond, and what memory nodes beyond did, are missing"},
		{Kind: "incomplete", Source: "graph_body_unread", Count: int64(runtimes.BodiesUnread), Detail: "bodies of conditional nodes of graphs " +
			"beyond the second of a node, or that could not be read: what they may have run is not told"},
		{Kind: "incomplete", Source: "shapes_unlikely", Count: int64(d.calls.shapes.shapeless), Detail: "calls whose tensors' sizes could not " +
			"be read, or do not multiply to their elements, or do not fit into their storage (those of a compiler's tracing have none), or came " +
			"before any that did: no shapes"},
		{Kind: "incomplete", Source: "shapes_given_up", Count: int64(d.calls.shapes.forgotten), Detail: "calls with the same shapes as earlier " +
			"ones, of which so many others were seen since that they are not cached any more: no shapes"},
		{Kind: "incomplete", Source: "waits_dropped", Count: int64(d.Collectives.waits.Dropped), Detail: "collectives of torch.distributed, or " +
			"groups, beyond those that are followed at once (16384 and 4096): they have no number or group, and do not show as open"},
		{Kind: "incomplete", Source: "kernel_unnamed", Count: int64(d.calls.fused.unnamed), Detail: "calls of kernels that a compiler " +
			"generated, whose name is not known: what called them could not be read, or the generated module was not read with its library and " +
			"gone when the first of its calls was seen"},
		{Kind: "incomplete", Source: "edge_without_operator", Count: int64(d.calls.forwards.edgeless),
			Detail: "backward nodes whose operator has no row (it ran before the recording, outside of a slice, or half a million operators " +
				"earlier): no forward_backward edge"},
	})
}
