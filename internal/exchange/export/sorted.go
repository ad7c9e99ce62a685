package export

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// pair is a row of an index: what is looked up, and what stands there.
type pair struct{ key, value int64 }

const (
	pairBytes = 16
	// blockPairs are read at once, and blocksKept of them held: a rank, or a thread, looks
	// things up in about their own order.
	blockPairs = 1024
	blocksKept = 64
)

// mostPairs are sorted in memory; more lie in sorted runs in a file.
var mostPairs = 1 << 19

// sorter puts pairs in the order of their keys, those of one key as they came, in memory that does
// not depend on how many there are. Its file has no name, and is gone with the process.
type sorter struct {
	here []pair
	runs []int64 // where each begins in the file
	file *os.File
	size int64
}

func (s *sorter) add(p pair) error {
	if s.here = append(s.here, p); len(s.here) < mostPairs {
		return nil
	}
	return s.run()
}

// run writes what is in memory.
func (s *sorter) run() error {
	if s.file == nil {
		var err error
		if s.file, err = unnamed(); err != nil {
			return err
		}
	}
	slices.SortStableFunc(s.here, func(a, b pair) int { return cmp.Compare(a.key, b.key) })
	s.runs = append(s.runs, s.size)
	if err := s.write(s.here); err != nil {
		return err
	}
	s.here = s.here[:0]
	return nil
}

func (s *sorter) write(pairs []pair) error {
	out := bufio.NewWriterSize(s.file, blockPairs*pairBytes)
	var b [pairBytes]byte
	for _, p := range pairs {
		put(b[:], p)
		if _, err := out.Write(b[:]); err != nil {
			return fmt.Errorf("sorting edges: %w", err)
		}
	}
	s.size += int64(len(pairs)) * pairBytes
	if err := out.Flush(); err != nil {
		return fmt.Errorf("sorting edges: %w", err)
	}
	return nil
}

// unnamed is a file that nobody else can open.
func unnamed() (*os.File, error) {
	file, err := os.CreateTemp("", "ebpfprof-edges-")
	if err != nil {
		return nil, fmt.Errorf("a place to sort edges in: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("a place to sort edges in: %w", err), file.Close())
	}
	return file, nil
}

func put(b []byte, p pair) {
	binary.LittleEndian.PutUint64(b, uint64(p.key))
	binary.LittleEndian.PutUint64(b[8:], uint64(p.value))
}

func get(b []byte) pair {
	return pair{int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))}
}

// each calls f for all pairs in order, and lets go of them.
func (s *sorter) each(f func(pair) error) error {
	defer s.close()
	if s.file == nil {
		slices.SortStableFunc(s.here, func(a, b pair) int { return cmp.Compare(a.key, b.key) })
		for _, p := range s.here {
			if err := f(p); err != nil {
				return err
			}
		}
		return nil
	}
	if len(s.here) > 0 {
		if err := s.run(); err != nil {
			return err
		}
	}
	s.here = nil
	var heads []*head
	for i, from := range s.runs {
		to := s.size
		if i+1 < len(s.runs) {
			to = s.runs[i+1]
		}
		h := &head{in: bufio.NewReaderSize(io.NewSectionReader(s.file, from, to-from), blockPairs*pairBytes)}
		if err := h.next(); err != nil {
			return err
		}
		heads = append(heads, h)
	}
	for {
		var least *head // the first of those with the least key: they came earlier
		for _, h := range heads {
			if !h.over && (least == nil || h.pair.key < least.pair.key) {
				least = h
			}
		}
		if least == nil {
			return nil
		}
		if err := f(least.pair); err != nil {
			return err
		}
		if err := least.next(); err != nil {
			return err
		}
	}
}

// head is the first pair of a run that was not taken yet.
type head struct {
	in   *bufio.Reader
	pair pair
	over bool
}

func (h *head) next() error {
	var b [pairBytes]byte
	_, err := io.ReadFull(h.in, b[:])
	switch {
	case errors.Is(err, io.EOF):
		h.over = true
		return nil
	case err != nil:
		return fmt.Errorf("sorting edges: %w", err)
	}
	h.pair = get(b[:])
	return nil
}

func (s *sorter) close() {
	if s.file != nil {
		s.file.Close()
	}
	*s = sorter{}
}

// index finds pairs by their keys, of which it has one each. Beyond mostPairs they lie in a file, of
// which a few blocks are held.
type index struct {
	n      int
	firsts []int64 // keys of each block's first
	here   []pair  // the block being filled, or all where they have room
	file   *sorter // nil: all are here
	held   map[int][]pair
	order  []int // of what is held, the oldest first
	block  []pair
	at     int // in the block
	err    error
}

// add takes a pair whose key is above those before.
func (x *index) add(p pair) error {
	if x.n%blockPairs == 0 {
		x.firsts = append(x.firsts, p.key)
	}
	x.n++
	if x.here = append(x.here, p); len(x.here) < mostPairs {
		return nil
	}
	return x.spill()
}

func (x *index) spill() (err error) {
	if x.file == nil {
		x.file = &sorter{}
		if x.file.file, err = unnamed(); err != nil {
			return err
		}
	}
	err = x.file.write(x.here)
	x.here = x.here[:0]
	return err
}

// done is to be called after the last pair.
func (x *index) done() error {
	if x.file == nil {
		return nil
	}
	err := x.spill()
	x.here, x.held = nil, map[int][]pair{}
	return err
}

func (x *index) close() {
	if x.file != nil {
		x.file.close()
	}
}

// read is a block.
func (x *index) read(k int) []pair {
	from, to := k*blockPairs, min((k+1)*blockPairs, x.n)
	if x.file == nil {
		return x.here[from:to]
	}
	if b, ok := x.held[k]; ok {
		return b
	}
	raw := make([]byte, (to-from)*pairBytes)
	if _, err := x.file.file.ReadAt(raw, int64(from)*pairBytes); err != nil {
		x.err = errors.Join(x.err, fmt.Errorf("reading sorted edges: %w", err))
	}
	var b []pair
	if len(x.order) == blocksKept { // its room is used again
		b = x.held[x.order[0]][:0]
		delete(x.held, x.order[0])
		x.order = x.order[1:]
	}
	for i := 0; i < len(raw); i += pairBytes {
		b = append(b, get(raw[i:]))
	}
	x.held[k], x.order = b, append(x.order, k)
	return b
}

// stepsAside is how far a search looks beside the last one before it begins anew.
const stepsAside = 8

// find is what stands at a key.
func (x *index) find(key int64) (value int64, is bool) {
	if n := len(x.block); n == 0 || key < x.block[0].key || key > x.block[n-1].key {
		k, found := slices.BinarySearch(x.firsts, key)
		if !found {
			k--
		}
		if k < 0 {
			return 0, false
		}
		x.block, x.at = x.read(k), 0
	}
	for range stepsAside {
		switch here := x.block[x.at].key; {
		case here == key:
			return x.block[x.at].value, true
		case here < key && x.at+1 < len(x.block):
			x.at++
		case here > key && x.at > 0 && x.block[x.at-1].key >= key:
			x.at--
		default:
			return 0, false
		}
	}
	i, is := slices.BinarySearchFunc(x.block, key, func(p pair, key int64) int { return cmp.Compare(p.key, key) })
	if x.at = min(i, len(x.block)-1); !is {
		return 0, false
	}
	return x.block[i].value, true
}
