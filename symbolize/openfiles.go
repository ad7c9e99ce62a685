package symbolize

import (
	"container/list"
	"errors"
	"sync"
	"sync/atomic"
)

// openFiles bounds what Names keeps mapped. A process may map as many files as it
// likes, and compilers of models make one for each graph; the address space of
// whoever reads them has room for 65,530 mappings, and descriptors of functions
// take memory. The file that was asked for longest ago is closed, and opened again
// when it is asked for and still there.
type openFiles struct {
	mu      sync.Mutex
	order   list.List // of *File, the last used first
	bytes   int       // of their indices
	limit   int
	evicted uint64

	unnamed, mangled atomic.Uint64 // Lost
}

const (
	// maxOpenFiles: a job with PyTorch maps 400 files, one that has compiled
	// models some hundreds more.
	maxOpenFiles = 1024
	// maxIndexBytesOpen bounds the indices of functions in memory, 6 MB for a
	// wheel's libtorch.
	maxIndexBytesOpen = 256 << 20
)

// errEvicted: the file was closed to make room for others, and is gone meanwhile.
var errEvicted = errors.New("closed to make room for other files, and not there any more")

// use notes that a file was opened or asked for now, and what its index takes, and
// closes those beyond the limits. The file's lock is held.
func (o *openFiles) use(f *File, indexBytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f.place == nil {
		f.place = o.order.PushFront(f)
	} else {
		o.order.MoveToFront(f.place)
	}
	o.bytes += indexBytes - f.indexBytes
	f.indexBytes = indexBytes
	for at := o.order.Back(); at != nil && (o.order.Len() > o.limit || o.bytes > maxIndexBytesOpen); {
		oldest := at.Value.(*File)
		at = at.Prev()
		// One that is being asked is in use, and no wait is due to it here.
		if oldest == f || !oldest.mu.TryLock() {
			continue
		}
		o.drop(oldest)
		oldest.unload()
		oldest.mu.Unlock()
		o.evicted++
	}
}

// drop takes a file off the list.
func (o *openFiles) drop(f *File) {
	if f.place == nil {
		return
	}
	o.order.Remove(f.place)
	o.bytes -= f.indexBytes
	f.place, f.indexBytes = nil, 0
}

// close closes every file.
func (o *openFiles) close() {
	for {
		o.mu.Lock()
		first := o.order.Front()
		if first == nil {
			o.mu.Unlock()
			return
		}
		f := first.Value.(*File)
		o.drop(f)
		o.mu.Unlock()
		f.mu.Lock()
		f.unload()
		f.reopen = nil
		f.mu.Unlock()
	}
}

// unload closes the mapping and forgets what was made of it. The file's lock is
// held.
func (f *File) unload() {
	if f.elf == nil {
		return
	}
	_ = f.elf.Close()
	f.elf, f.functions = nil, nil
	f.names, f.frames, f.calls, f.operators = map[uint64]string{}, map[uint64]Frame{}, nil, nil
}

// load makes the file readable, opening it again if it was closed. The file's lock
// is held.
func (f *File) load() error {
	if f.err != nil || f.elf != nil {
		return f.err
	}
	if f.reopen == nil {
		return errEvicted
	}
	e, err := f.reopen()
	if err != nil {
		return errEvicted
	}
	if e.Origin() != f.layout.Origin() {
		_ = e.Close()
		f.lost = true
		return errEvicted
	}
	f.elf = e
	f.open.use(f, 0)
	return nil
}

// touch notes that the file is in use. The file's lock is held.
func (f *File) touch() {
	if f.open != nil && f.elf != nil {
		bytes := 0
		if f.functions != nil {
			bytes = f.functions.Bytes()
		}
		f.open.use(f, bytes)
	}
}
