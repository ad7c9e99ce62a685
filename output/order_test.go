package output

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func TestRowOrderIsByTimeThenID(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for name, time := range map[string]func(i int) int64{
		"sorted":        func(i int) int64 { return int64(i) },
		"all equal":     func(int) int64 { return 5 },
		"descending":    func(i int) int64 { return int64(-i) },
		"nearly sorted": func(i int) int64 { return int64(i*10 + random.IntN(300)) },
		"many ties":     func(i int) int64 { return int64(random.IntN(20)) },
		"any":           func(i int) int64 { return int64(random.Uint64()) },
		"extremes":      func(i int) int64 { return []int64{math.MinInt64, math.MaxInt64, 0}[i%3] },
	} {
		for _, n := range []int{0, 1, 2, 3, 1000} {
			rows := make([]event.Span, n)
			for i := range rows {
				rows[i] = event.Span{StartNS: time(i), ID: int64(random.IntN(n))}
			}
			order := rowOrder(new(scratch), rows, spanTable.time, spanTable.id)
			if !slices.IsSortedFunc(order, func(a, b int32) int { return compareSpans(&rows[a], &rows[b]) }) {
				t.Errorf("%s, %d rows: not sorted", name, n)
			}
			slices.Sort(order)
			for i, row := range order {
				if int(row) != i {
					t.Fatalf("%s, %d rows: not a permutation", name, n)
				}
			}
		}
	}
}

func compareSpans(a, b *event.Span) int {
	switch {
	case a.StartNS < b.StartNS:
		return -1
	case a.StartNS > b.StartNS:
		return 1
	default:
		return int(a.ID - b.ID)
	}
}
