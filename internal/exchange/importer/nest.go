package importer

import (
	"cmp"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Kinds of rows that are no Python function.
const (
	withFLOPs   = -1 // an operator
	runtimeCall = -2
)

// nesting finds, over all rows of a file, who stands in whom on a thread, who
// launched what, and under which Python functions a row stands. It keeps a few
// bytes of each row; rows are numbered in the order of the file.
type nesting struct {
	threads map[[2]int32]*lane
	rows    int
	parents []int32 // by row; -1 is none
	holders []int32 // by allocation or free: the row around it; -1 is none
	chains  []int32 // by row: the Python functions around it; 0 is none
	counted []bool  // by row: its FLOPs are its own, not an enclosing operator's

	launches map[int64]int32 // by correlation
	external map[int64]int32 // operators, by external id

	frames   map[string]int32
	names    []string // of frames
	chainIDs map[[2]int32]int32
	chain    [][2]int32 // parent chain and frame, by chain - 1

	owners   owners
	edges    map[[2]int32][]edge // forward to backward, by thread
	from, to map[int64]int32     // their ends, by the file's id

	durations durations
	crossing  int // rows that end after the row that they began in
	begins    begins
	possible  possible       // when rows can begin
	base      int64          // what the second pass adds to times
	left      map[int32]bool // rows of the host that begin at another time
	pids      map[int32]int

	// Of files that join a launch and its work by an arrow alone, and not by a number.
	arrows map[landing]int64 // id of the arrow that ends there
}

// landing is where an arrow ends: the begin of a row of a device.
type landing struct {
	pid, tid int32
	at       int64
}

// lane are the rows of a thread, in pieces: a slice that grows by doubling would
// need twice the memory.
type lane struct{ pieces [][]place }

type place struct {
	start, end int64
	row        int32 // of an allocation or free: its number from the end, -1, -2, …
	frame      int32 // of a Python function, from 1; 0 is none, or a kind of row
}

const pieceRows = 1 << 14

func newNesting() *nesting {
	return &nesting{
		threads: map[[2]int32]*lane{}, launches: map[int64]int32{}, external: map[int64]int32{},
		frames: map[string]int32{}, chainIDs: map[[2]int32]int32{}, pids: map[int32]int{}, left: map[int32]bool{},
		edges: map[[2]int32][]edge{}, from: map[int64]int32{}, to: map[int64]int32{}, durations: newDurations(), owners: newOwners(),
		arrows: map[landing]int64{},
	}
}

// add takes the next row of the file.
func (n *nesting) add(r *row) {
	i := int32(n.rows)
	n.rows++
	end := r.start + max(r.duration, 0)
	n.begins.add(r.start)
	if r.device {
		n.owners.work(r)
		return
	}
	n.pids[r.pid]++
	n.durations.add(i, r)
	switch r.call.Layer {
	case "runtime":
		n.owners.call(r)
		key := n.owners.key(r.pid, r.correlation)
		if _, known := n.launches[key]; !known && r.correlation != 0 {
			n.launches[key] = i
		}
	case "op":
		n.owners.operating[r.pid]++
		if r.external != 0 {
			n.external[n.owners.key(r.pid, r.external)] = i
		}
	}
	p := place{start: r.start, end: end, row: i}
	if r.call.Layer == "python" {
		p.frame = n.frame(r.call.Name)
	} else if r.candidate {
		p.frame = withFLOPs
	} else if r.call.Layer == "runtime" {
		p.frame = runtimeCall
	}
	n.put([2]int32{r.pid, r.tid}, p)
}

// addMemory takes the next allocation or free of the file.
func (n *nesting) addMemory(m *event.Memory) error {
	n.holders = append(n.holders, -1)
	n.put([2]int32{m.PID, m.TID}, place{start: m.TSNS, end: m.TSNS, row: int32(-len(n.holders))})
	return nil
}

func (n *nesting) put(key [2]int32, p place) {
	l := n.threads[key]
	if l == nil {
		l = &lane{}
		n.threads[key] = l
	}
	if k := len(l.pieces); k == 0 || len(l.pieces[k-1]) == pieceRows {
		l.pieces = append(l.pieces, make([]place, 0, pieceRows))
	}
	k := len(l.pieces) - 1
	l.pieces[k] = append(l.pieces[k], p)
}

func (n *nesting) frame(name string) int32 {
	if id := n.frames[name]; id != 0 {
		return id
	}
	n.names = append(n.names, name)
	n.frames[name] = int32(len(n.names))
	return int32(len(n.names))
}

// finish nests each thread's rows. The rows of a thread are let go afterwards.
func (n *nesting) finish() {
	n.possible = n.begins.window()
	n.owners.settle(n.possible)
	n.parents = make([]int32, n.rows)
	for i := range n.parents {
		n.parents[i] = -1
	}
	n.chains = make([]int32, n.rows)
	n.counted = make([]bool, n.rows)
	for key, l := range n.threads {
		all := slices.Concat(l.pieces...)
		l.pieces = nil
		delete(n.threads, key)
		all = slices.DeleteFunc(all, n.leave)
		n.durations.mend(all, n.possible.last-n.possible.first)
		n.nestMended(all)
		for _, e := range n.edges[key] {
			n.end(e, all)
		}
	}
}

// leave reports whether a row begins at an impossible time.
func (n *nesting) leave(p place) bool {
	if n.possible.has(p.start) {
		return false
	}
	if p.row >= 0 {
		n.left[p.row] = true
	}
	return true
}

func (n *nesting) addEdge(e *edge) error {
	if e.launch && !e.begin {
		n.arrows[landing{e.pid, e.tid, e.ts}] = e.id
		return nil
	}
	key := [2]int32{e.pid, e.tid}
	n.edges[key] = append(n.edges[key], *e)
	return nil
}

// end finds the row that an edge begins or ends at: the innermost that is no
// Python function among those that start then.
func (n *nesting) end(e edge, sorted []place) {
	i, _ := slices.BinarySearchFunc(sorted, e.ts, func(p place, ts int64) int { return cmp.Compare(p.start, ts) })
	for ; i < len(sorted) && sorted[i].start == e.ts; i++ {
		if sorted[i].frame > 0 || sorted[i].row < 0 {
			continue
		}
		if e.begin {
			n.from[e.id] = sorted[i].row
		} else {
			n.to[e.id] = sorted[i].row
		}
	}
}

type openRow struct {
	start, end int64
	row        int32
	chain      int32
	flops      bool // it or a row around it has FLOPs
	// mended rows end no earlier than what began in them, and have room until then for
	// calls of the runtime.
	mended bool
	room   int64
}

// nestMended nests the rows of a thread, twice where the ends of some are not the file's:
// which of them call the runtime is seen from their like.
func (n *nesting) nestMended(all []place) {
	crossing := n.crossing
	n.nest(all)
	if len(n.durations.mended) == 0 {
		return
	}
	n.durations.learn(all, n.parents)
	for _, p := range all {
		if p.row >= 0 {
			n.parents[p.row], n.counted[p.row] = -1, false
		}
	}
	n.crossing = crossing
	n.nest(all)
}

func (n *nesting) nest(all []place) {
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(b.frame, a.frame), cmp.Compare(a.row, b.row))
	})
	var stack []openRow
	for _, p := range all {
		for len(stack) > 0 && stack[len(stack)-1].end <= p.start {
			if top := stack[len(stack)-1]; p.frame == runtimeCall && p.end <= top.room {
				break
			}
			stack = stack[:len(stack)-1]
		}
		if p.row < 0 {
			if len(stack) > 0 {
				n.holders[-p.row-1] = stack[len(stack)-1].row
			}
			continue
		}
		o := openRow{start: p.start, end: p.end, row: p.row, mended: n.durations.mended[p.row]}
		if len(stack) > 0 {
			top, around := &stack[len(stack)-1], int64(math.MaxInt64)
			if k := len(stack) - 2; k >= 0 {
				around = stack[k].end
			}
			if end, is := n.durations.leaves(&p, top); is {
				n.crossing++
				p.end, o.end, o.mended = end, end, true
			}
			if top.mended && !o.mended && p.end > top.end {
				top.end = min(p.end, around)
			}
			if o.mended {
				o.room = min(p.start+n.durations.room(p.row), top.end)
			}
			n.parents[p.row] = top.row
			o.chain, o.flops = top.chain, top.flops
			// Files with whole microseconds let a row end up to one later than
			// the one around it.
			if p.end > top.end {
				if p.end > top.end+1000 && !o.mended {
					n.crossing++
				}
				o.end = top.end
			}
		}
		if p.frame > 0 {
			o.chain = n.chainOf(o.chain, p.frame)
		} else if p.frame == withFLOPs && !o.flops {
			o.flops, n.counted[p.row] = true, true
		}
		n.chains[p.row] = o.chain
		stack = append(stack, o)
	}
}

func (n *nesting) chainOf(parent, frame int32) int32 {
	key := [2]int32{parent, frame}
	if id := n.chainIDs[key]; id != 0 {
		return id
	}
	n.chain = append(n.chain, key)
	n.chainIDs[key] = int32(len(n.chain))
	return int32(len(n.chain))
}

// python lists the functions of a chain, leaf first.
func (n *nesting) python(chain int32) (frames []string) {
	for chain != 0 {
		link := n.chain[chain-1]
		frames = append(frames, n.names[link[1]-1])
		chain = link[0]
	}
	return frames
}

// launcher is the row that launched a device's row, -1 where none is known.
func (n *nesting) launcher(r *row) int32 {
	pid := n.owners.of(r)
	if i, ok := n.launches[n.owners.key(pid, r.correlation)]; ok && r.correlation != 0 && !n.left[i] {
		return i
	}
	if i, ok := n.external[n.owners.key(pid, r.external)]; ok && r.external != 0 && !n.left[i] {
		return i
	}
	if id, ok := n.arrows[landing{r.track[0], r.track[1], r.start - n.base}]; ok {
		if i, ok := n.from[id]; ok {
			return i
		}
	}
	return -1
}

// mainPID is the process that rows of a device without an owner belong to: the one that calls the
// runtime most often, or that runs most operators, or else the one with most rows.
func (n *nesting) mainPID() (pid int32) {
	counts := n.pids
	for _, better := range []map[int32]int{n.owners.calling, n.owners.operating} {
		if len(better) > 0 {
			counts = better
			break
		}
	}
	most := 0
	for p, count := range counts {
		if count > most || count == most && p < pid {
			pid, most = p, count
		}
	}
	return pid
}
