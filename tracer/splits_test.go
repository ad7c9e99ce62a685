package tracer

import (
	"fmt"
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// TestAnIdOfWhichAWordIsMissingIsNone: it would be the identity of another communicator.
func TestAnIdOfWhichAWordIsMissingIsNone(t *testing.T) {
	f := &catalog.Function{Values: []catalog.Value{
		catalog.Mem(catalog.FieldUniqueID, 0, 0), catalog.Mem(catalog.FieldUniqueID, 0, 8), catalog.Reg(catalog.FieldRank, 1),
	}}
	for faults, known := range map[uint32]bool{0: true, 1: false, 2: false, 3: false} {
		var a arguments
		a.read(f, &callRecord{CallCallRecord: &bpf.CallCallRecord{Faults: faults}, args: []uint64{11, 22, 3}})
		if a.has(catalog.FieldUniqueID) != known || a.value[catalog.FieldRank] != 3 {
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
			s.join(splitKey{1, 1}, 3, splitMember{rank: m[0], color: m[1], key: m[2], part: part})
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

func TestSplitsThatNeverFinishAreForgotten(t *testing.T) {
	s := newSplits()
	for nth := range uint64(10 * mostSplits) {
		s.join(splitKey{1, nth}, 2, splitMember{})
	}
	if len(s.open) != mostSplits || len(s.order) != mostSplits {
		t.Errorf("%d splits are kept, in an order of %d; want %d", len(s.open), len(s.order), mostSplits)
	}
}
