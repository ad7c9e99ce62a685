package tracer

import "github.com/ebpfprof/ebpfprof/tracer/catalog"

// accelerators keeps what the calls of processes into their accelerator
// runtimes tell of handles: which device a context or stream is on, what a
// kernel is called, what a graph holds. It belongs to the decoder.
type accelerators struct {
	names   *kernelNames
	of      map[runtimeKey]*accelerator
	splits  *splits
	remote  *processMemory
	strange uint64 // collectives on communicators without an identity, of processes that ended
	// The one asked for last: launches come in runs.
	lastKey runtimeKey
	last    *accelerator
}

type runtimeKey struct {
	pid     uint32
	runtime string
}

// accelerator is one runtime in one process.
type accelerator struct {
	devices       devices
	graphs        graphs
	memory        driverMemory
	communicators communicators
	lists         commandLists
	times         deviceTimes
	inner         map[uint32]innerCall // by thread
}

func newAccelerators(remote *processMemory) *accelerators {
	return &accelerators{names: newKernelNames(), of: map[runtimeKey]*accelerator{}, splits: newSplits(), remote: remote}
}

func (a *accelerators) get(pid uint32, runtime string) *accelerator {
	key := runtimeKey{pid, runtime}
	if a.last != nil && a.lastKey == key {
		return a.last
	}
	one, ok := a.of[key]
	if !ok {
		one = &accelerator{
			devices: newDevices(), graphs: newGraphs(), memory: driverMemory{},
			communicators: newCommunicators(a.splits, func(address uint64) (uint64, bool) { return a.remote.word(pid, address) }),
			lists:         newCommandLists(), times: newDeviceTimes(), inner: map[uint32]innerCall{},
		}
		a.of[key] = one
	}
	a.lastKey, a.last = key, one
	return one
}

// acceleratorCall is one call into a runtime, with all that is known of it.
type acceleratorCall struct {
	*accelerator
	pid, tid uint32
	f        *catalog.Function
	r        *callRecord
	args     *arguments
	text     string
	span     *Span // nil for what is no span
	outer    bool  // its work is that of a call inside it
	captured bool  // its work went into a graph
}

func (c *acceleratorCall) detail() *Detail {
	c.span.Detail = orNew(c.span.Detail)
	return c.span.Detail
}

// accelerate fills a span from what is known of its process, and learns from it.
func (d *decoder) accelerate(c *acceleratorCall) {
	if c.isKernel() {
		c.name(d)
	}
	c.place()
	if c.interposes(d) {
		return
	}
	c.lists.size(c)
	c.communicate()
	c.capture(d)
	if c.f.Memory != nil && !c.captured && c.f.Effect != catalog.AddsNode { // a graph's allocation is there when it runs
		d.driverMemory(c)
	}
	c.times.now = max(c.times.now, end(c.span))
	if c.span.Status == StatusOK || c.span.Status == StatusNotReady {
		c.apply(d)
	} else {
		c.graphs.fail(c)
		c.communicators.fail(c)
	}
}

// apply keeps what a call changed.
func (c *acceleratorCall) apply(d *decoder) {
	if !c.asksForEffect() {
		return
	}
	if c.span.Status == StatusOK {
		d.accelerators.names.apply(c)
		c.devices.apply(c)
		c.graphs.apply(c, d)
		c.lists.apply(c, d)
	}
	c.communicators.apply(c) // one that does not block is there while its making goes on
	c.times.apply(c)
	c.times.blocking(c)
}

// await keeps a call's row back, the last of the batch, while the end of its
// work on the device is still to be seen.
func (d *decoder) await(c *acceleratorCall) {
	if c.outer {
		return
	}
	if c.waits() {
		c.times.enqueue(c)
		d.spans = d.spans[:len(d.spans)-1]
	} else if c.isCaptured() {
		delete(c.times.events, c.args.value[catalog.FieldEvent]) // it stands for what the list will run
	}
}

// release lets rows go that have waited long enough.
func (a *accelerators) release(d *decoder) {
	for _, one := range a.of {
		one.times.release(d)
	}
}

// releaseAll lets go of every row that still waits.
func (a *accelerators) releaseAll(d *decoder) {
	for _, one := range a.of {
		one.times.releaseAll(d)
	}
}

// look looks for handles of communicators that the runtimes had not made yet.
func (a *accelerators) look() {
	for _, one := range a.of {
		one.communicators.promised.look()
	}
}

// strangers counts collectives on communicators without an identity.
func (a *accelerators) strangers() uint64 {
	n := a.strange
	for _, one := range a.of {
		n += one.communicators.strange
	}
	return n
}

// hint keeps what an instant says of the calls to come.
func (d *decoder) hint(f *catalog.Function, r *callRecord, args *arguments) {
	c := &acceleratorCall{pid: r.Tgid, tid: r.Tid, f: f, r: r, args: args}
	d.accelerators.names.apply(c)
}

// ended forgets a process, and lets go of its rows.
func (a *accelerators) ended(d *decoder, pid uint32) {
	a.names.ended(pid)
	for key, one := range a.of {
		if key.pid == pid {
			one.times.releaseAll(d)
			a.strange += one.communicators.strange
			delete(a.of, key)
		}
	}
	a.last = nil
}
