package accel

import (
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// communicators knows the groups of ranks of one process, and how deep each
// thread is in groups of calls.
type communicators struct {
	known  map[uint64]*communicator
	groups map[uint32]int32
	// strange counts collectives on communicators whose identity is not known.
	strange uint64
	splits  *splits
	pending pendingHandles
	shrunk  int // sets of ranks that were left out, kept of all of them
}

type communicator struct {
	id      *int64 // the same on every rank; nil where its making was not seen
	rank    *int32
	ranks   *int32
	splits  uint64
	shrinks map[uint64]uint64 // by the ranks that were left out
}

// newCommunicators takes the function that reads a word of the process.
func newCommunicators(all *splits, read func(address uint64) (uint64, bool)) communicators {
	return communicators{known: map[uint64]*communicator{}, groups: map[uint32]int32{}, splits: all, pending: pendingHandles{read: read}}
}

// communicate fills the columns of a collective.
func (c *Call) communicate() {
	if c.f.Layer != "collective" {
		return
	}
	d := c.detail()
	if depth := c.communicators.groups[c.tid]; depth > 0 {
		d.GroupDepth = &depth
	}
	c.elements(d)
	if c.args.Has(spec.FieldRank) && c.args.Has(spec.FieldRanks) { // said in the call itself
		rank, ranks := int32(c.args.value[spec.FieldRank]), int32(c.args.value[spec.FieldRanks])
		if d.Ranks = &ranks; rank >= 0 {
			d.Rank = &rank
		}
	}
	if !c.args.Has(spec.FieldCommunicator) || c.f.Effect == spec.JoinsCommunicator || c.f.Effect == spec.JoinsAll {
		return
	}
	handle := int64(c.args.value[spec.FieldCommunicator])
	d.CommunicatorHandle = &handle
	known := c.communicators.byHandle(uint64(handle))
	if known != nil {
		d.Communicator, d.Rank, d.Ranks = known.id, known.rank, known.ranks
	}
	if c.f.Category == "collective" && (known == nil || known.id == nil) {
		c.communicators.strange++
	}
}

// elements gives count, type and size of what one rank moves.
func (c *Call) elements(d *event.Detail) {
	for _, f := range []spec.Field{spec.FieldPeer, spec.FieldRoot} {
		if c.args.Has(f) {
			peer := int32(c.args.value[f])
			d.PeerRank = &peer
		}
	}
	d.ElementCount = c.args.Int64(spec.FieldCount)
	if !c.args.Has(spec.FieldDtype) {
		return
	}
	n := c.args.value[spec.FieldDtype]
	if n >= uint64(len(c.f.Dtypes)) {
		return // a type that this version of the table does not know
	}
	d.Dtype = c.f.Dtypes[n].Name
	if d.ElementCount != nil {
		bytes := *d.ElementCount * c.f.Dtypes[n].Bytes
		d.Bytes = &bytes
	}
}

// apply keeps what a call says of communicators and groups.
func (m *communicators) apply(c *Call) {
	handle := c.args.value[spec.FieldCommunicator]
	switch c.f.Effect {
	case spec.JoinsCommunicator:
		m.join(c, handle)
	case spec.JoinsAll:
		m.joinAll(c)
	case spec.TellsCommunicator:
		m.tell(c, handle)
	case spec.SplitsCommunicator:
		m.split(c, handle)
	case spec.ShrinksCommunicator:
		m.shrink(c, handle)
	case spec.LeavesCommunicator:
		if left := m.known[handle]; left != nil {
			m.shrunk -= len(left.shrinks)
			delete(m.known, handle)
		}
	case spec.BeginsGroup:
		m.groups[c.tid]++
	case spec.EndsGroup:
		if m.groups[c.tid]--; m.groups[c.tid] <= 0 {
			delete(m.groups, c.tid)
		}
	}
}

// join makes a communicator: inside a group its handle is there, but not usable,
// before the group ends.
func (m *communicators) join(c *Call, handle uint64) {
	made := &communicator{}
	if c.args.Has(spec.FieldUniqueID) {
		id := int64(c.args.value[spec.FieldUniqueID] &^ (1 << 63))
		made.id = &id
	}
	if rank := int32(c.args.value[spec.FieldRank]); c.args.Has(spec.FieldRank) && rank >= 0 {
		made.rank = &rank
	}
	if c.args.Has(spec.FieldRanks) {
		ranks := int32(c.args.value[spec.FieldRanks])
		made.ranks = &ranks
	}
	d := c.detail()
	d.Communicator, d.Rank, d.Ranks = made.id, made.rank, made.ranks
	if handle != 0 {
		as := int64(handle)
		d.CommunicatorHandle = &as
		m.known[handle] = made
	} else {
		m.expect(c, made)
	}
}

// joinAll makes the communicators of one process with several devices. Nobody
// else has a part in them, so their identity need not be the same elsewhere.
func (m *communicators) joinAll(c *Call) {
	if !c.args.Has(spec.FieldRanks) {
		return
	}
	ranks := int32(c.args.value[spec.FieldRanks])
	d := c.detail()
	d.Ranks = &ranks
	for i, handle := range c.all(spec.FieldCommunicator) {
		if i >= int(ranks) || handle == 0 {
			break
		}
		if d.Communicator == nil {
			id := int64(mix(mix(uint64(c.pid), uint64(c.span.StartNS)), handle) &^ (1 << 63))
			d.Communicator = &id
		}
		rank := int32(i)
		m.known[handle] = &communicator{id: d.Communicator, rank: &rank, ranks: &ranks}
	}
}

// tell keeps the answers that the job got about a communicator that may be older than the
// recording. Who else is in it nobody says: its identity stays unknown.
func (m *communicators) tell(c *Call, handle uint64) {
	known := m.known[handle]
	if known == nil {
		known = &communicator{}
		m.known[handle] = known
	}
	if c.args.Has(spec.FieldRank) && known.rank == nil {
		rank := int32(c.args.value[spec.FieldRank])
		known.rank = &rank
	}
	if c.args.Has(spec.FieldRanks) && known.ranks == nil {
		ranks := int32(c.args.value[spec.FieldRanks])
		known.ranks = &ranks
	}
	d := c.detail()
	d.Rank, d.Ranks = known.rank, known.ranks
}

// fail keeps what holds of a call that failed too: the group is over.
func (m *communicators) fail(c *Call) {
	if c.f.Effect == spec.EndsGroup {
		m.apply(c)
	}
}
