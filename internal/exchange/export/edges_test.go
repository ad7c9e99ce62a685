package export

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// few makes pairs be sorted in pieces of so many.
func few(t *testing.T, n int) {
	t.Helper()
	before := mostPairs
	mostPairs = n
	t.Cleanup(func() { mostPairs = before })
}

// TestPairsAreFoundWhereverOneLooks: also far from where the last one was, and in a file.
func TestPairsAreFoundWhereverOneLooks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, blockPairs, 5*blockPairs + 7, 80 * blockPairs} {
		for _, most := range []int{1 << 19, 3*blockPairs + 5} {
			few(t, most)
			x, want := &index{}, map[int64]int64{}
			key := int64(0)
			for i := range n {
				key += 1 + r.Int64N(4)
				want[key] = int64(i)
				if err := x.add(pair{key, int64(i)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := x.done(); err != nil {
				t.Fatal(err)
			}
			if inFile := x.file != nil; inFile != (n >= most) {
				t.Fatalf("%d pairs, %d in memory: in a file %t", n, most, inFile)
			}
			for k := range int64(100_000) {
				id := r.Int64N(key + 10)
				if k%5 > 0 { // mostly in order
					id = k * (key + 10) / 100_000
				}
				value, is := x.find(id)
				if w, ok := want[id]; is != ok || value != w {
					t.Fatalf("%d of %d pairs, %d in memory: found %d, %t, want %d, %t", id, n, most, value, is, w, ok)
				}
			}
			if x.err != nil {
				t.Fatal(x.err)
			}
			x.close()
		}
	}
}

func TestPairsAreSortedInPiecesAsTheyAreInOne(t *testing.T) {
	for _, n := range []int{0, 1, 99, 100, 101, 1234} {
		few(t, 100)
		r := rand.New(rand.NewPCG(5, uint64(n)))
		s, want := &sorter{}, []pair(nil)
		for i := range n {
			p := pair{r.Int64N(50), int64(i)}
			want = append(want, p)
			if err := s.add(p); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortStableFunc(want, func(a, b pair) int { return int(a.key - b.key) })
		var got []pair
		if err := s.each(func(p pair) error { got = append(got, p); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d pairs: %v, want %v", n, got, want)
		}
	}
}

// TestExportsAreTheSameWhereEdgesLieInAFile, and of several edges to or from one row one is kept.
func TestExportsAreTheSameWhereEdgesLieInAFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := scripted.Synthetic(dir, 20_000); err != nil {
		t.Fatal(err)
	}
	db, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, format := range []string{"perfetto", "kineto"} {
		var written [2]bytes.Buffer
		for i, most := range []int{1 << 19, 1000} {
			few(t, most)
			if _, err := Write(t.Context(), db, &written[i], format, Options{}); err != nil {
				t.Fatal(err)
			}
		}
		if written[0].Len() == 0 || !bytes.Equal(written[0].Bytes(), written[1].Bytes()) {
			t.Errorf("%s: %d bytes, and %d where edges lie in a file", format, written[0].Len(), written[1].Len())
		}
	}
}
