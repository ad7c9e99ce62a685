package output

import (
	"math/bits"
	"slices"

	"github.com/ebpfprof/ebpfprof/output/columnfile"
)

// scratch is the memory that writing a row group needs, kept for the next one.
type scratch struct {
	values columnfile.Values
	order  []int32
	rare   rareRows
	keys   []uint64
	spare  []uint64
}

// rareRows are the rows of a row group that have rare columns.
type rareRows struct{ rows, positions []int32 }

// indexBits is what an index into a row group takes.
const indexBits = 17

var _ = [1]int{}[(RowGroupRows-1)>>indexBits] // an index must fit

// rowOrder returns the order of rows by time, then id. Rows arrive nearly
// sorted, parents after their children, threads interleaved in batches; times
// within a row group span little, so that a radix sort of time and index in
// one word takes three or four passes.
func rowOrder[T any](s *scratch, rows []T, time, id func(*T) int64) []int32 {
	s.order = s.order[:0]
	for i := range rows {
		s.order = append(s.order, int32(i))
	}
	if time == nil || len(rows) < 2 {
		return s.order
	}
	low, high := time(&rows[0]), time(&rows[0])
	sorted := true
	for i := 1; i < len(rows); i++ {
		t := time(&rows[i])
		sorted = sorted && t > high
		low, high = min(low, t), max(high, t)
	}
	if sorted {
		return s.order
	}
	compare := func(a, b int32) int {
		if ta, tb := time(&rows[a]), time(&rows[b]); ta != tb {
			if ta < tb {
				return -1
			}
			return 1
		}
		if id != nil && id(&rows[a]) != id(&rows[b]) {
			if id(&rows[a]) < id(&rows[b]) {
				return -1
			}
			return 1
		}
		return int(a - b)
	}
	timeBits := bits.Len64(uint64(high) - uint64(low))
	if timeBits > 64-indexBits || len(rows) > 1<<indexBits {
		slices.SortFunc(s.order, compare)
		return s.order
	}
	s.radixSort(len(rows), timeBits, func(i int) uint64 { return uint64(time(&rows[i]) - low) })
	sortTies(s.order, func(i int32) int64 { return time(&rows[i]) }, compare)
	return s.order
}

// radixSort sorts the row numbers by key, stably, into s.order.
func (s *scratch) radixSort(n, keyBits int, key func(int) uint64) {
	const digit = 11
	s.keys = slices.Grow(s.keys[:0], n)[:n]
	s.spare = slices.Grow(s.spare[:0], n)[:n]
	for i := range n {
		s.keys[i] = key(i)<<indexBits | uint64(i)
	}
	for shift := indexBits; shift < indexBits+keyBits; shift += digit {
		var starts [1 << digit]int32
		for _, k := range s.keys {
			starts[k>>shift&(1<<digit-1)]++
		}
		var sum int32
		for i, count := range starts {
			starts[i] = sum
			sum += count
		}
		for _, k := range s.keys {
			d := k >> shift & (1<<digit - 1)
			s.spare[starts[d]] = k
			starts[d]++
		}
		s.keys, s.spare = s.spare, s.keys
	}
	for i, k := range s.keys {
		s.order[i] = int32(k & (1<<indexBits - 1))
	}
}

// sortTies puts rows of equal time in the order of compare.
func sortTies(order []int32, time func(int32) int64, compare func(a, b int32) int) {
	start := 0
	last := time(order[0])
	for i := 1; i <= len(order); i++ {
		if i < len(order) {
			if t := time(order[i]); t == last {
				continue
			} else {
				last = t
			}
		}
		if i-start > 1 {
			slices.SortFunc(order[start:i], compare)
		}
		start = i
	}
}
