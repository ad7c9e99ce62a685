package unwinding

import (
	"errors"
	"slices"

	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

// ErrNoRoom: the unwind tables of all processes would be larger than allowed.
var ErrNoRoom = errors.New("no room for another unwind table")

// leaves hands out the leaves of the images and writes them. Shards are made
// when they are needed and kept: memory that was needed once.
type leaves struct {
	tables tables
	shards []shard
	limit  int   // of shards
	free   []run // by address, never adjacent
}

// run is leaves [first, first+count).
type run struct{ first, count int }

func (l *leaves) bytes() int { return len(l.shards) * shardLeaves * unwind.LeafBytes }

// allocate finds room for an image.
func (l *leaves) allocate(count int) (first int, err error) {
	for {
		for i, r := range l.free {
			if r.count < count {
				continue
			}
			if r.count == count {
				l.free = slices.Delete(l.free, i, i+1)
			} else {
				l.free[i] = run{r.first + count, r.count - count}
			}
			return r.first, nil
		}
		if len(l.shards) >= l.limit {
			return 0, ErrNoRoom
		}
		if err := l.grow(); err != nil {
			return 0, err
		}
	}
}

func (l *leaves) grow() error {
	number := len(l.shards)
	s, err := l.tables.newShard(number)
	if err != nil {
		return err
	}
	l.shards = append(l.shards, s)
	l.release(run{number * shardLeaves, shardLeaves})
	return nil
}

// release gives leaves back; no reader may use them any more.
func (l *leaves) release(r run) {
	i, _ := slices.BinarySearchFunc(l.free, r.first, func(f run, first int) int { return f.first - first })
	l.free = slices.Insert(l.free, i, r)
	if i+1 < len(l.free) && l.free[i].first+l.free[i].count == l.free[i+1].first {
		l.free[i].count += l.free[i+1].count
		l.free = slices.Delete(l.free, i+1, i+2)
	}
	if i > 0 && l.free[i-1].first+l.free[i-1].count == l.free[i].first {
		l.free[i-1].count += l.free[i].count
		l.free = slices.Delete(l.free, i, i+1)
	}
}

// leaf is the memory of one leaf.
func (l *leaves) leaf(number int) []byte {
	at := number % shardLeaves * unwind.LeafBytes
	return l.shards[number/shardLeaves].memory[at : at+unwind.LeafBytes]
}

func (l *leaves) close() {
	for _, s := range l.shards {
		s.close()
	}
	l.shards = nil
}
