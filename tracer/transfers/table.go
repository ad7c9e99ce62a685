// Package transfers makes rows of what the kernel says of the job's reads and writes
// (bpf/io.h): the kernel's sums only grow, a row is the difference to those before. It
// belongs to the decoder's goroutine.
//
// The package is no part of the public API: it may change with any version.
package transfers

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Table is what the threads have read and written so far.
type Table struct {
	offsetNS int64 // Unix epoch minus CLOCK_MONOTONIC
	waits    bool  // how long threads wait is seen
	warn     func(event.Warning)
	giveUp   func() // ends the measuring
	mounts   *mounts
	threads  map[uint32]*thread
	calls    map[callKey]*event.Call
	budget   budget
}

// thread is one that has an entry in the kernel's table.
type thread struct {
	bornNS uint64
	pid    uint32
	slots  [slots]sums
	paths  [slots]filePath
	passed uint64
}

const slots = len(bpf.SampleIoThread{}.Slots)

type sums struct {
	generation uint32
	bpf.SampleIoSums
}

// New makes a Table. waits says whether the kernel sees how long threads wait; giveUp ends
// the measuring.
func New(offsetNS int64, waits bool, warn func(event.Warning), giveUp func()) *Table {
	return &Table{
		offsetNS: offsetNS, waits: waits, warn: warn, giveUp: giveUp, mounts: newMounts(), threads: map[uint32]*thread{},
		calls: map[callKey]*event.Call{}, budget: budget{told: map[uint32]bool{}},
	}
}

// Sums is the row that a record of sums makes, if there is anything new in it.
func (t *Table) Sums(r *bpf.SampleIoRecord) (event.IO, bool) {
	of := t.thread(r)
	if of == nil {
		return event.IO{}, false
	}
	of.pass(&t.budget, r.Passed)
	switch bpf.SampleIoEvent(r.Event) {
	case bpf.SampleIoEventIO_ENDED:
		delete(t.threads, r.Tid)
		return event.IO{}, false
	case bpf.SampleIoEventIO_LEFT_OUT:
		t.budget.tell(t, r)
		return event.IO{}, false
	case bpf.SampleIoEventIO_TAKEN_IN:
		return event.IO{}, false
	case bpf.SampleIoEventIO_GIVEN_UP:
		t.budget.giveUp(t, r)
		return event.IO{}, false
	}
	grown, ok := of.slots[int(r.Slot)%slots].grow(r)
	if !ok {
		return event.IO{}, false
	}
	row := t.row(r, &grown)
	row.Path = of.path(uint32(r.Slot), r.Generation, row.Mount)
	return row, true
}

// thread is the one that a record is of; nil where it is of one that had the number before.
func (t *Table) thread(r *bpf.SampleIoRecord) *thread {
	of := t.threads[r.Tid]
	if of == nil || of.bornNS < r.BornNs {
		of = &thread{bornNS: r.BornNs, pid: r.Tgid}
		t.threads[r.Tid] = of
	}
	if of.bornNS > r.BornNs {
		return nil
	}
	return of
}

// pass counts what was passed by of it; of may be nil.
func (of *thread) pass(b *budget, passed uint64) {
	if of != nil && passed > of.passed {
		b.passed += passed - of.passed
		of.passed = passed
	}
}

// grow is by how much the sums are more than those before. A record may be older than
// one that has been read: what the kernel has kept is looked at beside the ring.
func (s *sums) grow(r *bpf.SampleIoRecord) (grown bpf.SampleIoSums, ok bool) {
	switch {
	case r.Generation < s.generation:
		return grown, false
	case r.Generation > s.generation:
		*s = sums{generation: r.Generation}
	}
	if r.Sums.Calls < s.Calls || r.Sums.Ns < s.Ns {
		return grown, false
	}
	grown.Calls, grown.Failed, grown.Bytes = r.Sums.Calls-s.Calls, r.Sums.Failed-s.Failed, r.Sums.Bytes-s.Bytes
	grown.Ns, grown.WaitedNs = r.Sums.Ns-s.Ns, r.Sums.WaitedNs-s.WaitedNs
	s.SampleIoSums = r.Sums
	return grown, grown.Calls > 0 || grown.Ns > 0
}

func (t *Table) row(r *bpf.SampleIoRecord, grown *bpf.SampleIoSums) event.IO {
	row := event.IO{
		TSNS: int64(r.FirstNs) + t.offsetNS, EndNS: int64(r.LastNs) + t.offsetNS, PID: int32(r.Tgid), TID: int32(r.Tid),
		Operation: operations[r.Class.Operation], Kind: kindOf(&r.Class),
		Calls: int64(grown.Calls), Failed: int64(grown.Failed), Bytes: int64(grown.Bytes), DurationNS: int64(grown.Ns),
	}
	row.FileSystem, row.Mount, row.Device = t.place(r.Tgid, &r.Class)
	if t.waits {
		waited := int64(grown.WaitedNs)
		row.WaitedNS = &waited
	}
	return row
}

// place is where the files of a class are.
func (t *Table) place(pid uint32, c *bpf.SampleIoClass) (fileSystem, point, device string) {
	if c.System[0] == 0 {
		return "", "", ""
	}
	at := t.mounts.find(pid, c.Mount, c.Device)
	if at.fileSystem == "" {
		at.fileSystem = text(c.System[:])
	}
	return at.fileSystem, at.point, deviceName(c.Device)
}

// deviceName is the number of a device of the kernel, as mountinfo has it.
func deviceName(device uint32) string { return fmt.Sprintf("%d:%d", device>>20, device&(1<<20-1)) }

func text(c []int8) string {
	b := make([]byte, 0, len(c))
	for _, one := range c {
		if one == 0 {
			break
		}
		b = append(b, byte(one))
	}
	return string(b)
}

var operations = map[uint8]string{1: event.IORead, 2: event.IOWrite, operationSync: event.IOSync, operationFault: event.IOFault}

// kinds are the words for st_mode >> 12.
var kinds = map[uint8]string{
	unix.S_IFIFO >> 12: event.IOPipe, unix.S_IFCHR >> 12: event.IODevice, unix.S_IFBLK >> 12: event.IODevice,
	unix.S_IFDIR >> 12: event.IODirectory, unix.S_IFREG >> 12: event.IOFile, unix.S_IFSOCK >> 12: event.IOSocket,
}

// several is IO_SEVERAL of bpf/wire.h, memory IO_MEMORY.
const several, memory = 255, 15

func kindOf(c *bpf.SampleIoClass) string {
	switch kind := kinds[c.Type]; {
	case kind != "":
		return kind
	case c.Type == several:
		return ""
	case c.Type == memory:
		return event.IOMemory
	case c.Operation == operationFault && c.System[0] == 0:
		return "" // the kernel did not say what is mapped there
	case c.System[0] == 0:
		return event.IONone
	}
	return event.IOOther
}

// Held is the row of what the kernel has not sent yet of one place of a thread's entry.
// What came after a time it leaves alone: the thread will send it.
func (t *Table) Held(tid uint32, of *bpf.SampleIoThread, slot int, before uint64) (event.IO, bool) {
	s := &of.Slots[slot]
	if slot == 0 && of.Passed > 0 { // in it there may be nothing new
		t.thread(&bpf.SampleIoRecord{Tgid: of.Tgid, Tid: tid, BornNs: of.BornNs}).pass(&t.budget, of.Passed)
	}
	if s.Dirty == 0 || s.LastNs > before {
		return event.IO{}, false
	}
	return t.Sums(&bpf.SampleIoRecord{
		Slot: uint16(slot), Generation: s.Generation, Tgid: of.Tgid, Tid: tid, BornNs: of.BornNs, Passed: of.Passed,
		FirstNs: s.FirstNs, LastNs: s.LastNs, Class: s.Class, Sums: s.Sums,
	})
}

// Forget forgets the threads of a process.
func (t *Table) Forget(pid uint32) {
	for tid, of := range t.threads {
		if of.pid == pid {
			delete(t.threads, tid)
		}
	}
	delete(t.budget.told, pid)
}

// budget is what became of calls that it had no room for.
type budget struct {
	told   map[uint32]bool // processes
	over   bool            // nothing is measured any more
	passed uint64
}

// mostTold bounds the warnings: one process is enough to know by.
const mostTold = 64

func (b *budget) tell(t *Table, r *bpf.SampleIoRecord) {
	if b.told[r.Tgid] || len(b.told) >= mostTold {
		return
	}
	b.told[r.Tgid] = true
	t.warn(event.Warning{
		TSNS: time.Now().UnixNano(), Kind: "slice", Source: "io", Count: 1,
		Detail: fmt.Sprintf("measuring every read and write of thread %d of process %d takes more of its time than the budget has room for: "+
			"from here on some of its time has no rows of io; a larger --budget may have room, --budget off measures all", r.Tid, r.Tgid),
	})
}

// giveUp ends the measuring: no kernel probe costs nothing.
func (b *budget) giveUp(t *Table, r *bpf.SampleIoRecord) {
	if b.over {
		return
	}
	b.over = true
	t.giveUp()
	t.warn(event.Warning{
		TSNS: time.Now().UnixNano(), Kind: "slice", Source: "io", Count: 1,
		Detail: fmt.Sprintf("thread %d of process %d makes so many reads and writes that even passing them by takes more of its time than the "+
			"budget has room for: "+
			"from here on none are measured, of any process; a larger --budget may have room, --budget off measures all", r.Tid, r.Tgid),
	})
}

// Losses says what was not measured.
func (t *Table) Losses() []event.Warning {
	return []event.Warning{
		{Kind: "slice", Source: "io_budget", Count: int64(t.budget.passed), Detail: "reads and writes that were passed by, for measuring them " +
			"took more than the budget has room for: they are not in io"},
		{Kind: "incomplete", Source: "io_mount", Count: int64(t.mounts.unknown), Detail: "mounts whose directory is not known: those of a " +
			"process had ended, or there were too many"},
	}
}
