package decode

import (
	"github.com/ebpfprof/ebpfprof/tracer/cache"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
)

// Which operator a backward node differentiates. Each thread numbers the nodes that
// it makes, from 0 on; a node has its number, and PyTorch's own number of the thread.
// Both together are one node's alone; the number is not, where two threads train.

// sequenceBits of a record's sequence are the number; above are those of the thread.
const (
	sequenceBits = 40
	threadMask   = 1<<(63-sequenceBits) - 1
	// unknownThread is no thread's: it could not be read.
	unknownThread = threadMask + 1
)

// sequenceOf takes a record's sequence apart; the number is -1 where there is none.
func sequenceOf(recorded uint64) (number int64, thread uint32) {
	if recorded == ^uint64(0) {
		return -1, 0
	}
	return int64(recorded & (1<<sequenceBits - 1)), uint32(recorded >> sequenceBits & threadMask)
}

// maxForwards are the operators of one process whose backward nodes are waited for.
const maxForwards = 1 << 20

// forwards are the operators that took a sequence number, by process. Of each the
// youngest are kept.
type forwards struct {
	rows      *rows.Rows
	nodes     *progress.NodeClock
	operators map[uint32]*cache.Pending[sequenceKey, int64]
	edgeless  uint64 // backward nodes whose operator has no row
}

type sequenceKey struct {
	thread uint32 // as PyTorch numbers them
	number int64
}

func newForwards(to *rows.Rows, nodes *progress.NodeClock) *forwards {
	return &forwards{rows: to, nodes: nodes, operators: map[uint32]*cache.Pending[sequenceKey, int64]{}}
}

func (f *forwards) of(pid uint32) *cache.Pending[sequenceKey, int64] {
	operators := f.operators[pid]
	if operators == nil {
		operators = &cache.Pending[sequenceKey, int64]{Half: maxForwards / 2}
		f.operators[pid] = operators
	}
	return operators
}

// Forget implements Owner.
func (f *forwards) Forget(pid uint32) { delete(f.operators, pid) }

// flow joins a backward node to the operator that took its sequence number.
func (f *forwards) flow(s *event.Span, r *callRecord) {
	key := sequenceKey{r.thread, s.SequenceNumber}
	if s.Call.Layer == "op" || s.Call.Layer == "scope" { // that of a torch.autograd.Function
		f.of(r.Tgid).Put(key, s.ID)
		if s.Call.Layer == "op" && f.rows.Slices.On() {
			f.nodes.Saw(s.TID, r.Epoch, s.StartNS, s.SequenceNumber)
		}
		return
	}
	forward, ok := f.of(r.Tgid).Get(key)
	if !ok {
		f.edgeless++
		return
	}
	f.rows.Batch.Flow(event.Flow{
		TSNS: s.StartNS, FromSpanID: forward, ToSpanID: s.ID,
		Kind: "forward_backward", Method: "sequence_number",
	})
}
