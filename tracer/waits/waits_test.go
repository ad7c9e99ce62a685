package waits

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// memories are made-up processes.
type memories map[uint32]map[uint64][]byte

func (m memories) Read(pid uint32, address uint64, b []byte) error {
	for at, bytes := range m[pid] {
		if address >= at && address+uint64(len(b)) <= at+uint64(len(bytes)) {
			copy(b, bytes[address-at:])
			return nil
		}
	}
	return errors.New("nothing there")
}

type flows []event.Flow

func (f *flows) Flow(one event.Flow) { *f = append(*f, one) }

// backend is a group as 2.15 lays it out, or with one reference count more as 2.1 did.
func backend(address uint64, counts int, rank, ranks int32, name string) []byte {
	b := make([]byte, objectBytes+8)
	binary.LittleEndian.PutUint64(b, 0x7f0000001000)
	for i := range counts {
		binary.LittleEndian.PutUint64(b[8+8*i:], 1)
	}
	at := 8 + 8*counts
	binary.LittleEndian.PutUint32(b[at:], uint32(rank))
	binary.LittleEndian.PutUint32(b[at+4:], uint32(ranks))
	for i, text := range []string{name, "default_pg"} {
		s := at + 16 + 32*i
		binary.LittleEndian.PutUint64(b[s:], address+uint64(s)+16)
		binary.LittleEndian.PutUint64(b[s+8:], uint64(len(text)))
		copy(b[s+16:s+31], text)
	}
	return b
}

const at = 0x5000_0000

func span(id int64, pid int32, name string, start, duration int64) *event.Span {
	return &event.Span{
		ID: id, PID: pid, TID: pid, StartNS: start, DurationNS: duration, SequenceNumber: -1, Status: event.StatusOK, End: event.EndExitSite,
		Call: &event.Call{Layer: "collective", Category: "issue", Runtime: "gloo", Name: name},
	}
}

func TestGroupSaysRankSizeAndNameInEitherLayout(t *testing.T) {
	for counts := 1; counts <= 2; counts++ {
		m := memories{7: {at: backend(at, counts, 2, 4, "12")}}
		o, ok := readObject(m, 7, at)
		if want := (object{2, 4, "12", "default_pg"}); !ok || o != want {
			t.Errorf("%d reference counts: %+v, %v; want %+v", counts, o, ok, want)
		}
	}
	if o, ok := readObject(memories{7: {at: make([]byte, 256)}}, 7, at); ok {
		t.Errorf("a group out of nothing: %+v", o)
	}
	if _, ok := readObject(memories{}, 7, at); ok {
		t.Error("a group where nothing is mapped")
	}
	// Another layout has a rank and a size there, and no names: what is no string is none.
	b := backend(at, 1, 0, 2, "0")
	binary.LittleEndian.PutUint64(b[40:], 1<<40)
	if o, ok := readObject(memories{7: {at: b}}, 7, at); !ok || o.name != "" || o.ranks != 2 {
		t.Errorf("%+v, %v", o, ok)
	}
	binary.LittleEndian.PutUint64(b[40:], 3)
	copy(b[48:], "\x1b[m")
	if o, _ := readObject(memories{7: {at: b}}, 7, at); o.name != "" {
		t.Errorf("a terminal's escape is no name: %q", o.name)
	}
}

func TestRanksOfOneGroupShareItsIdentityAndOthersDoNot(t *testing.T) {
	m := memories{1: {at: backend(at, 1, 0, 2, "3")}, 2: {at: backend(at, 1, 1, 2, "3")}, 3: {at: backend(at, 1, 0, 2, "4")},
		4: {at: backend(at, 1, 0, 2, "3")}}
	s := New(m, &flows{})
	s.Process(4, Job{ID: "another"})
	id := func(pid int32) int64 { return *s.group(pid, at, "gloo").ID }
	if id(1) != id(2) || id(1) == id(3) || id(1) == id(4) {
		t.Errorf("identities %d %d %d %d", id(1), id(2), id(3), id(4))
	}
	// Without a name only the group of all ranks has one.
	world, part := int32(4), int32(2)
	m[5], m[6] = map[uint64][]byte{at: make([]byte, 0)}, map[uint64][]byte{at: make([]byte, 0)}
	for pid, size := range map[uint32]int32{5: 4, 6: part} {
		b := backend(at, 2, 0, size, "")
		clear(b[40:])
		m[pid][at] = b
		s.Process(int32(pid), Job{WorldSize: &world})
	}
	if s.group(5, at, "gloo").ID == nil || s.group(6, at, "gloo").ID != nil {
		t.Error("a nameless group of some ranks has an identity, or that of all has none")
	}
}

// collective makes the records of one collective of one rank.
func collective(s *State, pid int32, base, work int64, number, start, end int64) (issue, run, wait *event.Span) {
	issue = span(base+1, pid, "gloo::allreduce", start, 10)
	run, wait = span(base+2, pid, "gloo::AsyncWork::execute", start+5, end-start-5), span(base+3, pid, "Work::wait", start+10, end-start-8)
	s.Queue(pid, pid, issue.ID, start+3, "gloo", Call{Group: at, Work: uint64(work), Number: number + 1})
	s.Issue(issue, Call{Group: at, Number: number})
	return issue, run, wait
}

func TestCollectivesOfRanksMeet(t *testing.T) {
	m := memories{1: {at: backend(at, 1, 0, 2, "0")}, 2: {at: backend(at, 1, 1, 2, "0")}}
	drawn := &flows{}
	s := New(m, drawn)
	_, run, wait := collective(s, 1, 100, 0x10, 5, 1_000, 2_000)
	open := s.Open(1_000+OpenAfter, Epochs{}, nil)
	if len(open.Calls) != 1 || *open.Calls[0].Number != 5 || open.Calls[0].SpanID != 101 || open.Calls[0].Call.Category != "work" {
		t.Fatalf("open: %+v", open.Calls)
	}
	if g := open.Communicators[open.Calls[0].Communicator]; *g.IssuedNumber != 5 || g.CompletedNumber != nil || *g.Rank != 0 {
		t.Errorf("communicator %+v", g)
	}
	issue2, run2, wait2 := collective(s, 2, 200, 0x10, 5, 1_900, 2_000)
	for _, one := range []struct {
		run, wait *event.Span
	}{{run, wait}, {run2, wait2}} {
		s.Finish(one.run.PID, one.run.ID, 2_000, Call{Work: 0x10})
		s.Wait(one.wait, Call{Work: 0x10}) // before the record of what ran it
		s.Run(one.run, Call{Work: 0x10})
		if one.wait.SequenceNumber != 5 || one.run.SequenceNumber != 5 || *one.run.Detail.Rank != one.run.PID-1 {
			t.Errorf("wait %d, run %d of %+v", one.wait.SequenceNumber, one.run.SequenceNumber, one.run.Detail)
		}
	}
	want := []event.Flow{
		{TSNS: 2_000, FromSpanID: run.ID, ToSpanID: wait.ID, Kind: FlowWait, Method: "work"},
		{TSNS: 2_000, FromSpanID: run2.ID, ToSpanID: wait2.ID, Kind: FlowWait, Method: "work"},
		{TSNS: 1_900, FromSpanID: issue2.ID, ToSpanID: run.ID, Kind: FlowCollective, Method: "sequence_number"},
	}
	if !slices.Equal(*drawn, want) {
		t.Errorf("flows %+v\nwant %+v", *drawn, want)
	}
	open = s.Open(1_000+2*OpenAfter, Epochs{}, nil)
	if len(open.Calls) != 0 || *open.Communicators[1].CompletedNumber != 5 {
		t.Errorf("open at the end: %+v", open)
	}
}

// Where the end of the thread's call is that of its next one, another work has the
// address by then.
func TestAWorkThatEndedIsNotTheNextOneAtItsAddress(t *testing.T) {
	s := New(memories{1: {at: backend(at, 1, 0, 1, "0")}}, &flows{})
	_, run, _ := collective(s, 1, 100, 0x10, 7, 1_000, 1_100)
	s.Finish(1, run.ID, 1_090, Call{Work: 0x10})
	collective(s, 1, 200, 0x10, 8, 9_000, 9_100)
	run.End, run.DurationNS = event.EndNextEntry, 8_000
	s.Run(run, Call{Work: 0x10})
	if run.SequenceNumber != 7 || run.End != event.EndExitSite || run.DurationNS != 1_090-run.StartNS {
		t.Errorf("%+v", run)
	}
}

func TestSendsHaveNoNumberAndEndWithTheirWait(t *testing.T) {
	s := New(memories{1: {at: backend(at, 1, 0, 2, "0")}}, &flows{})
	issue, wait := span(1, 1, "gloo::send", 1_000, 10), span(2, 1, "SendWork::wait", 1_010, 90)
	s.Queue(1, 1, 1, 1_005, "gloo", Call{Work: 0x20, Number: -1})
	s.Issue(issue, Call{Group: at, Number: -1})
	if open := s.Open(2*OpenAfter, Epochs{}, nil); len(open.Calls) != 1 || open.Calls[0].Number != nil {
		t.Errorf("open %+v", open.Calls)
	}
	s.Wait(wait, Call{Work: 0x20})
	if open := s.Open(2*OpenAfter, Epochs{}, nil); len(open.Calls) != 0 || issue.SequenceNumber >= 0 || wait.SequenceNumber >= 0 {
		t.Errorf("open %+v, numbers %d, %d", open.Calls, issue.SequenceNumber, wait.SequenceNumber)
	}
}

// What a slice left open has no end that will be seen.
func TestWhatBeganBeforeTheEpochIsNotOpen(t *testing.T) {
	s := New(memories{1: {at: backend(at, 1, 0, 2, "0")}}, &flows{})
	collective(s, 1, 100, 0x10, 7, 1_000, 1_100)
	if open := s.Open(2*OpenAfter, Epochs{All: 1}, nil); len(open.Calls) != 0 {
		t.Errorf("%+v", open.Calls)
	}
	// Of slices alone: what was recorded all the time goes on.
	for i, sliced := range []bool{false, true} {
		issue := span(int64(10+i), 1, "gloo::allreduce", 1_000, 10)
		s.Queue(1, 1, issue.ID, 1_003, "gloo", Call{Group: at, Work: uint64(0x20 + i), Number: int64(9 + i), Epoch: 2, Sliced: sliced})
		s.Issue(issue, Call{Group: at, Number: int64(8 + i)})
	}
	if open := s.Open(2*OpenAfter, Epochs{All: 1, Sliced: 2}, nil); len(open.Calls) != 2 {
		t.Errorf("in their slice: %+v", open.Calls)
	}
	if open := s.Open(2*OpenAfter, Epochs{All: 1, Sliced: 3}, nil); len(open.Calls) != 1 || open.Calls[0].SpanID != 10 {
		t.Errorf("once the slice is over: %+v", open.Calls)
	}
}

func TestAnAddressThatCountsFromTheBeginningAgainIsAnotherGroup(t *testing.T) {
	m := memories{1: {at: backend(at, 1, 3, 4, "0")}}
	s := New(m, &flows{})
	collective(s, 1, 100, 0x10, 70, 1_000, 1_100)
	m[1][at] = backend(at, 1, 1, 2, "5")
	issue, _, _ := collective(s, 1, 200, 0x20, 0, 2_000, 2_100)
	if *issue.Detail.Rank != 1 || *issue.Detail.Ranks != 2 {
		t.Errorf("rank %d of %d, want 1 of 2", *issue.Detail.Rank, *issue.Detail.Ranks)
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	s := New(memories{}, &flows{})
	for i := range int64(mostWorks + 100) {
		s.Queue(1, 1, i+1, i, "gloo", Call{Group: at + uint64(i), Work: uint64(i + 1), Number: i})
	}
	if len(s.works) > mostWorks || len(s.groups) > mostGroups || len(s.queued) > mostWorks || s.Dropped == 0 {
		t.Errorf("%d works, %d groups, %d queued, %d dropped", len(s.works), len(s.groups), len(s.queued), s.Dropped)
	}
	s.Ended(1)
	if len(s.works) != 0 {
		t.Errorf("%d works of a process that has ended", len(s.works))
	}
}
