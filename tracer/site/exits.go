package site

// calls ranks what a block may still call before the function returns.
type calls uint8

const (
	callsNone     calls = iota // nothing, or only Leaf functions
	callsDirect                // functions known by address: destructors
	callsIndirect              // anything: the operator's own work
)

// PlanExits returns instructions of which every normal return passes exactly
// one, exactly once, as late as possible. Exceptions that leave the function
// pass none, unless they are thrown after the site.
//
// All 3,110 at::_ops calls of the PyTorch 2.15 wheel and 2,951 of 2,952 of
// Debian's 1.13 have such sites. Run live, entries and exits of both agree
// call by call, and of calls that threw exactly the exits are missing.
//
// The sites are emulated instructions on no loop, with no indirect call
// between them and the return. With allowStepped an exit that has none takes
// its own return (or tail jump) instruction, which is single-stepped.
//
// Errors: ErrUndecodable, ErrIndirectJump, ErrLeavesFunction, ErrNeverReturns,
// ErrNoExitSite, ErrUnproven.
func PlanExits(f Function, allowStepped bool) ([]Exit, error) {
	return planExits(f, allowStepped, toReturn)
}

// PlanResults is PlanExits, with single-stepped sites, for a call whose results
// are read out of memory at its exit: between a site and the return nothing is
// called and nothing written but the function's own frame.
func PlanResults(f Function) ([]Exit, error) { return planExits(f, true, toResults) }

// PlanEnds is PlanExits, with single-stepped sites, for a function of which nothing is known: from a site on nothing is
// called, but by a jump that is its end, and no loop begins.
func PlanEnds(f Function) ([]Exit, error) { return planExits(f, true, toEnd) }

// PlanReturned is PlanEnds for a call whose returned value is read at its exit: from a site on nothing is written to the
// register that has it. A function that ends in a jump to another has no
// such site: ErrTailCall.
func PlanReturned(f Function) ([]Exit, error) {
	exits, err := planExits(f, true, toReturned)
	for _, e := range exits {
		if e.TailCall {
			return nil, ErrTailCall
		}
	}
	return exits, err
}

// purpose is what must be in place at an exit site.
type purpose uint8

const (
	toReturn   purpose = iota // nothing
	toResults                 // what the call leaves in memory
	toEnd                     // all that the call does
	toReturned                // likewise, and the returned value
)

// returnRegister has the returned value.
var returnRegister = [...]uint32{AMD64: maskAX, ARM64: 1 << 0}

func planExits(f Function, allowStepped bool, to purpose) ([]Exit, error) {
	p, err := newProgram(&f, everything)
	if err != nil {
		return nil, err
	}
	defer p.release()
	if err := p.resolve(); err != nil {
		return nil, err
	}
	s := newSelector(newGraph(p), to)
	if !s.blocks[0].returns {
		return nil, ErrNeverReturns
	}
	sites, err := s.plan(allowStepped)
	if err != nil {
		return nil, err
	}
	exits := make([]Exit, len(sites))
	for k, i := range sites {
		exits[k] = s.describe(i)
	}
	return exits, nil
}

// plan tries the kinds of sites from the cheapest to the most expensive and returns the
// first set that the checker confirms.
func (s *selector) plan(allowStepped bool) ([]int32, error) {
	err := ErrNoExitSite
	for kind := cheapSites; kind <= exitInstructions; kind++ {
		if kind >= mixedSites && !allowStepped {
			break
		}
		s.choose(kind)
		sites, ok := s.latest()
		if !ok {
			continue
		}
		if len(sites) > 1 {
			if one := s.single(sites); one != nil {
				return one, nil
			}
		}
		if err = s.check(sites); err == nil {
			return sites, nil
		}
	}
	return nil, err
}

// siteKind is a choice of what may be a site.
type siteKind uint8

const (
	cheapSites       siteKind = iota // emulated instructions
	quietSites                       // the same, with no call after them that may throw
	mixedSites                       // where an exit has none, its own instruction
	exitInstructions                 // the exit instructions only
)

// choose fills in the candidates.
func (s *selector) choose(kind siteKind) {
	for b := range s.blocks {
		bl := &s.blocks[b]
		c := candidate{at: -1}
		if kind != exitInstructions {
			c = s.candidate(int32(b))
		}
		if kind == quietSites && c.calls != callsNone {
			c.at = -1
		}
		if kind >= mixedSites && c.at < 0 && bl.exit != exitNone && bl.exit != exitTailCond &&
			!bl.cold && !bl.loop && s.ins[bl.last].grade != gradeRefused {
			c = candidate{at: bl.last}
		}
		s.cand[b] = c
	}
}

// candidate is the latest instruction of a block that may be a site.
type candidate struct {
	at    int32 // -1 for none
	calls calls // what is called from the site on
}

// selector chooses sites: per block at most one, so that the blocks are cut
// into those before and those after a site.
type selector struct {
	*graph
	purpose
	after []calls // per block, what is called after its end on the way to a return
	cand  []candidate
	done  []bool // per block: a site has been passed before its first instruction
	left  []bool // per block: a site has been passed after its last instruction
	work  []int32
}

func newSelector(g *graph, to purpose) *selector {
	s := &selector{graph: g, purpose: to, after: make([]calls, len(g.blocks)), cand: make([]candidate, len(g.blocks))}
	s.rankCalls()
	return s
}

// callsOf ranks one instruction. A direct tail call counts as none: its jump is
// a cheap site itself, and what it throws does not come back to this function.
func (s *selector) callsOf(i int32) calls {
	in := &s.ins[i]
	if s.purpose >= toEnd && in.flow == flowCall || s.purpose == toReturned && in.writes&returnRegister[s.fn.Arch] != 0 {
		return callsIndirect
	}
	if s.purpose == toResults && (in.store > storeSP || in.flow == flowCall) {
		return callsIndirect // as bad: a result may be written there
	}
	switch in.flow {
	case flowCallIndirect:
		return callsIndirect
	case flowJumpIndirect:
		if s.tail[i] == exitTailSlot {
			return callsIndirect
		}
	case flowCall:
		if in.throws {
			return callsDirect
		}
	}
	return callsNone
}

// rankCalls finds, for each block, what may be called after it on a way to a
// normal return.
func (s *selector) rankCalls() {
	in := make([]calls, len(s.blocks)) // from the block's first instruction on
	for b := range s.blocks {
		bl := &s.blocks[b]
		for i := bl.first; i <= bl.last; i++ {
			in[b] = max(in[b], s.callsOf(i))
		}
		if s.purpose >= toEnd && bl.loop {
			in[b] = callsIndirect // as bad: it takes time
		}
	}
	for changed := true; changed; {
		changed = false
		for b := len(s.blocks) - 1; b >= 0; b-- {
			if !s.blocks[b].returns {
				continue
			}
			for _, n := range s.blocks[b].succ {
				if s.blocks[n].returns && in[n] > s.after[b] {
					s.after[b] = in[n]
					in[b] = max(in[b], in[n])
					changed = true
				}
			}
		}
	}
}

// candidate returns the latest cheap instruction of block b with no indirect
// call after it.
func (s *selector) candidate(b int32) candidate {
	bl := &s.blocks[b]
	if bl.loop || bl.cold || !bl.returns {
		return candidate{at: -1}
	}
	if s.ins[bl.last].grade == gradeEmulated && s.tail[bl.last] == exitTailSlot {
		return candidate{at: bl.last} // arm64: a register branch is simulated
	}
	rank := s.after[b]
	for i := bl.last; i >= bl.first; i-- {
		in := &s.ins[i]
		rank = max(rank, s.callsOf(i))
		if rank == callsIndirect {
			break
		}
		if in.grade == gradeEmulated {
			return candidate{i, rank}
		}
	}
	return candidate{at: -1}
}

// latest places sites as late as possible. Every exit must have been counted;
// a block that must be counted at its end and holds no candidate must be
// counted before its start, hence at the end of all its predecessors, hence at
// the start of all their other successors. The closure of these demands is
// the least one, so it fails only where no placement exists.
func (s *selector) latest() ([]int32, bool) {
	s.done = make([]bool, len(s.blocks))
	s.left = make([]bool, len(s.blocks))
	s.work = s.work[:0]
	for b := range s.blocks {
		if s.blocks[b].exit != exitNone {
			s.demandEnd(int32(b))
		}
	}
	for len(s.work) > 0 {
		b := s.work[len(s.work)-1]
		s.work = s.work[:len(s.work)-1]
		bl := &s.blocks[b]
		if s.done[b] {
			if bl.root {
				return nil, false
			}
			for _, q := range bl.pred {
				s.demandEnd(q)
			}
		}
		for _, n := range bl.succ {
			if s.blocks[n].returns {
				s.demandStart(n)
			}
		}
	}
	var sites []int32
	for b := range s.blocks {
		if s.left[b] && !s.done[b] {
			sites = append(sites, s.cand[b].at)
		}
	}
	return sites, true
}

func (s *selector) demandEnd(b int32) {
	if s.left[b] {
		return
	}
	s.left[b] = true
	if s.cand[b].at < 0 {
		s.done[b] = true
	}
	s.work = append(s.work, b)
}

func (s *selector) demandStart(b int32) {
	if s.done[b] {
		return
	}
	s.done[b], s.left[b] = true, true
	s.work = append(s.work, b)
}

// single looks for one site in place of several that costs nothing: the
// nearest candidate that dominates them all, with no more calls after it.
func (s *selector) single(sites []int32) []int32 {
	idom := s.dominators()
	var rank calls
	at := int32(-1)
	for _, i := range sites {
		b := s.of[i]
		if !s.blocks[b].reached || s.ins[i].grade != gradeEmulated {
			return nil
		}
		rank = max(rank, s.cand[b].calls)
		at = nearest(idom, at, b)
	}
	for b := at; b >= 0; b = idom[b] {
		if c := s.cand[b]; c.at >= 0 && c.calls <= rank && s.check([]int32{c.at}) == nil {
			return []int32{c.at}
		}
		if b == 0 {
			break
		}
	}
	return nil
}

// describe turns the chosen instruction i into an Exit.
func (s *selector) describe(i int32) Exit {
	in := &s.ins[i]
	e := Exit{Offset: uint64(in.off), Cost: CostStepped, CallsAfter: s.cand[s.of[i]].calls != callsNone}
	if in.grade == gradeEmulated {
		e.Cost = CostEmulated
	}
	if s.seen[i] && s.states[i].spKnown {
		e.Displacement, e.DisplacementKnown = s.states[i].sp, true
	}
	e.TailCall = s.leadsToTail(s.of[i])
	e.Reason = s.reasonExit(i)
	return e
}

// leadsToTail reports whether a call may end in a tail call after block b.
func (s *selector) leadsToTail(b int32) bool {
	seen := make([]bool, len(s.blocks))
	for work := []int32{b}; len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if x := s.blocks[b].exit; x != exitNone && x != exitReturn {
			return true
		}
		for _, n := range s.blocks[b].succ {
			if !seen[n] {
				seen[n] = true
				work = append(work, n)
			}
		}
	}
	return false
}

// dominators returns the immediate dominator of every block reached from the
// entry (Cooper, Harvey, Kennedy), -1 of the others.
func (s *selector) dominators() []int32 {
	n := len(s.blocks)
	post := make([]int32, n)
	idom := make([]int32, n)
	for i := range idom {
		idom[i], post[i] = -1, -1
	}
	order := s.postorder()
	for k, b := range order {
		post[b] = int32(k)
	}
	idom[0] = 0
	for changed := true; changed; {
		changed = false
		for k := len(order) - 2; k >= 0; k-- {
			b := order[k]
			best := int32(-1)
			for _, q := range s.blocks[b].pred {
				if idom[q] < 0 {
					continue
				}
				if best < 0 {
					best = q
					continue
				}
				for x := q; x != best; {
					for post[x] < post[best] {
						x = idom[x]
					}
					for post[best] < post[x] {
						best = idom[best]
					}
				}
			}
			if best >= 0 && idom[b] != best {
				idom[b] = best
				changed = true
			}
		}
	}
	return idom
}

// postorder lists the blocks reached from the entry, each after its
// successors; the entry is last.
func (s *selector) postorder() []int32 {
	var order []int32
	seen := make([]bool, len(s.blocks))
	type frame struct {
		b    int32
		next int
	}
	stack := []frame{{0, 0}}
	seen[0] = true
	for len(stack) > 0 {
		f := &stack[len(stack)-1]
		if f.next < len(s.blocks[f.b].succ) {
			n := s.blocks[f.b].succ[f.next]
			f.next++
			if !seen[n] {
				seen[n] = true
				stack = append(stack, frame{n, 0})
			}
			continue
		}
		order = append(order, f.b)
		stack = stack[:len(stack)-1]
	}
	return order
}

// nearest returns the nearest common dominator of a and b; a of -1 is none.
func nearest(idom []int32, a, b int32) int32 {
	if a < 0 {
		return b
	}
	up := map[int32]bool{}
	for x := a; ; x = idom[x] {
		up[x] = true
		if x == 0 {
			break
		}
	}
	for !up[b] {
		b = idom[b]
	}
	return b
}
