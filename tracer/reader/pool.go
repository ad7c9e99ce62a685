package reader

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// mostAtWork readers are there at once, beside those that are left behind: the manager, the
// decoder and the makers of tables ask at the same time.
const mostAtWork = 4

// pool has the readers of this process.
type pool struct {
	mu     sync.Mutex
	free   *sync.Cond
	idle   []*process
	atWork int                   // beside the idle ones
	alive  map[*process]struct{} // and those that are left behind
	used   time.Duration         // of a CPU, by those that are gone
	ledger *ledger
}

var readers = newPool()

func newPool() *pool {
	p := &pool{ledger: newLedger(), alive: map[*process]struct{}{}}
	p.free = sync.NewCond(&p.mu)
	return p
}

// Answer is what an operation returned.
type Answer struct {
	Text  []byte
	Files []*os.File // the caller's to close
}

// Ask has an operation done for what belongs to a process. The errors are *LateError, the
// system's (syscall.Errno), and those of starting a reader.
func Ask(pid int, operation int, text []byte, files ...int) (Answer, error) {
	return readers.ask(pid, uint32(operation), text, files)
}

// Try has an operation done that concerns many processes, and reports whether it was done in time. Nobody
// is left alone for it.
func Try(operation int, text []byte, within time.Duration) (done bool) {
	r, err := readers.take()
	if err != nil {
		return false
	}
	if _, err = r.ask(uint32(operation), text, nil, within); err != nil {
		readers.end(r)
		return false
	}
	readers.give(r)
	return true
}

// Begin starts the first reader, so that the first request finds it ready.
func Begin() {
	go func() {
		if p, err := readers.take(); err == nil {
			readers.give(p)
		}
	}()
}

// TakeLate returns the processes that were late since it was called last, each once.
func TakeLate() []Late {
	readers.mu.Lock()
	defer readers.mu.Unlock()
	told := readers.ledger.told
	readers.ledger.told = nil
	return told
}

// Held reports whether a reader that was left behind can not be killed: it waits in the kernel, and may have
// the lock of the process's memory. It waits a moment for those that can.
func Held() bool {
	for range heldLooks {
		readers.mu.Lock()
		left := readers.ledger.leftInAll
		readers.mu.Unlock()
		if left == 0 {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

// heldLooks, a millisecond apart, are more than a process that is killed needs to end.
const heldLooks = 200

func (p *pool) ask(pid int, operation uint32, text []byte, files []int) (Answer, error) {
	p.mu.Lock()
	refused := p.ledger.refuses(pid, time.Now())
	p.mu.Unlock()
	if refused {
		return Answer{}, &LateError{pid}
	}
	return p.askReader(pid, operation, text, files, false)
}

func (p *pool) askReader(pid int, operation uint32, text []byte, files []int, again bool) (Answer, error) {
	r, err := p.take()
	if err != nil {
		return Answer{}, err
	}
	began := time.Now()
	answer, err := r.ask(operation, text, files, patience)
	took := time.Since(began)
	if err == nil {
		took = answer.charged(took)
	}
	p.mu.Lock()
	p.ledger.spend(pid, time.Now(), took)
	p.mu.Unlock()
	switch {
	case err == nil:
		p.give(r)
		if answer.code != 0 {
			answer.closeFiles()
			return Answer{Text: answer.text}, syscall.Errno(answer.code)
		}
		return Answer{answer.text, opened(answer.files)}, nil
	case errors.Is(err, io.EOF) && !again:
		// It has ended, for want of memory perhaps, and not for what it was asked.
		p.end(r)
		return p.askReader(pid, operation, text, files, true)
	}
	p.leave(r, pid)
	return Answer{}, &LateError{pid}
}

// end forgets a reader that has ended.
func (p *pool) end(r *process) {
	r.abandon()
	p.gone()
}

func opened(files []int) (all []*os.File) {
	for _, fd := range files {
		all = append(all, os.NewFile(uintptr(fd), "read"))
	}
	return all
}

// take gets a reader that nobody else asks, and starts one if there is none.
func (p *pool) take() (*process, error) {
	p.mu.Lock()
	for len(p.idle) == 0 && p.atWork >= mostAtWork {
		p.free.Wait()
	}
	p.atWork++
	if n := len(p.idle); n > 0 {
		r := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return r, nil
	}
	p.mu.Unlock()
	r, err := start()
	if err != nil {
		p.gone()
		return nil, err
	}
	p.mu.Lock()
	p.alive[r] = struct{}{}
	p.mu.Unlock()
	go p.await(r)
	return r, nil
}

// await takes account of a reader's end.
func (p *pool) await(r *process) {
	<-r.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, r)
	p.used += r.used
}

// PIDs are those of the readers that live.
func PIDs() (pids []int) {
	readers.mu.Lock()
	defer readers.mu.Unlock()
	for r := range readers.alive {
		pids = append(pids, r.pid)
	}
	return pids
}

// CPU is how much of a CPU the readers have used.
func CPU() time.Duration {
	readers.mu.Lock()
	defer readers.mu.Unlock()
	used := readers.used
	for r := range readers.alive {
		used += usedBy(r.pid)
	}
	return used
}

func (p *pool) give(r *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.atWork--
	p.idle = append(p.idle, r)
	p.free.Signal()
}

func (p *pool) gone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.atWork--
	p.free.Signal()
}

// leave leaves a reader behind, until it ends by itself.
func (p *pool) leave(r *process, pid int) {
	r.abandon()
	p.mu.Lock()
	user := p.ledger.late(pid, time.Now())
	p.mu.Unlock()
	p.gone()
	go func() {
		<-r.ended
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ledger.ended(user)
	}()
}
