package unwind

import (
	"cmp"
	"slices"
)

// paddingBytes: between two functions there is alignment, which is never
// executed. A gap shorter than this gets no row of its own, and the rule before
// it goes on; it saves a row of every other function.
const paddingBytes = 16

// extent is the run of rows of one description.
type extent struct {
	start, end  uint64
	first, last int // rows[first:last]
}

// join puts the descriptions' rows in the order of their addresses: a
// description ends where the next begins, what none covers has the rule None,
// but for what fill adds there, and a row whose rule is that of the row before is
// left out. fill may be nil.
func join(rows []row, extents []extent, fill func(start, end uint64, add func(row))) []row {
	if !slices.IsSortedFunc(extents, byStart) {
		slices.SortStableFunc(extents, byStart)
	}
	joined := make([]row, 0, len(rows))
	add := func(r row) {
		if n := len(joined); n == 0 || joined[n-1].rule != r.rule {
			joined = append(joined, r)
		}
	}
	if fill != nil {
		fill(0, extents[0].start, add)
	}
	for i, x := range extents {
		limit := ^uint64(0)
		if i+1 < len(extents) {
			limit = extents[i+1].start
		}
		end := min(x.end, limit)
		for _, r := range rows[x.first:x.last] {
			if r.address < end {
				add(r)
			}
		}
		if limit-end >= paddingBytes {
			add(row{address: end})
			if fill != nil {
				fill(end, limit, add)
			}
		}
	}
	return joined
}

func byStart(a, b extent) int { return cmp.Compare(a.start, b.start) }
