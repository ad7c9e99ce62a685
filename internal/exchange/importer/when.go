package importer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"
)

// A row that its profiler never filled in begins at 0 or −1, in 1970 or in the far future.
// One such row makes a trace of milliseconds last for decades, so rows that begin at
// impossible times are left out of the dataset, and a warning names them.

const (
	// bucketNS is the width of the buckets that begins are counted in, about a second.
	bucketNS = 1 << 30
	// farNS is a distance from the median begin that no row of a trace has: 30 days.
	farNS = 30 * 24 * 3600 * 1e9
	// A few rows (at most one in fewPart) that lie beyond a gap of gapNS and of gapWidths
	// times the length of all others are impossible, too.
	gapNS     = 600e9
	gapWidths = 1000
	fewPart   = 10
	// Rows that begin at exactly 0 or −1 are impossible beyond a gap of a second and of
	// unsetWidths times the length of all others.
	unsetNS     = 1e9
	unsetWidths = 10
)

// begins counts the rows of a file by the times at which they begin.
type begins struct {
	buckets map[int64]*bucket
	unset   map[int64]int // rows that begin at exactly 0 or −1
	rows    int
}

type bucket struct {
	rows        int
	first, last int64
}

func (b *begins) add(start int64) {
	if b.buckets == nil {
		b.buckets, b.unset = map[int64]*bucket{}, map[int64]int{}
	}
	if start == 0 || start == -1 || start == -1000 { // −1 in nanoseconds and in microseconds
		b.unset[start]++
		return
	}
	b.rows++
	at := b.buckets[start/bucketNS]
	if at == nil {
		b.buckets[start/bucketNS] = &bucket{1, start, start}
		return
	}
	at.rows++
	at.first, at.last = min(at.first, start), max(at.last, start)
}

// possible are the times at which rows of a file can begin.
type possible struct{ first, last int64 }

func (p possible) has(start int64) bool { return start >= p.first && start <= p.last }

// window finds the times around the median begin that rows can have.
func (b *begins) window() possible {
	if b.rows == 0 {
		first, last := int64(math.MaxInt64), int64(math.MinInt64)
		for start := range b.unset {
			first, last = min(first, start), max(last, start)
		}
		return possible{first, last}
	}
	all := make([]*bucket, 0, len(b.buckets))
	for _, at := range b.buckets {
		all = append(all, at)
	}
	slices.SortFunc(all, func(x, y *bucket) int { return cmp.Compare(x.first, y.first) })
	before := make([]int, len(all)+1)
	for i, at := range all {
		before[i+1] = before[i] + at.rows
	}
	middle := sort.Search(len(all), func(i int) bool { return before[i+1] > b.rows/2 })
	from, to := middle, middle
	for grown := true; grown; {
		grown = false
		if to+1 < len(all) && b.near(all, from, to, to+1, b.rows-before[to+1]) {
			to, grown = to+1, true
		}
		if from > 0 && b.near(all, from, to, from-1, before[from]) {
			from, grown = from-1, true
		}
	}
	p := possible{all[from].first, all[to].last}
	reach := max(unsetNS, unsetWidths*(float64(p.last)-float64(p.first)))
	for start := range b.unset {
		if float64(p.first)-float64(start) <= reach && float64(start)-float64(p.last) <= reach {
			p.first, p.last = min(p.first, start), max(p.last, start)
		}
	}
	return p
}

// near reports whether the next bucket belongs to those from … to, with beyond rows in it
// and past it.
func (b *begins) near(all []*bucket, from, to, next, beyond int) bool {
	width := float64(all[to].last) - float64(all[from].first)
	gap := float64(all[next].first) - float64(all[to].last)
	if next < from {
		gap = float64(all[from].first) - float64(all[next].last)
	}
	if gap > farNS {
		return false
	}
	return gap <= max(gapNS, gapWidths*width) || beyond*fewPart > b.rows
}

// impossible are the rows of a file that begin at impossible times.
type impossible struct {
	rows  int64
	names map[string]int64
	at    int64 // when the first of them begins
}

// mostNamed different names of left-out rows are counted.
const mostNamed = 1 << 10

func (i *impossible) add(name string, at int64) {
	if i.rows == 0 {
		i.names, i.at = map[string]int64{}, at
	}
	i.rows++
	if _, known := i.names[name]; known || len(i.names) < mostNamed {
		i.names[name]++
	}
}

// sentence names the rows, the most frequent first.
func (i *impossible) sentence() string {
	names := make([]string, 0, len(i.names))
	for name := range i.names {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if i.names[a] != i.names[b] {
			return int(i.names[b] - i.names[a])
		}
		return strings.Compare(a, b)
	})
	listed := make([]string, 0, 3)
	for _, name := range names[:min(len(names), 3)] {
		listed = append(listed, fmt.Sprintf("%d × %.80q", i.names[name], name))
	}
	more := ""
	if len(names) > 3 {
		more = " and others"
	}
	return fmt.Sprintf("%s of the file at impossible times, such as %s: left out (%s%s)",
		countedRows(i.rows), time.Unix(0, i.at).UTC().Format("2006-01-02T15:04:05Z"), strings.Join(listed, ", "), more)
}

func countedRows(n int64) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}
