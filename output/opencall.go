package output

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// openCall is a row of open_call: a call with its communicator and when it was seen.
type openCall struct {
	event.OpenCall
	in     *event.Communicator // nil: not known
	seenNS int64
}

var openCallTable = newTable(table[openCall]{
	Table: Table{
		Name: "open_call",
		Row: "a call of torch.distributed that has begun and not ended: a collective that its group has not finished (category work), a " +
			"thread that waits for one (wait), a call that asks for one and has not returned (issue)",
		Description: "Written anew within 2 s of a change, with all that has been open for half a second; what the recording ended with stays. " +
			"Empty while nothing waits. `ebpfprof fleet hang` and `ebpfprof stacks --standing` read it.",
	},
	columns: []column[openCall]{
		{Column: Column{"ts_ns", BigInt, "ns", false, 2, "when it began, since the Unix epoch"},
			delta: true, ints: func(c *openCall) (int64, bool) { return c.StartNS, true }},
		{Column: Column{"seen_ns", BigInt, "ns", false, 3, "when it was open still: the moment of which the table is"},
			delta: true, ints: func(c *openCall) (int64, bool) { return c.seenNS, true }},
		{Column: Column{"pid", Integer, "", false, 4, "process, in the tracer's pid namespace"},
			ints: func(c *openCall) (int64, bool) { return integer(c.PID) }},
		{Column: Column{"tid", Integer, "", false, 5, "thread that waits, or that asked for the collective"},
			ints: func(c *openCall) (int64, bool) { return integer(c.TID) }},
		{Column: Column{"layer", Varchar, "", false, 6, "as in span: collective"},
			texts: func(c *openCall) (string, bool) { return c.Call.Layer, true }},
		{Column: Column{"category", Varchar, "", true, 7, "work, wait or issue"},
			texts: func(c *openCall) (string, bool) { return unlessEmpty(c.Call.Category) }},
		{Column: Column{"runtime", Varchar, "", true, 8, "the library: gloo, nccl"},
			texts: func(c *openCall) (string, bool) { return unlessEmpty(c.Call.Runtime) }},
		{Column: Column{"name", Varchar, "", false, 9, "the call, of a work the one that asked for it: gloo::allreduce"},
			texts: func(c *openCall) (string, bool) { return c.Call.Name, true }},
		{Column: Column{"span_id", BigInt, "", false, 10, "span of the call, of a work the one that asked for it"},
			delta: true, ints: func(c *openCall) (int64, bool) { return c.SpanID, true }},
		{Column: Column{"communicator", BigInt, "", true, 11, "the group of ranks, the same on every rank; NULL where that is not known"},
			ints: func(c *openCall) (int64, bool) { return ofInt64(c.communicator().ID) }},
		{Column: Column{"communicator_handle", BigInt, "", true, 12, "the group's handle in the process, as in communicator"},
			ints: func(c *openCall) (int64, bool) { return c.communicator().Handle, c.in != nil }},
		{Column: Column{"rank", Integer, "", true, 13, "the process's rank in the group"},
			ints: func(c *openCall) (int64, bool) { return ofInt32(c.communicator().Rank) }},
		{Column: Column{"ranks", Integer, "", true, 14, "how many ranks the group has"},
			ints: func(c *openCall) (int64, bool) { return ofInt32(c.communicator().Ranks) }},
		{Column: Column{"sequence_number", BigInt, "", true, 15, "which collective of its group it is, as in span"},
			ints: func(c *openCall) (int64, bool) { return ofInt64(c.Number) }},
		{Column: Column{"completed_number", BigInt, "", true, 16, "the last collective of the group that has ended in this process"},
			ints: func(c *openCall) (int64, bool) { return ofInt64(c.communicator().CompletedNumber) }},
		{Column: Column{"bytes", BigInt, "bytes", true, 17, "one rank's share"},
			ints: func(c *openCall) (int64, bool) { return ofInt64(c.Bytes) }},
		{Column: Column{"dtype", Varchar, "", true, 18, "its element type"},
			texts: func(c *openCall) (string, bool) { return unlessEmpty(c.Dtype) }},
		{Column: Column{"element_count", BigInt, "elements", true, 19, "its number of elements"},
			ints: func(c *openCall) (int64, bool) { return ofInt64(c.ElementCount) }},
		{Column: Column{"peer_rank", Integer, "", true, 20, "the other rank of a send or receive, the root of a broadcast"},
			ints: func(c *openCall) (int64, bool) { return ofInt32(c.PeerRank) }},
		{Column: Column{"stack_id", BigInt, "", true, 21, "call stack of the thread that waits; NULL at level anchor"},
			ints: func(c *openCall) (int64, bool) { return ofInt64(c.StackID) }},
		{Column: Column{"python_stack_id", BigInt, "", true, 22, "the Python code behind the call, as in span"},
			ints: func(c *openCall) (int64, bool) { return unlessZero(c.PythonStackID) }},
	},
})

var noCommunicator event.Communicator

func (c *openCall) communicator() *event.Communicator {
	if c.in == nil {
		return &noCommunicator
	}
	return c.in
}

var communicatorTable = newTable(table[event.Communicator]{
	Table: Table{
		Name: "communicator",
		Row:  "a group of ranks of torch.distributed as one process knows it, and how far it has come",
		Description: "Written anew with open_call, and when the recording ends. Groups are known from their first collective in the " +
			"recording on.",
	},
	columns: []column[event.Communicator]{
		{Column: Column{"pid", Integer, "", false, 2, "process, in the tracer's pid namespace"},
			ints: func(c *event.Communicator) (int64, bool) { return integer(c.PID) }},
		{Column: Column{"communicator", BigInt, "", true, 3, "names the group, the same on every rank: a hash of job, library, name and size; " +
			"NULL of PyTorch before 2.1, whose groups have no name, unless it is the one of all ranks"},
			ints: func(c *event.Communicator) (int64, bool) { return ofInt64(c.ID) }},
		{Column: Column{"communicator_handle", BigInt, "", false, 4, "its address in the process"},
			ints: func(c *event.Communicator) (int64, bool) { return c.Handle, true }},
		{Column: Column{"runtime", Varchar, "", false, 5, "the library: gloo, nccl"},
			texts: func(c *event.Communicator) (string, bool) { return c.Runtime, true }},
		{Column: Column{"name", Varchar, "", true, 6, "what PyTorch calls it: 0, 1, …"},
			texts: func(c *event.Communicator) (string, bool) { return unlessEmpty(c.Name) }},
		{Column: Column{"description", Varchar, "", true, 7, "what the job calls it: default_pg"},
			texts: func(c *event.Communicator) (string, bool) { return unlessEmpty(c.Description) }},
		{Column: Column{"rank", Integer, "", true, 8, "the process's rank in the group"},
			ints: func(c *event.Communicator) (int64, bool) { return ofInt32(c.Rank) }},
		{Column: Column{"ranks", Integer, "", true, 9, "how many ranks the group has"},
			ints: func(c *event.Communicator) (int64, bool) { return ofInt32(c.Ranks) }},
		{Column: Column{"issued_number", BigInt, "", true, 10, "the last collective that the process asked the group for; NULL before the first"},
			ints: func(c *event.Communicator) (int64, bool) { return ofInt64(c.IssuedNumber) }},
		{Column: Column{"issued_name", Varchar, "", true, 11, "which call that was"},
			texts: func(c *event.Communicator) (string, bool) { return unlessEmpty(c.IssuedName) }},
		{Column: Column{"issued_ns", BigInt, "ns", true, 12, "when, since the Unix epoch"},
			delta: true, ints: func(c *event.Communicator) (int64, bool) { return ofInt64(c.IssuedNS) }},
		{Column: Column{"completed_number", BigInt, "", true, 13, "the last collective that has ended in the process; NCCL's are seen when its " +
			"watchdog looks, ten times a second, where it tells (PyTorch 2.15)"},
			ints: func(c *event.Communicator) (int64, bool) { return ofInt64(c.CompletedNumber) }},
		{Column: Column{"completed_ns", BigInt, "ns", true, 14, "when, since the Unix epoch"},
			delta: true, ints: func(c *event.Communicator) (int64, bool) { return ofInt64(c.CompletedNS) }},
	},
})

var stillThreadTable = newTable(table[event.StillThread]{
	Table: Table{
		Name: "still_thread",
		Row:  "a thread that did not run when it was looked at, and the stack on which it stood",
		Description: "Of all processes of the job with a framework or Python (else of all), when the main thread of one of them has not run " +
			"for two seconds: looked at anew after 4 s, 8 s, … while that lasts, and written anew each time. Taken from outside, no thread is " +
			"stopped. `ebpfprof fleet hang` reads it.",
	},
	columns: []column[event.StillThread]{
		{Column: Column{"seen_ns", BigInt, "ns", false, 2, "when it was looked at, since the Unix epoch"},
			delta: true, ints: func(t *event.StillThread) (int64, bool) { return t.SeenNS, true }},
		{Column: Column{"since_ns", BigInt, "ns", true, 3, "it has not run since, as far as was looked; NULL: it has, within half a " +
			"second of seen_ns"},
			delta: true, ints: func(t *event.StillThread) (int64, bool) { return ofInt64(t.SinceNS) }},
		{Column: Column{"pid", Integer, "", false, 4, "process, in the tracer's pid namespace"},
			ints: func(t *event.StillThread) (int64, bool) { return integer(t.PID) }},
		{Column: Column{"tid", Integer, "", false, 5, "thread"},
			ints: func(t *event.StillThread) (int64, bool) { return integer(t.TID) }},
		{Column: Column{"syscall", Varchar, "", true, 6, "the system call that it was in"},
			texts: func(t *event.StillThread) (string, bool) { return unlessEmpty(t.Syscall) }},
		{Column: Column{"stack_id", BigInt, "", true, 7, "its native and Python frames"},
			ints: func(t *event.StillThread) (int64, bool) { return ofInt64(t.StackID) }},
		{Column: Column{"state", Varchar, "", true, 8, "why it did not run: sleeping (it waited, and a signal would have woken it), " +
			"uninterruptible (it waited in the kernel, for a disk, a device or a page, and none would), stopped (by a signal) or traced (by " +
			"a debugger)"},
			texts: func(t *event.StillThread) (string, bool) { return unlessEmpty(t.State) }},
	},
})

// Standing is how many threads stood still when they were looked at last.
func (d *Dataset) Standing() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.standing
}

// replaceOpen replaces what is open, and has it on disk soon. The caller holds mu.
func (d *Dataset) replaceOpen(open *event.OpenCalls) error {
	rows := make([]openCall, len(open.Calls))
	communicators := append([]event.Communicator(nil), open.Communicators...)
	for i, c := range open.Calls {
		rows[i] = openCall{OpenCall: c, seenNS: open.SeenNS}
		if at := c.Communicator; at >= 0 && at < len(communicators) {
			rows[i].in = &communicators[at]
		}
	}
	d.open.replace(rows)
	d.communicators.replace(communicators)
	seen := int64(0) // when threads were looked at last
	if n := len(open.Threads); n > 0 {
		seen = open.Threads[n-1].SeenNS
	}
	stacks := len(rows) > 0 && time.Since(d.openStacks) > openStacksEvery || seen > d.stillSeen
	d.stillSeen = seen
	d.standing = len(open.Threads)
	d.still.replace(append([]event.StillThread(nil), open.Threads...))
	if stacks {
		d.openStacks = time.Now()
		d.stacks.flush()
	}
	return d.writer.start(func() error {
		if stacks {
			if err := d.writer.publishGrowing(d.stacks.file); err != nil {
				return err
			}
		}
		names := []string{"open_call", "communicator", "still_thread"}
		if seen > 0 { // who they are is asked at once
			names = append(names, "process", "thread")
		}
		return d.writer.publishNamed(names...)
	})
}

// openStacksEvery is how often the stacks get a new file for the sake of those that open
// calls name; in between they wait for the rotation.
const openStacksEvery = 10 * time.Second
