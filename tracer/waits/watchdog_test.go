package waits

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What NCCL runs ends when its watchdog says so of the copy that it has, also when the
// work's address is another one's by then; what failed has not ended.
func TestTheWatchdogsCopiesTellWhatHasEnded(t *testing.T) {
	s := New(memories{1: {at: backend(at, 1, 0, 4, "0")}}, &flows{})
	const work = 0x10 // of all
	for i := range int64(3) {
		issue := span(i+1, 1, "nccl::allreduce", 1_000*(i+1), 10)
		issue.Call.Runtime = "nccl"
		s.Queue(1, 1, issue.ID, issue.StartNS+3, "nccl", Call{Group: at, Work: work, Number: i + 1})
		s.Copy(1, uint64(0x100+i), Call{Work: work})
		s.Issue(issue, Call{Group: at, Number: i})
	}
	if open := s.Open(2*OpenAfter, Epochs{}, nil); len(open.Calls) != 0 {
		t.Errorf("open, before it is known that ends are seen: %+v", open.Calls)
	}
	s.Finish(1, 0, 4_000, Call{Work: 0x100})
	open := s.Open(2*OpenAfter, Epochs{}, nil)
	if len(open.Calls) != 2 || *open.Calls[0].Number != 2 || *open.Calls[1].Number != 3 || open.Calls[0].Call.Category != "work" {
		t.Errorf("open %+v", open.Calls)
	}
	failed := span(9, 1, "WorkNCCL::handleException", 5_000, 10)
	failed.Call.Runtime = "nccl"
	s.Fail(failed, Call{Work: 0x101})
	s.Finish(1, 0, 6_000, Call{Work: 0x101})
	open = s.Open(2*OpenAfter, Epochs{}, nil)
	if g := open.Communicators[0]; failed.SequenceNumber != 2 || len(open.Calls) != 1 || *g.CompletedNumber != 1 || *g.CompletedNS != 4_000 ||
		*g.IssuedNumber != 3 {
		t.Errorf("number %d failed, communicator %+v, open %+v", failed.SequenceNumber, g, open.Calls)
	}
	if s.Open(2*OpenAfter, Epochs{All: 1}, nil); len(s.copies) != 0 {
		t.Error("a copy made before the epoch is kept")
	}
	s.Copy(1, 0x200, Call{Work: work})
	s.Ended(1)
	if len(s.copies) != 0 {
		t.Error("a copy of a process that has ended is kept")
	}
}

func TestCopiesAreBounded(t *testing.T) {
	s := New(memories{}, &flows{})
	s.Queue(1, 1, 1, 1, "nccl", Call{Group: at, Work: 1, Number: 1})
	for i := range uint64(mostWorks + 100) {
		s.Copy(1, i+1, Call{Work: 1})
	}
	if len(s.copies) > mostWorks {
		t.Errorf("%d copies", len(s.copies))
	}
	unknown := span(1, 1, "WorkNCCL::setException", 1, 1)
	if s.Fail(unknown, Call{Work: 0x77}); unknown.SequenceNumber >= 0 || unknown.Status != event.StatusOK {
		t.Errorf("a work that was never seen has number %d", unknown.SequenceNumber)
	}
}
