package tracer

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// nodeCounter tells how far a training job has come for nothing: PyTorch numbers
// the autograd nodes that a thread makes, and the number is a word of the thread's
// own storage (at::sequence_number), which can be read in the process's memory at
// any time. A step makes the same number of nodes each time, so slices can be
// weighed by nodes as by steps, and no probe has to count anything between them.
//
// It belongs to the manager's goroutine.
type nodeCounter struct {
	tasks   *taskList
	words   map[*tracedFile]*tlsWord // nil: the file has none
	memory  map[int]*os.File         // of the processes, while they live
	threads map[int32]*countedThread
	gone    uint64 // nodes of threads that have ended
	listed  time.Time
	looked  time.Time
}

// countedThread is one thread's numbering.
type countedThread struct {
	pid     int
	pointer uint64
	address uint64 // of the number; 0 while the thread has none
	base    uint64 // the number when the process was first seen
	number  uint64
}

const (
	// nodeEvery is how often the numbers are read at the least: what a process does
	// after the last look, before it ends, is not counted.
	nodeEvery = 100 * time.Millisecond
	// listEvery is how often the kernel is asked for new threads.
	listEvery = time.Second
	// sequenceNumberPeek returns the number of nodes that the thread has made.
	sequenceNumberPeek = "_ZN2at15sequence_number4peekEv"
	// mostNodes bounds what is taken for a number of nodes.
	mostNodes = 1 << 48
)

// newNodeCounter asks for what it needs of the kernel; without it, it counts
// nothing, and the slices are weighed by other means.
func newNodeCounter() *nodeCounter {
	tasks, err := newTaskList()
	if err != nil {
		return nil
	}
	return &nodeCounter{tasks: tasks, words: map[*tracedFile]*tlsWord{}, memory: map[int]*os.File{}, threads: map[int32]*countedThread{}}
}

// read returns how many nodes the job's threads have made since they were first
// seen, and whether that is known.
func (c *nodeCounter) read(now time.Time, files map[fileKey]*tracedFile, pids []int) (nodes uint64, known bool) {
	if c == nil {
		return 0, false
	}
	c.looked = now
	alive := map[int32]bool{}
	for _, f := range files {
		word := c.word(f)
		if word == nil {
			continue
		}
		for _, pid := range pids {
			library := f.mapped[pid]
			if library == nil {
				continue
			}
			bias, ok := library.Bias(f.plan.file)
			if !ok {
				continue
			}
			if err := c.process(now, pid, *word, bias, alive); err != nil {
				c.forget(pid) // it ended or is another program now
				continue
			}
			known = true
		}
	}
	maps.DeleteFunc(c.threads, func(tid int32, t *countedThread) bool {
		if !alive[tid] {
			c.gone += t.number - t.base
		}
		return !alive[tid]
	})
	nodes = c.gone
	for _, t := range c.threads {
		nodes += t.number - t.base
	}
	return nodes, known || c.gone > 0
}

// due reports whether it is time to look again.
func (c *nodeCounter) due(now time.Time) bool {
	return c.counting() && now.Sub(c.looked) >= nodeEvery
}

// counting reports whether any thread has made a node.
func (c *nodeCounter) counting() bool {
	if c == nil {
		return false
	}
	for _, t := range c.threads {
		if t.number > 0 {
			return true
		}
	}
	return false
}

// word finds where a library keeps the number.
func (c *nodeCounter) word(f *tracedFile) *tlsWord {
	if w, ok := c.words[f]; ok {
		return w
	}
	c.words[f] = nil
	for _, s := range f.plan.file.ExportedFunctions([]string{sequenceNumberPeek}) {
		code := site.Function{Arch: site.AMD64, Address: s.Address, Code: f.plan.file.CodeAt(s.Address, s.Size)}
		if f.plan.file.Machine() != symbolize.MachineX86_64 {
			continue
		}
		if word, ok := tlsWordOf(code); ok {
			c.words[f] = &word
		}
	}
	return c.words[f]
}

// process reads the numbers of one process's threads.
func (c *nodeCounter) process(now time.Time, pid int, word tlsWord, bias uint64, alive map[int32]bool) error {
	tids, err := threadsOf(pid)
	if err != nil {
		return err
	}
	memory := c.memory[pid]
	first := memory == nil
	if first {
		if memory, err = os.Open(fmt.Sprintf("/proc/%d/mem", pid)); err != nil {
			return err
		}
		c.memory[pid] = memory
	}
	if err := c.discover(now, pid, tids, first); err != nil {
		return err
	}
	for _, tid := range tids {
		t := c.threads[tid]
		if t == nil {
			continue
		}
		alive[tid] = true
		if t.address == 0 {
			if t.address, err = word.address(memory, bias, t.pointer); err != nil {
				return err
			}
		}
		if t.address == 0 {
			continue
		}
		number, err := readWord(memory, t.address)
		if err != nil || number > mostNodes {
			return fmt.Errorf("pid %d: what should count the nodes of thread %d does not: %d, %w", pid, tid, number, err)
		}
		if first {
			t.base = number
		}
		t.number = max(t.number, number, t.base)
	}
	return nil
}

// discover learns the thread pointers of threads that are new.
func (c *nodeCounter) discover(now time.Time, pid int, tids []int32, first bool) error {
	known := func(tid int32) bool { return c.threads[tid] != nil }
	if !slices.ContainsFunc(tids, func(tid int32) bool { return !known(tid) }) || !first && now.Sub(c.listed) < listEvery {
		return nil
	}
	pointers, err := c.tasks.pointers(map[int]bool{pid: true})
	if err != nil {
		return err
	}
	c.listed = now
	for tid, pointer := range pointers {
		if !known(tid) {
			c.threads[tid] = &countedThread{pid: pid, pointer: pointer}
		}
	}
	return nil
}

// forget begins anew with a process.
func (c *nodeCounter) forget(pid int) {
	if m := c.memory[pid]; m != nil {
		m.Close()
		delete(c.memory, pid)
	}
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

func (c *nodeCounter) close() {
	if c == nil {
		return
	}
	for _, m := range c.memory {
		m.Close()
	}
	c.tasks.close()
}
