package accel

import (
	"fmt"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// TestAnIdOfWhichAWordIsMissingIsNone: it would be the identity of another communicator.
func TestAnIdOfWhichAWordIsMissingIsNone(t *testing.T) {
	f := &spec.Function{Values: []spec.Value{
		spec.Mem(spec.FieldUniqueID, 0, 0), spec.Mem(spec.FieldUniqueID, 0, 8), spec.Reg(spec.FieldRank, 1),
	}}
	for faults, known := range map[uint32]bool{0: true, 1: false, 2: false, 3: false} {
		var a Arguments
		a.Read(f, &Record{Faults: faults, Args: []uint64{11, 22, 3}})
		if a.Has(spec.FieldUniqueID) != known || a.value[spec.FieldRank] != 3 {
			t.Errorf("unread words %b: an identity is known: %t, want %t", faults, !known, known)
		}
	}
}

func TestPartsAreNumberedByKeyAndThenByRank(t *testing.T) {
	for name, c := range map[string]struct {
		members [][3]int32 // rank, color, key
		want    string     // rank and size of each part, in the order of members
	}{
		"by rank":             {[][3]int32{{0, 1, 0}, {1, 1, 0}, {2, 1, 0}}, "[0/3 1/3 2/3]"},
		"by key":              {[][3]int32{{0, 1, 9}, {1, 1, -4}, {2, 1, 3}}, "[2/3 0/3 1/3]"},
		"in another order":    {[][3]int32{{2, 7, 0}, {0, 7, 0}, {1, 8, 0}}, "[1/2 0/2 0/1]"},
		"one without a part":  {[][3]int32{{0, -1, 0}, {1, 5, 0}, {2, 5, 0}}, "[-/- 0/2 1/2]"},
		"one is missing":      {[][3]int32{{0, 1, 0}, {1, 1, 0}}, "[-/- -/-]"},
		"one comes twice":     {[][3]int32{{0, 1, 0}, {1, 1, 0}, {1, 1, 0}}, "[-/- -/- -/-]"},
		"a rank that is none": {[][3]int32{{0, 1, 0}, {1, 1, 0}, {3, 1, 0}}, "[-/- -/- -/-]"},
	} {
		s := newSplits()
		var parts []*communicator
		for _, m := range c.members {
			part := &communicator{}
			parts = append(parts, part)
			if m[1] < 0 {
				part = nil
			}
			s.join(splitKey{1, 1}, 3, splitMember{pid: 1, rank: m[0], color: m[1], key: m[2], part: part})
		}
		var got []string
		for _, p := range parts {
			text := "-/-"
			if p.rank != nil && p.ranks != nil {
				text = fmt.Sprintf("%d/%d", *p.rank, *p.ranks)
			}
			got = append(got, text)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// Splits whose other ranks are on other hosts, or never come, go: those of a process
// that begins too many of them first.
func TestSplitsThatNeverFinishAreForgotten(t *testing.T) {
	s := newSplits()
	part := &communicator{}
	s.join(splitKey{2, 1}, 2, splitMember{pid: 2, part: part})
	for nth := range uint64(2 * MaxSplits) {
		s.join(splitKey{1, nth}, 2, splitMember{pid: 1})
	}
	if len(s.of[1]) != MaxSplitsOfProcess || s.givenUp != 2*MaxSplits-MaxSplitsOfProcess {
		t.Errorf("a process has %d splits, %d were given up; it may have %d", len(s.of[1]), s.givenUp, MaxSplitsOfProcess)
	}
	for pid := uint32(10); pid < 50; pid++ { // more processes than there is room for
		for nth := range uint64(MaxSplitsOfProcess) {
			s.join(splitKey{int64(pid), nth}, 2, splitMember{pid: pid})
		}
	}
	if len(s.open) != MaxSplits {
		t.Errorf("%d splits are kept, want %d", len(s.open), MaxSplits)
	}
	s.join(splitKey{2, 1}, 2, splitMember{pid: 3, rank: 1, part: &communicator{}})
	if part.rank == nil || part.ranks == nil || *part.ranks != 2 {
		t.Error("a neighbour's split was given up for those of others")
	}
}

func TestRanksWithoutEndOfOneSplitAreNotAllKept(t *testing.T) {
	s := newSplits()
	for rank := range int32(3 * MaxSplitMembers) {
		s.join(splitKey{1, 1}, 1<<30, splitMember{pid: 1, rank: rank})
	}
	if n := len(s.open[splitKey{1, 1}].members); n != MaxSplitMembers || s.givenUp != 2*MaxSplitMembers {
		t.Errorf("%d ranks are kept, %d refused; want %d", n, s.givenUp, MaxSplitMembers)
	}
}

// A process that has ended counts where it was a rank, and pays for nothing.
func TestSplitsOfAProcessThatEndedAreForgotten(t *testing.T) {
	s := newSplits()
	part := &communicator{}
	s.join(splitKey{1, 1}, 2, splitMember{pid: 1, rank: 0, part: &communicator{}}) // shared
	s.join(splitKey{1, 2}, 3, splitMember{pid: 1, rank: 0, part: &communicator{}})
	s.join(splitKey{1, 2}, 3, splitMember{pid: 2, rank: 1, part: part})
	s.ended(1)
	if len(s.open) != 1 || len(s.of[1]) != 0 || len(s.of[2]) != 1 || s.members[1] != 0 {
		t.Errorf("after the end of a process: %d splits are open, %v, %v", len(s.open), s.of, s.members)
	}
	s.join(splitKey{1, 2}, 3, splitMember{pid: 3, rank: 2, part: &communicator{}})
	if part.rank == nil || *part.rank != 1 || *part.ranks != 3 {
		t.Error("the ranks that are left have no number")
	}
	s.join(splitKey{1, 3}, 2, splitMember{pid: 2})
	s.ended(2)
	s.ended(3)
	if len(s.open)+len(s.of)+len(s.members) != 0 || s.givenUp != 0 {
		t.Errorf("of processes that have all ended is left: %v, %v, %v", s.open, s.of, s.members)
	}
}

// TestHandlesThatComeLaterAreThoseOfTheirPlace: a place is believed only for an
// unknown handle that is used, and that was seen there.
func TestHandlesThatComeLaterAreThoseOfTheirPlace(t *testing.T) {
	memory := map[uint64]uint64{}
	m := newCommunicators(newSplits(), func(address uint64) (uint64, bool) { value, ok := memory[address]; return value, ok })
	expect := func(place uint64) *communicator {
		made := &communicator{}
		c := &Call{args: &Arguments{}}
		c.args.value[spec.FieldHandleAddress], c.args.known[spec.FieldHandleAddress] = place, true
		m.expect(c, made)
		return made
	}
	known := &communicator{}
	m.known[1] = known

	a, b, c := expect(0x10), expect(0x20), expect(0x30)
	if got := m.byHandle(7); got != nil { // its places cannot be read
		t.Errorf("handle 7 is a communicator before it is anywhere")
	}
	memory[0x10], memory[0x20], memory[0x30] = 0, 1, 7
	m.pending.look()
	memory[0x30] = 8 // the place was used again
	for handle, want := range map[uint64]*communicator{8: nil, 7: c, 1: known, 9: nil, 0: nil} {
		if got := m.byHandle(handle); got != want {
			t.Errorf("handle %d: the wrong communicator", handle)
		}
	}
	memory[0x10] = 11
	if first, again := m.byHandle(11), m.byHandle(11); first != a || again != a {
		t.Error("a handle that came by the time of its use is not that of its place")
	}
	memory[0x20] = 12 // where another one's was seen before
	if m.byHandle(12) != nil || len(m.pending.waiting) != 1 || m.pending.waiting[0].made != b {
		t.Error("a place is believed twice")
	}
	m.pending.waiting = nil

	// One place for two, one after the other.
	first := expect(0x40)
	memory[0x40] = 13
	second := expect(0x40)
	memory[0x40] = 14
	if m.byHandle(14) != second || m.byHandle(13) != first {
		t.Error("two communicators of one place are mixed up")
	}
	if expect(0); len(m.pending.waiting) != 0 {
		t.Errorf("%d still wait", len(m.pending.waiting))
	}
	for i := range uint64(mostPending + 10) {
		expect(0x1000 + i)
	}
	if len(m.pending.waiting) != mostPending {
		t.Errorf("%d wait, %d is the most", len(m.pending.waiting), mostPending)
	}
}
