package site

import (
	"fmt"
	"math"
	"slices"
	"sync"
)

// exit is how a block ends a call normally.
type exit uint8

const (
	exitNone     exit = iota
	exitReturn        // a return instruction
	exitTail          // a direct jump to another function
	exitTailCond      // a conditional one; the block also has a successor
	exitTailSlot      // a jump through a function pointer with the frame gone
)

// program is a function's instructions and the edges between them.
type program struct {
	fn     *Function
	frags  []Fragment // the body, then the cold parts
	first  []int32    // index in ins of each fragment's first instruction; len(frags)+1
	ins    []insn
	at     [][]int32         // per fragment, instruction index per offset or -1
	tables map[int32][]int32 // jump-table targets per indirect jump
	tail   map[int32]exit    // exits that are not return instructions
	states []state           // stack state before each instruction
	seen   []bool            // states: reached from the entry
}

// programs keeps the slices of finished programs: planning thousands of
// functions would otherwise be mostly allocation.
var programs = sync.Pool{New: func() any { return new(program) }}

// everything asks newProgram for all that is known of each instruction.
const everything = math.MaxInt

// newProgram decodes all of the function's code, but from offset full of each
// fragment on only the branches. The caller releases it.
func newProgram(f *Function, full int) (*program, error) {
	if len(f.Code) == 0 {
		return nil, fmt.Errorf("%w: empty function", ErrUndecodable)
	}
	p := programs.Get().(*program)
	p.fn = f
	p.frags = append(append(p.frags[:0], Fragment{f.Address, f.Code}), f.Cold...)
	p.ins = p.ins[:0]
	p.first = append(p.first[:0], 0)
	p.at = p.at[:0]
	for k := 0; k < len(p.frags); k++ {
		if err := p.decodeFragment(k, full); err != nil {
			p.release()
			return nil, err
		}
		if f.Part != nil {
			p.addParts(p.first[k])
		}
	}
	return p, nil
}

// release gives the program's memory to the next one.
func (p *program) release() {
	p.fn = nil
	clear(p.frags)
	clear(p.tables)
	clear(p.tail)
	programs.Put(p)
}

// decodeFragment decodes fragment k, the next one.
func (p *program) decodeFragment(k, full int) error {
	fr := p.frags[k]
	from := len(p.ins)
	var err error
	if p.ins, err = decodeAll(p.fn.Arch, fr, p.ins, full); err != nil {
		return err
	}
	var at []int32
	if k < cap(p.at) {
		at = p.at[:k+1][k]
	}
	at = slices.Grow(at[:0], len(fr.Code))[:len(fr.Code)]
	for i := range at {
		at[i] = -1
	}
	for i := from; i < len(p.ins); i++ {
		at[p.ins[i].off] = int32(i)
	}
	p.at = append(p.at, at)
	p.first = append(p.first, int32(len(p.ins)))
	return nil
}

// maxParts bounds the pieces that one function is put together from.
const maxParts = 16

// addParts appends the cold parts that the instructions from index i on jump
// to.
func (p *program) addParts(i int32) {
	for ; int(i) < len(p.ins); i++ {
		in := &p.ins[i]
		if in.flow != flowJump && in.flow != flowCond || p.inside(in.target) ||
			len(p.frags) > maxParts || p.fn.noReturn(in.target) || p.fn.starts(in.target) {
			continue
		}
		if fr, ok := p.fn.Part(in.target); ok && !p.fn.starts(fr.Address) && in.target-fr.Address < uint64(len(fr.Code)) {
			p.frags = append(p.frags, fr)
		}
	}
}

// inside reports whether addr is in a fragment, decoded or not.
func (p *program) inside(addr uint64) bool {
	for _, fr := range p.frags {
		if addr-fr.Address < uint64(len(fr.Code)) {
			return true
		}
	}
	return false
}

// find returns the instruction at a virtual address: -1 where the address is
// outside the known code, -2 where it is inside an instruction.
func (p *program) find(addr uint64) int32 {
	for k := range p.at {
		fr := &p.frags[k]
		if off := addr - fr.Address; off < uint64(len(fr.Code)) {
			if i := p.at[k][off]; i >= 0 {
				return i
			}
			return -2
		}
	}
	return -1
}

// fragment returns the index of the fragment that holds instruction i.
func (p *program) fragment(i int32) int {
	k := 0
	for k+2 < len(p.first) && p.first[k+1] <= i {
		k++
	}
	return k
}

// addr returns the virtual address of instruction i.
func (p *program) addr(i int32) uint64 {
	return p.frags[p.fragment(i)].Address + uint64(p.ins[i].off)
}

// ends reports whether control never passes to the next instruction in memory.
func (in *insn) ends() bool {
	return !in.goesOn() || in.never
}

// resolve classifies every branch of the function, or says why it cannot.
func (p *program) resolve() error {
	if p.tail == nil {
		p.tail, p.tables = map[int32]exit{}, map[int32][]int32{}
	}
	for i := range p.ins {
		in := &p.ins[i]
		in.to = -1
		switch in.flow {
		case flowCallIndirect:
			in.throws = true
		case flowCall:
			in.never, in.throws = p.fn.noReturn(in.target), !p.fn.quiet(in.target)
		}
		if in.flow != flowJump && in.flow != flowCond {
			continue
		}
		switch in.to = p.find(in.target); {
		case in.to == -2:
			return fmt.Errorf("%w: branch into an instruction at %#x", ErrUndecodable, p.addr(int32(i)))
		case in.to >= 0:
		case p.fn.noReturn(in.target):
		case !p.fn.starts(in.target):
			return fmt.Errorf("%w at %#x to %#x", ErrLeavesFunction, p.addr(int32(i)), in.target)
		case in.flow == flowJump:
			p.tail[int32(i)] = exitTail
		default:
			p.tail[int32(i)] = exitTailCond
		}
	}
	for k := range p.frags { // code that runs off its end
		last := p.first[k+1] - 1
		if last >= p.first[k] && !p.ins[last].ends() && p.ins[last].flow != flowCall && p.ins[last].flow != flowCallIndirect && !p.ins[last].nop {
			return fmt.Errorf("%w: no branch at its end", ErrUndecodable)
		}
	}
	return p.resolveIndirect()
}

// succ calls f for every instruction that may follow instruction i within the
// known code.
func (p *program) succ(i int32, f func(int32)) {
	in := &p.ins[i]
	if in.to >= 0 {
		f(in.to)
	}
	if in.flow == flowJumpIndirect {
		for _, t := range p.tables[i] {
			f(t)
		}
	}
	if !in.ends() && p.first[p.fragment(i)+1] > i+1 {
		f(i + 1)
	}
}

// track computes the stack state before every instruction reachable from the
// entry. It iterates: two paths that disagree leave the state unknown.
func (p *program) track() {
	p.states = slices.Grow(p.states[:0], len(p.ins))[:len(p.ins)]
	p.seen = slices.Grow(p.seen[:0], len(p.ins))[:len(p.ins)]
	clear(p.seen)
	p.states[0] = state{spKnown: true}
	p.seen[0] = true
	work := []int32{0}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		out := p.states[i].step(&p.ins[i])
		p.succ(i, func(j int32) {
			n := out
			if p.seen[j] {
				n = p.states[j].meet(out)
				if n == p.states[j] {
					return
				}
			}
			p.states[j], p.seen[j] = n, true
			work = append(work, j)
		})
	}
}

// block is a run of instructions entered at its first and left at its last.
type block struct {
	first, last int32 // inclusive
	exit        exit
	reached     bool // from the entry
	root        bool // the entry, or where unseen control (the unwinder) enters
	returns     bool // leads to a normal return
	loop        bool // lies on a cycle
	cold        bool // outside the body
	succ, pred  []int32
}

// graph is a function's control-flow graph.
type graph struct {
	*program
	blocks []block
	of     []int32 // block of each instruction
}

// newGraph cuts the program into blocks and works out their edges.
func newGraph(p *program) *graph {
	n := len(p.ins)
	lead := make([]bool, n+1)
	for _, s := range p.first {
		lead[s] = true
	}
	for i := range p.ins {
		in := &p.ins[i]
		switch in.flow {
		case flowJump, flowCond:
			if in.to >= 0 {
				lead[in.to] = true
			}
			lead[i+1] = true
		case flowJumpIndirect:
			for _, t := range p.tables[int32(i)] {
				lead[t] = true
			}
			lead[i+1] = true
		default:
			if in.ends() {
				lead[i+1] = true
			}
		}
	}
	g := &graph{program: p, of: make([]int32, n)}
	for i := 0; i < n; i++ {
		if lead[i] {
			g.blocks = append(g.blocks, block{first: int32(i), cold: int32(i) >= p.first[1]})
		}
		b := len(g.blocks) - 1
		g.of[i] = int32(b)
		g.blocks[b].last = int32(i)
	}
	for b := range g.blocks {
		bl := &g.blocks[b]
		if p.ins[bl.last].flow == flowReturn {
			bl.exit = exitReturn
		} else if e, ok := p.tail[bl.last]; ok {
			bl.exit = e
		}
		p.succ(bl.last, func(t int32) {
			if s := g.of[t]; !slices.Contains(bl.succ, s) {
				bl.succ = append(bl.succ, s)
			}
		})
	}
	g.dropPadding()
	for b := range g.blocks {
		for _, s := range g.blocks[b].succ {
			g.blocks[s].pred = append(g.blocks[s].pred, int32(b))
		}
	}
	g.findRoots()
	g.findReturns()
	g.findLoops()
	return g
}

// dropPadding cuts the edges of the nops that align the block after a jump:
// nothing reaches them.
func (g *graph) dropPadding() {
	target := make([]bool, len(g.blocks))
	for b := range g.blocks {
		bl := &g.blocks[b]
		for _, s := range bl.succ {
			target[s] = true
		}
	}
	for b := range g.blocks {
		if b == 0 || target[b] {
			continue
		}
		pad := true
		for i := g.blocks[b].first; i <= g.blocks[b].last && pad; i++ {
			pad = g.ins[i].nop
		}
		if pad {
			g.blocks[b].succ = nil
		}
	}
}

// findRoots marks what the entry reaches. What it does not reach and nothing
// else leads to must be entered by the unwinder, as a landing pad is: a root.
func (g *graph) findRoots() {
	live := make([]bool, len(g.blocks))
	var work []int32
	from := func(b int32) {
		live[b] = true
		work = append(work[:0], b)
		for len(work) > 0 {
			b := work[len(work)-1]
			work = work[:len(work)-1]
			for _, s := range g.blocks[b].succ {
				if !live[s] {
					live[s] = true
					work = append(work, s)
				}
			}
		}
	}
	from(0)
	g.blocks[0].root = true
	for b := range g.blocks {
		g.blocks[b].reached = live[b]
	}
	for _, orphan := range []bool{true, false} {
		for b := range g.blocks {
			if !live[b] && (!orphan || len(g.blocks[b].pred) == 0) {
				g.blocks[b].root = true
				from(int32(b))
			}
		}
	}
}

// findReturns marks the blocks that lead to a normal return.
func (g *graph) findReturns() {
	var work []int32
	for b := range g.blocks {
		if g.blocks[b].exit != exitNone {
			g.blocks[b].returns = true
			work = append(work, int32(b))
		}
	}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		for _, q := range g.blocks[b].pred {
			if !g.blocks[q].returns {
				g.blocks[q].returns = true
				work = append(work, q)
			}
		}
	}
}

// findLoops marks the blocks that lie on a cycle: the strongly connected
// components of more than one block, and blocks that follow themselves
// (Tarjan, without recursion).
func (g *graph) findLoops() {
	n := len(g.blocks)
	order := make([]int32, n) // visit number, 0 for unvisited
	low := make([]int32, n)
	on := make([]bool, n)
	type frame struct{ b, next int32 }
	var stack []int32
	var frames []frame
	var count int32
	for start := range g.blocks {
		if order[start] != 0 {
			continue
		}
		frames = append(frames[:0], frame{int32(start), 0})
		for len(frames) > 0 {
			f := &frames[len(frames)-1]
			b := f.b
			if f.next == 0 {
				count++
				order[b], low[b], on[b] = count, count, true
				stack = append(stack, b)
			}
			if int(f.next) < len(g.blocks[b].succ) {
				s := g.blocks[b].succ[f.next]
				f.next++
				if s == b {
					g.blocks[b].loop = true
				}
				if order[s] == 0 {
					frames = append(frames, frame{s, 0})
				} else if on[s] {
					low[b] = min(low[b], order[s])
				}
				continue
			}
			if f.next == 0 {
				f.next = 1 // no successors
			}
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				q := frames[len(frames)-1].b
				low[q] = min(low[q], low[b])
			}
			if low[b] != order[b] {
				continue
			}
			top := len(stack) - 1
			many := stack[top] != b
			for {
				s := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				on[s] = false
				if many {
					g.blocks[s].loop = true
				}
				if s == b {
					break
				}
			}
		}
	}
}
