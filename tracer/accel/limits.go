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
	// mostMembers of a split are waited for: more ranks than any job has.
	mostMembers = 1 << 16
)

// kept is how much is kept of a runtime.
func (r *runtime) kept() int {
	n := len(r.devices.contexts) + len(r.devices.threads) + len(r.devices.streams) + len(r.devices.numbers) +
		len(r.graphs.streams) + len(r.graphs.events) + len(r.graphs.graph) + len(r.graphs.exec) +
		len(r.memory.blocks) + len(r.communicators.known) + len(r.communicators.groups) + len(r.communicators.promised.waiting) +
		len(r.lists.blocks) + len(r.times.streams) + len(r.times.events) + len(r.times.orders) + len(r.inner)
	for _, line := range r.times.streams {
		n += len(line.work)
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
		one.times.releaseAll(s.rows)
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
	if len(n.hints) > MaxNames {
		clear(n.hints)
	}
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

// learns counts what is kept of a process's executables, taken back or not: beyond
// MaxNames it begins anew.
func (x *Executables) learns(pid uint32) {
	if x.learnt[pid] >= MaxNames {
		x.Ended(pid)
	}
	x.learnt[pid]++
}
