package accel

// What a job's calls can make the tracer keep. Handles are whatever a job's own library
// says they are: real programs have some thousand at once, and take them back.
const (
	// MaxHandles are kept of one runtime in one process, with the work of its streams
	// that waits for its times.
	MaxHandles = 1 << 18
	// MaxNodes are those of all its graphs.
	MaxNodes = 1 << 21
	// MaxNames are the kernels and executables of one process whose names are kept.
	MaxNames = 1 << 17
	// MaxSplits of communicators are kept until all of their ranks have come, a process
	// pays for MaxSplitsOfProcess of them, and has MaxSplitMembers ranks in them: those
	// of a job that is on other hosts too never finish.
	MaxSplits          = 4096
	MaxSplitsOfProcess = 256
	MaxSplitMembers    = 4096
	// mostTried are the handles kept of which no place that is looked at was theirs.
	mostTried = 1 << 12
	// mostContexts are on the stack of a thread: programs have one or two.
	mostContexts = 1 << 10
	// mostHints are the threads of a process whose next launch was hinted at: no more
	// than have calls at once.
	mostHints = 4096
)

// kept is how much is kept of a runtime.
func (r *runtime) kept() int {
	n := len(r.devices.contexts) + len(r.devices.threads) + len(r.devices.streams) + len(r.devices.numbers) +
		len(r.graphs.streams) + len(r.graphs.events) + len(r.graphs.graph) + len(r.graphs.exec) +
		len(r.memory.blocks) + len(r.communicators.known) + len(r.communicators.groups) + len(r.communicators.pending.waiting) +
		r.communicators.shrunk +
		len(r.lists.blocks) + len(r.times.streams) + len(r.times.events) + len(r.times.orders) + len(r.inner)
	for _, line := range r.times.streams {
		n += len(line.work) + len(line.joins)
	}
	return n
}

// recount is after how many more the nodes of graphs are counted anew: graphs go, too.
const recount = 1 << 16

// count is how many nodes are kept, or some more. A graph and what was made of it
// share them.
func (g *graphs) count() int {
	if g.grown >= recount {
		g.nodes, g.grown = 0, 0
		seen := map[*graphNode]bool{}
		for _, all := range []map[uint64]*captured{g.streams, g.graph, g.exec} {
			for _, one := range all {
				if len(one.nodes) > 0 && !seen[&one.nodes[0]] {
					seen[&one.nodes[0]] = true
					g.nodes += len(one.nodes)
				}
			}
		}
	}
	return g.nodes + g.grown
}

// bound forgets the runtimes of which too much is kept. Their rows go on, as those of a
// job whose beginning was not seen.
func (s *State) bound() {
	for key, one := range s.of {
		if one.kept() <= MaxHandles && one.graphs.count() <= MaxNodes {
			continue
		}
		one.times.flushAll(s.rows)
		s.strange += one.communicators.strange
		s.Forgotten++
		delete(s.of, key)
		s.last = nil
	}
}

// put keeps a kernel's name. A process that has too many begins anew: what is asked
// for again is named again.
func (n *kernelNames) put(key kernelKey, k *kernelName) {
	if _, ok := n.known[key]; !ok {
		if n.ofProcess[key.pid] >= MaxNames {
			n.forget(key.pid)
		}
		n.ofProcess[key.pid]++
	}
	n.known[key] = k
}

// hint keeps the host function of a thread's next launch. Of a process that has too
// many threads with one, those that are there are forgotten.
func (n *kernelNames) hint(pid, tid uint32, stub uint64) {
	of := n.hints[pid]
	if of == nil {
		of = map[uint32]uint64{}
		n.hints[pid] = of
	}
	if len(of) >= mostHints {
		clear(of)
	}
	of[tid] = stub
}

// hinted takes the hint that a thread's launch was given, 0 for none.
func (n *kernelNames) hinted(pid, tid uint32) uint64 {
	stub := n.hints[pid][tid]
	delete(n.hints[pid], tid)
	return stub
}

// remove forgets one name.
func (n *kernelNames) remove(key kernelKey) {
	delete(n.known, key)
	n.ofProcess[key.pid]--
}

// forget drops the names of a process.
func (n *kernelNames) forget(pid uint32) {
	for key := range n.known {
		if key.pid == pid {
			delete(n.known, key)
		}
	}
	delete(n.ofProcess, pid)
}

// push puts a context onto a thread's stack. Of one that is pushed onto without end
// the oldest half goes: it is never popped again, or popped as one that is not known.
func (t *currentDevice) push(context uint64) {
	if len(t.contexts) >= mostContexts {
		t.contexts = append(t.contexts[:0], t.contexts[mostContexts/2:]...)
	}
	t.contexts = append(t.contexts, context)
}

// learns counts what is kept of a process's executables, taken back or not: beyond
// MaxNames it begins anew.
func (x *Executables) learns(pid uint32) {
	if x.learnt[pid] >= MaxNames {
		x.Ended(pid)
	}
	x.learnt[pid]++
}
