package progress

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// NodeCounter tells how far a training job has come for nothing: PyTorch numbers
// the autograd nodes that a thread makes, and the number is a word of the thread's
// own storage (at::sequence_number), which can be read in the process's memory at
// any time. A step makes the same number of nodes each time, so slices can be
// weighed by nodes as by steps, and no probe has to count anything between them.
//
// It belongs to the manager's goroutine.
type NodeCounter struct {
	tasks     Threads
	words     map[Library]*tlsWord // nil: the file has none
	processes map[int]*countedProcess
	gone      uint64 // nodes of threads that have ended
	looked    time.Time
}

// countedProcess is a process whose threads make nodes.
type countedProcess struct {
	memory  *process.Memory
	threads map[int32]*countedThread
	swept   time.Time // when all its threads were looked at
	read    time.Time // when any was
}

// countedThread is one thread's numbering.
type countedThread struct {
	pointer uint64
	address uint64 // of the number; 0 while the thread has none
	base    uint64 // the number when the process was first seen
	number  uint64
	still   int // sweeps in a row that found the number as it was
}

const (
	// NodeEvery is how often the numbers are read at the least: what a process does
	// after the last look, before it ends, is not counted.
	NodeEvery = 100 * time.Millisecond
	// sweepEvery is how often all threads are looked at, and the kernel is asked for
	// new ones; in between only those that make nodes are. A thread counts as one
	// that does not after stillSweeps without any.
	sweepEvery  = time.Second
	stillSweeps = 8
	// sequenceNumberPeek returns the number of nodes that the thread has made.
	sequenceNumberPeek = "_ZN2at15sequence_number4peekEv"
	// mostNodes bounds what is taken for a number of nodes.
	mostNodes = 1 << 48
)

// NewNodeCounter asks for what it needs of the kernel; without it, it counts
// nothing, and the slices are weighed by other means.
func NewNodeCounter(open func() (Threads, error)) *NodeCounter {
	tasks, err := open()
	if err != nil {
		return nil
	}
	return &NodeCounter{tasks: tasks, words: map[Library]*tlsWord{}, processes: map[int]*countedProcess{}}
}

// Read returns how many nodes the job's threads have made since they were first
// seen, and whether that is known.
func (c *NodeCounter) Read(now time.Time, libraries iter.Seq[Library], pids []int) (nodes uint64, known bool) {
	if c == nil {
		return 0, false
	}
	c.looked = now
	for f := range libraries {
		word := c.word(f)
		if word == nil {
			continue
		}
		for _, pid := range pids {
			bias, ok := f.Bias(pid)
			if !ok {
				continue
			}
			if err := c.process(now, pid, *word, bias); err != nil {
				c.forget(pid) // it ended or is another program now
			}
		}
	}
	for pid, p := range c.processes {
		if p.read != now { // not among the job's any more
			c.forget(pid)
		}
	}
	nodes = c.gone
	for _, p := range c.processes {
		for _, t := range p.threads {
			nodes += t.number - t.base
		}
	}
	return nodes, len(c.processes) > 0 || nodes > 0
}

// Due reports whether it is time to look again.
func (c *NodeCounter) Due(now time.Time) bool {
	return c.Counting() && now.Sub(c.looked) >= NodeEvery
}

// Counting reports whether any thread has made a node.
func (c *NodeCounter) Counting() bool {
	if c == nil {
		return false
	}
	for _, p := range c.processes {
		for _, t := range p.threads {
			if t.number > 0 {
				return true
			}
		}
	}
	return false
}

// word finds where a library keeps the number.
func (c *NodeCounter) word(f Library) *tlsWord {
	if w, ok := c.words[f]; ok {
		return w
	}
	c.words[f] = nil
	_ = elf.Guard(func() { c.words[f] = wordOf(f.File()) })
	return c.words[f]
}

// wordOf finds the word in a file's code, nil where there is none.
func wordOf(file *elf.File) (found *tlsWord) {
	if file.Machine() != elf.MachineX86_64 {
		return nil
	}
	for _, s := range file.ExportedFunctions([]string{sequenceNumberPeek}) {
		code := site.Function{Arch: site.AMD64, Address: s.Address, Code: file.CodeAt(s.Address, s.Size)}
		if word, ok := tlsWordOf(code); ok {
			found = &word
		}
	}
	return found
}

// process reads the numbers of one process's threads.
func (c *NodeCounter) process(now time.Time, pid int, word tlsWord, bias uint64) error {
	p := c.processes[pid]
	first := p == nil
	if first {
		memory, err := process.OpenMemory(pid)
		if err != nil {
			return err
		}
		p = &countedProcess{memory: memory, threads: map[int32]*countedThread{}}
		c.processes[pid] = p
	}
	p.read = now
	sweep := now.Sub(p.swept) >= sweepEvery
	if sweep {
		p.swept = now
		if err := c.discover(pid, p); err != nil {
			return err
		}
	}
	for tid, t := range p.threads {
		if !sweep && t.still >= stillSweeps {
			continue
		}
		if err := t.look(p.memory, word, bias, sweep); err != nil && sweep {
			return fmt.Errorf("counting the autograd nodes of thread %d: %w", tid, err)
		}
		if first {
			t.base = t.number
		}
	}
	return nil
}

// look reads the thread's number.
func (t *countedThread) look(memory io.ReaderAt, word tlsWord, bias uint64, sweep bool) (err error) {
	before := t.number
	if t.address == 0 {
		if t.address, err = word.address(memory, bias, t.pointer); err != nil {
			return err
		}
	}
	if t.address != 0 {
		number, err := readWord(memory, t.address)
		if err != nil {
			return err
		}
		if number > mostNodes {
			return fmt.Errorf("%#x is no number of nodes", number)
		}
		t.number = max(t.number, number)
	}
	switch {
	case t.number != before:
		t.still = 0
	case sweep:
		t.still++
	}
	return nil
}

// discover learns which threads a process has.
func (c *NodeCounter) discover(pid int, p *countedProcess) error {
	tids, err := threadsOf(pid)
	if err != nil {
		return err
	}
	maps.DeleteFunc(p.threads, func(tid int32, t *countedThread) bool {
		ended := !slices.Contains(tids, tid)
		if ended {
			c.gone += t.number - t.base
		}
		return ended
	})
	if len(tids) == len(p.threads) {
		return nil
	}
	pointers, err := c.tasks.Pointers(pid)
	if err != nil {
		return err
	}
	for tid, pointer := range pointers {
		if p.threads[tid] == nil {
			p.threads[tid] = &countedThread{pointer: pointer}
		}
	}
	return nil
}

// forget ends with a process; what its threads made counts on.
func (c *NodeCounter) forget(pid int) {
	p := c.processes[pid]
	if p == nil {
		return
	}
	for _, t := range p.threads {
		c.gone += t.number - t.base
	}
	p.memory.Close()
	delete(c.processes, pid)
}

func threadsOf(pid int) (tids []int32, err error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			tids = append(tids, int32(tid))
		}
	}
	return tids, nil
}

// Close ends the reading of the processes.
func (c *NodeCounter) Close() {
	if c == nil {
		return
	}
	for _, p := range c.processes {
		p.memory.Close()
	}
	c.tasks.Close()
}
