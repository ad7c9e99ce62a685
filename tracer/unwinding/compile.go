package unwinding

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

// queue is what the worker has to do. The Unwinder's lock is held for all but wake.
type queue struct {
	files   []*file
	spent   map[int]time.Duration // on the tables of a process's files
	busy    *file
	looks   map[int]bool // processes whose generated code is to be looked at
	looking bool
	work    chan struct{}
	idle    *sync.Cond
}

func newQueue(lock sync.Locker) *queue {
	return &queue{looks: map[int]bool{}, spent: map[int]time.Duration{}, work: make(chan struct{}, 1), idle: sync.NewCond(lock)}
}

// add lets the worker make a file's table.
func (q *queue) add(f *file) {
	q.files = append(q.files, f)
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.work <- struct{}{}:
	default:
	}
}

// left is how many tables are not made yet.
func (q *queue) left() int {
	n := len(q.files) + len(q.looks)
	if q.busy != nil {
		n++
	}
	if q.looking {
		n++
	}
	return n
}

// next takes a file of the process on whose files least time was spent, so that
// one with many large files does not keep the others waiting; of those the largest:
// the one that most frames are of.
func (q *queue) next() *file {
	if len(q.files) == 0 {
		return nil
	}
	next := slices.MaxFunc(q.files, func(a, b *file) int {
		return cmp.Or(cmp.Compare(q.spentOn(b), q.spentOn(a)), cmp.Compare(a.size, b.size))
	})
	q.remove(next)
	q.busy = next
	return next
}

// remove takes a file off the queue, and reports whether it was there.
func (q *queue) remove(f *file) bool {
	at := slices.Index(q.files, f)
	if at >= 0 {
		q.files = slices.Delete(q.files, at, at+1)
	}
	return at >= 0
}

// turn is what counts as spending the same time on two processes.
const turn = 500 * time.Millisecond

// spentOn is the least that was spent on a process that maps a file, in turns.
func (q *queue) spentOn(f *file) time.Duration {
	least := time.Duration(0)
	first := true
	for pid := range f.mappers {
		if spent := q.spent[pid] / turn; first || spent < least {
			least, first = spent, false
		}
	}
	return least
}

// worker makes one table after the other, on one core, without the lock.
type worker struct{ *Unwinder }

func (w worker) run() {
	defer close(w.ended)
	defer func(began time.Time) { w.options.Cache.Prune(began) }(time.Now())
	for range w.queue.work {
		for f := w.next(); f != nil; f = w.next() {
			began := time.Now()
			var t *unwind.Table
			var err error
			elf.Sparing(func() {
				if fault := elf.Guard(func() { t, err = w.options.Cache.Table(f.elf) }); fault != nil {
					err = fault
				}
			})
			w.finish(f, t, err, began)
		}
		for w.lookNext() {
		}
	}
}

func (w worker) next() *file {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	return w.queue.next()
}

// finish publishes a table, or says why there is none.
func (w worker) finish(f *file, t *unwind.Table, err error, began time.Time) {
	var digest unwind.Digest
	if err == nil {
		digest = t.Digest()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f.elf.Close()
	f.elf = nil
	if err == nil && !w.closed {
		err = w.room.publish(f, t, digest)
		w.options.Changed()
	}
	if t != nil {
		t.Close()
	}
	f.took = time.Since(began)
	for pid := range f.mappers {
		w.queue.spent[pid] += f.took
	}
	if err != nil {
		w.room.refused.count(err, f.of)
		f.state, f.reason = Absent, err
	}
	w.queue.busy = nil
	w.queue.idle.Broadcast()
}
