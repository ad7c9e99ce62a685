package unwinding

import (
	"cmp"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

// enqueue lets the worker make a file's table.
func (u *Unwinder) enqueue(f *file) {
	u.queue = append(u.queue, f)
	u.wake()
}

func (u *Unwinder) wake() {
	select {
	case u.work <- struct{}{}:
	default:
	}
}

// dequeue takes a file of the process on whose files least time was spent, so that
// one with many large files does not keep the others waiting; of those the largest:
// the one that most frames are of.
func (u *Unwinder) dequeue() *file {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.queue) == 0 || u.closed {
		return nil
	}
	next := slices.MaxFunc(u.queue, func(a, b *file) int {
		return cmp.Or(cmp.Compare(u.spentOn(b), u.spentOn(a)), cmp.Compare(a.size, b.size))
	})
	u.queue = slices.DeleteFunc(u.queue, func(f *file) bool { return f == next })
	u.busy = next
	return next
}

// abandon gives up a file that nobody maps and whose table is not begun.
func (u *Unwinder) abandon(f *file) {
	at := slices.Index(u.queue, f)
	if len(f.mappers) > 0 || at < 0 || u.closed {
		return
	}
	u.queue = slices.Delete(u.queue, at, at+1)
	f.elf.Close()
	f.elf, f.state = nil, Absent
	for key, known := range u.byOrigin {
		if known == f {
			delete(u.byOrigin, key)
		}
	}
	u.retire(f) // a child that was forked a moment ago has its number
}

// turn is what counts as spending the same time on two processes.
const turn = 500 * time.Millisecond

// spentOn is the least that was spent on a process that maps a file, in turns.
func (u *Unwinder) spentOn(f *file) time.Duration {
	least := time.Duration(0)
	first := true
	for pid := range f.mappers {
		if spent := u.spent[pid] / turn; first || spent < least {
			least, first = spent, false
		}
	}
	return least
}

// worker makes one table after the other, on one core, without the lock.
func (u *Unwinder) worker() {
	defer close(u.ended)
	defer u.options.Cache.Prune()
	for range u.work {
		for f := u.dequeue(); f != nil; f = u.dequeue() {
			began := time.Now()
			var t *unwind.Table
			var err error
			if fault := elf.Guard(func() { t, err = u.options.Cache.Table(f.elf) }); fault != nil {
				err = fault
			}
			u.finish(f, t, err, began)
		}
		for u.lookNext() {
		}
	}
}

// finish publishes a table, or says why there is none.
func (u *Unwinder) finish(f *file, t *unwind.Table, err error, began time.Time) {
	var digest unwind.Digest
	if err == nil {
		digest = t.Digest()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	f.elf.Close()
	f.elf = nil
	if err == nil && !u.closed {
		err = u.publish(f, t, digest)
		u.options.Changed()
	}
	if t != nil {
		t.Close()
	}
	f.took = time.Since(began)
	for pid := range f.mappers {
		u.spent[pid] += f.took
	}
	if err != nil {
		u.refused.count(err)
		f.state, f.reason = Absent, err
	}
	u.busy = nil
	u.idle.Broadcast()
}
