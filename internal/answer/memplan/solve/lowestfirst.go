package solve

import (
	"container/heap"
	"context"
)

// lowestFirst fills memory from below: of all blocks the one that can lie lowest
// comes next, ties by priority. It is the first branch of the search, without its
// bounds, in a time that grows with the number of pairs of blocks that live at
// the same time. It returns nil when ctx ends first.
func lowestFirst(ctx context.Context, blocks []Block, order []int32) []int64 {
	offsets := make([]int64, len(blocks))
	unplaced := newLifeTree(blocks)
	queue := make(lowestQueue, 0, len(order))
	for rank, i := range order {
		if blocks[i].Size > 0 && blocks[i].Lower < blocks[i].Upper {
			queue = append(queue, lowestEntry{0, int32(rank)})
			unplaced.insert(i)
		}
	}
	// A slice in order of rank at offset 0 is a heap already.
	for done := 0; len(queue) > 0; done++ {
		if done&0xff == 0 && ctx.Err() != nil {
			return nil
		}
		i := order[queue[0].rank]
		if queue[0].offset < offsets[i] {
			queue[0].offset = offsets[i]
			heap.Fix(&queue, 0)
			continue
		}
		heap.Pop(&queue)
		unplaced.remove(i)
		top := offsets[i] + blocks[i].Size
		unplaced.during(blocks[i], func(j int32) {
			offsets[j] = max(offsets[j], top)
		})
	}
	return offsets
}

// lowestEntry is an unplaced block, by its rank, with the offset that it could
// have when it was put into the queue.
type lowestEntry struct {
	offset int64
	rank   int32
}

type lowestQueue []lowestEntry

func (q lowestQueue) Len() int { return len(q) }
func (q lowestQueue) Less(i, j int) bool {
	if q[i].offset != q[j].offset {
		return q[i].offset < q[j].offset
	}
	return q[i].rank < q[j].rank
}
func (q lowestQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *lowestQueue) Push(x any)   { *q = append(*q, x.(lowestEntry)) }
func (q *lowestQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
