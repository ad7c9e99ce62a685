package unwind

import (
	"cmp"
	"slices"
)

// Compilers begin and end functions alike: they push the same registers, one
// after the other, and pop them again. So the rows of a function are few
// sequences of changes, each of which thousands of functions have, and an image
// has one row for a whole sequence: two to three for a function in place of
// seven.

// cell is one row of a sequence.
type cell struct {
	offset uint16 // from the sequence's start, >> pcShift; unusedCell behind the last
	rule   uint16
}

// Sizes of a sequence, equal to those of bpf/unwind_maps.h.
const (
	sequenceCells = 8
	sequenceBytes = sequenceCells * 4
	leafSequences = LeafBytes / sequenceBytes
	maxSequences  = oneRule
	unusedCell    = 0xffff
	// oneRule marks a row that has no sequence but a rule.
	oneRule = 1 << 15
	// closeBytes is how far apart the rows of a sequence are at the most. With it
	// a sequence never reaches over more than rowReach.
	closeBytes = 24
	// rowReach is how far before its page a row may begin, which reaches into it.
	rowReach = 256
)

var _ [rowReach - closeBytes*sequenceCells]struct{}

type sequence [sequenceCells]cell

func (s *sequence) length() int {
	n := 1
	for n < sequenceCells && s[n].offset != unusedCell {
		n++
	}
	return n
}

// run is a row of the image: a sequence, or a rule alone.
type run struct {
	address uint64
	last    uint64 // address of its last change
	code    uint16 // number of a sequence, or a rule and oneRule
	rule    uint16 // of the last change
}

// cut makes runs of rows, and the sequences that are worth having: shorter than
// the rows that they stand for. The most frequent come first, and lie together.
func cut(rows []row, shift uint) ([]run, []sequence) {
	spans, sequences, counts := spansOf(rows, shift)
	kept := make([]int, 0, len(sequences))
	gain := func(i int) int { return int(counts[i]) * (sequences[i].length() - 1) }
	for i := range sequences {
		if gain(i)*4 > sequenceBytes {
			kept = append(kept, i)
		}
	}
	if len(kept) > maxSequences {
		slices.SortStableFunc(kept, func(a, b int) int { return cmp.Compare(gain(b), gain(a)) })
		kept = kept[:maxSequences]
	}
	slices.SortStableFunc(kept, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	numbers := make([]int32, len(sequences))
	table := make([]sequence, len(kept))
	for number, i := range kept {
		numbers[i] = int32(number) + 1
		table[number] = sequences[i]
	}
	runs := make([]run, 0, len(spans))
	at := 0
	for _, s := range spans {
		of := rows[at : at+int(s.rows)]
		at += len(of)
		if s.sequence >= 0 && numbers[s.sequence] > 0 {
			end := of[len(of)-1]
			runs = append(runs, run{of[0].address, end.address, uint16(numbers[s.sequence] - 1), end.rule})
			continue
		}
		for _, r := range of {
			runs = append(runs, run{r.address, r.address, r.rule | oneRule, r.rule})
		}
	}
	return runs, table
}

// span is a stretch of rows that could be a sequence, -1 for a single one.
type span struct {
	rows     int32
	sequence int32
}

// spansOf takes rows together that follow closely on each other.
func spansOf(rows []row, shift uint) (spans []span, sequences []sequence, counts []uint32) {
	numbers := map[sequence]int32{}
	spans = make([]span, 0, len(rows)/2)
	for i := 0; i < len(rows); {
		s := sequence{{0, rows[i].rule}}
		n := 1
		for ; n < sequenceCells && i+n < len(rows) && rows[i+n].address-rows[i+n-1].address <= closeBytes; n++ {
			s[n] = cell{uint16((rows[i+n].address - rows[i].address) >> shift), rows[i+n].rule}
		}
		for unused := n; unused < sequenceCells; unused++ {
			s[unused].offset = unusedCell
		}
		i += n
		if n == 1 {
			spans = append(spans, span{1, -1})
			continue
		}
		number, ok := numbers[s]
		if !ok {
			number = int32(len(sequences))
			numbers[s] = number
			sequences, counts = append(sequences, s), append(counts, 0)
		}
		counts[number]++
		spans = append(spans, span{int32(n), number})
	}
	return spans, sequences, counts
}

// put writes a sequence into the image.
func (s *sequence) put(to []byte) {
	for i, c := range s {
		le.PutUint16(to[i*4:], c.offset)
		le.PutUint16(to[i*4+2:], c.rule)
	}
}
