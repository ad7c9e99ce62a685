package tracer

import "github.com/ebpfprof/ebpfprof/tracer/cache"

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

// forwards are the operators that took a sequence number, by process. Of each the
// youngest are kept.
type forwards map[uint32]*cache.Pending[sequenceKey, int64]

type sequenceKey struct {
	thread uint32 // as PyTorch numbers them
	number int64
}

func (f forwards) of(pid uint32) *cache.Pending[sequenceKey, int64] {
	w := f[pid]
	if w == nil {
		w = &cache.Pending[sequenceKey, int64]{Half: maxForwards / 2}
		f[pid] = w
	}
	return w
}

func (f forwards) ended(pid uint32) { delete(f, pid) }

// flow joins a backward node to the operator that took its sequence number.
func (d *decoder) flow(s *Span, r *callRecord) {
	key := sequenceKey{r.thread, s.SequenceNumber}
	if s.Call.Layer == "op" {
		d.forwards.of(r.Tgid).Put(key, s.ID)
		if d.slicing.Load() {
			d.nodes.Saw(s.TID, r.Epoch, s.StartNS, s.SequenceNumber)
		}
		return
	}
	forward, ok := d.forwards.of(r.Tgid).Get(key)
	if !ok {
		d.edgeless++
		return
	}
	d.flows = append(d.flows, Flow{
		TSNS: s.StartNS, FromSpanID: forward, ToSpanID: s.ID,
		Kind: "forward_backward", Method: "sequence_number",
	})
	d.totals.Flows++
}
