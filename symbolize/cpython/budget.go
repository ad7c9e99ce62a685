package cpython

import (
	"errors"
	"time"
)

// ErrBudget: a process has had read of it what may be read of one.
var ErrBudget = errors.New("too much to read: its structures lead to more than those of any interpreter")

// A Budget bounds what is read of one process, whatever it is read for: its lists may go in
// circles, and each of its objects may be as large as one may be. It belongs to one goroutine.
type Budget struct {
	reads, bytes         int
	perSecond            int // reads that come back in a second; bytes likewise, bytesPerRead for each
	mostReads, mostBytes int
	at                   time.Time
	now                  func() time.Time
}

const (
	// searchReads are for finding an interpreter, however often it is looked for: a process with
	// 4,096 threads takes 13,000 each time.
	searchReads, searchBytes = 1 << 18, 16 << 20
	// A large job names 10,000 code objects in its first seconds, of four reads, seldom seven, and 2 KiB each.
	namingReads, namingBytes = 1 << 17, 64 << 20
	namingPerSecond          = 1 << 13
	bytesPerRead             = namingBytes / namingReads
)

// SearchBudget is for all searches for the interpreter of one process.
func SearchBudget() *Budget {
	return &Budget{reads: searchReads, bytes: searchBytes, mostReads: searchReads, mostBytes: searchBytes, now: time.Now}
}

// namingBudget is for the names of one process's code, for as long as the process lives.
func namingBudget() *Budget {
	return &Budget{reads: namingReads, bytes: namingBytes, perSecond: namingPerSecond, mostReads: namingReads, mostBytes: namingBytes,
		now: time.Now}
}

// take reports whether another read, of so many bytes, is within the budget. A nil budget has
// no end.
func (b *Budget) take(bytes int) bool {
	if b == nil {
		return true
	}
	if b.reads < 1 || b.bytes < bytes {
		b.refill()
	}
	if b.reads < 1 || b.bytes < bytes {
		return false
	}
	b.reads, b.bytes = b.reads-1, b.bytes-bytes
	return true
}

// refill gives back what has come back since it was done last.
func (b *Budget) refill() {
	if b.perSecond == 0 {
		return
	}
	now := b.now()
	if b.at.IsZero() { // until now nothing was missing
		b.at = now
		return
	}
	back := int(min(now.Sub(b.at).Seconds()*float64(b.perSecond), float64(b.mostReads)))
	if back < 1 {
		return
	}
	b.at = now
	b.reads, b.bytes = min(b.reads+back, b.mostReads), min(b.bytes+back*bytesPerRead, b.mostBytes)
}

// spent reports a budget from which nothing more can be read.
func (b *Budget) spent() bool { return b != nil && (b.reads < 1 || b.bytes < 8) }
