package waits

import "testing"

// TestOneProcessDoesNotTakeTheRoomOfOthers: a job that makes works and groups without end
// has half of the room, and what is kept of jobs that have ended gives way.
func TestOneProcessDoesNotTakeTheRoomOfOthers(t *testing.T) {
	s := New(memories{}, &flows{})
	for i := range uint64(2 * mostWorks) {
		s.Queue(7, 7, int64(i+1), int64(i), "gloo", Call{Group: 0x1000 + 16*i, Work: 0x9000_0000 + 16*i})
	}
	if got := len(s.works); got != mostWorks/2 {
		t.Errorf("%d works of one process, want %d", got, mostWorks/2)
	}
	if got := len(s.groups); got != mostGroups/2 {
		t.Errorf("%d groups of one process, want %d", got, mostGroups/2)
	}
	if s.Dropped == 0 {
		t.Error("nothing was counted as dropped")
	}
	s.Queue(8, 8, 1<<40, 1, "gloo", Call{Group: 0x1000, Work: 0x2000})
	if s.works[workKey{8, 0x2000}] == nil || s.groups[groupKey{pid: 8, address: 0x1000}] == nil {
		t.Error("another process has no room")
	}
	s.Ended(7)
	if got := len(s.works); got != 1 || s.of[7] != nil {
		t.Errorf("%d works once the process has ended, want the other's", got)
	}
	for pid := int32(100); pid < 100+2*mostGroups; pid++ {
		s.group(pid, 0x1000, "gloo")
		s.Ended(pid)
	}
	if got := len(s.groups); got > mostGroups {
		t.Errorf("%d groups, %d at the most", got, mostGroups)
	}
	if s.group(9, 0x1000, "gloo"); s.groups[groupKey{pid: 9, address: 0x1000}] == nil {
		t.Error("groups of jobs that have ended leave no room for a job that runs")
	}
}
