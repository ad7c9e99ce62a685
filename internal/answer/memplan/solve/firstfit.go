package solve

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
)

// Order is the order in which FirstFit places blocks.
type Order int

// Orders of FirstFit. Ties go to the longer lifetime, the larger size, the
// earlier start and the position.
const (
	BySize Order = iota
	ByArea
	ByLifetime
)

var orderNames = [...]string{"first_fit_size", "first_fit_area", "first_fit_lifetime"}

func (o Order) String() string { return orderNames[o] }

// FirstFit places blocks in an order, the largest first, each at the lowest
// offset where it fits among those that are placed. It returns nil when ctx
// ends first.
func FirstFit(ctx context.Context, blocks []Block, fixed Fixed, order Order) []int64 {
	return fitInOrder(ctx, blocks, fixed, ordered(blocks, order))
}

func ordered(blocks []Block, order Order) []int32 {
	all := make([]int32, len(blocks))
	for i := range all {
		all[i] = int32(i)
	}
	rest := preference(blocks)
	slices.SortFunc(all, func(a, b int32) int {
		x, y := &blocks[a], &blocks[b]
		var c int
		switch order {
		case BySize:
			c = cmp.Compare(y.Size, x.Size)
		case ByArea:
			c = compareAreas(*y, *x)
		}
		return cmp.Or(c, rest(a, b))
	})
	return all
}

// compareAreas compares size × lifetime without overflow.
func compareAreas(x, y Block) int {
	xh, xl := bits.Mul64(uint64(x.Size), uint64(x.Lifetime()))
	yh, yl := bits.Mul64(uint64(y.Size), uint64(y.Lifetime()))
	return cmp.Or(cmp.Compare(xh, yh), cmp.Compare(xl, yl))
}

func fitInOrder(ctx context.Context, blocks []Block, fixed Fixed, order []int32) []int64 {
	offsets := make([]int64, len(blocks))
	placed := newLifeTree(blocks)
	for i, at := range fixed {
		offsets[i] = at
		if blocks[i].Size > 0 && blocks[i].Lower < blocks[i].Upper {
			placed.insert(int32(i))
		}
	}
	var busy []interval
	for done, i := range order {
		if done&0xff == 0 && ctx.Err() != nil {
			return nil
		}
		b := blocks[i]
		if _, is := fixed[int(i)]; is || b.Size == 0 || b.Lower >= b.Upper {
			continue
		}
		busy = busy[:0]
		placed.during(b, func(i int32) {
			busy = append(busy, interval{offsets[i], offsets[i] + blocks[i].Size})
		})
		slices.SortFunc(busy, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
		offsets[i] = lowestGap(busy, b.Size)
		placed.insert(i)
	}
	return offsets
}

// interval is a range of addresses in use.
type interval struct{ from, to int64 }

// lowestGap is the lowest offset at which size bytes are free.
func lowestGap(busy []interval, size int64) int64 {
	var at int64
	for _, in := range busy {
		if in.from-at >= size {
			break
		}
		at = max(at, in.to)
	}
	return at
}
