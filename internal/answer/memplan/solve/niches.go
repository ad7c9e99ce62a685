package solve

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// niches looks for a plan of one component within a capacity by filling memory
// from below. What is placed ends, over the sections of time, in a skyline; a
// niche is a stretch of it that is lower than both its neighbours. There either a
// block comes to lie next, or the floor is lifted to the lower neighbour and the
// space below is wasted, as in best fit. What a section can still waste is what
// the capacity leaves above its bytes: where that is nothing, something has to
// cover it at once.
//
// Other than search it is free in what it fills next: it takes the section with
// the fewest possibilities, rather one that it failed at before. What was tried at
// a place is excluded there from then on. Each plan can be pushed down into one
// that is reached so; when everything was tried there is none. A failure that has
// nothing to do with the last decision takes that back without trying others.
type niches struct {
	*problem
	rules    preferences
	random   *rand.Rand
	capacity int64
	budget   int64
	nodes    int64
	ctx      context.Context

	height   []int64   // of the skyline, by section
	left     []int64   // by section: bytes that are not placed
	top      []int32   // by section: the block that the skyline lies on, or -1
	starts   [][]int32 // by section: the blocks that begin there
	twin     []int32   // the equal block before this one, or -1
	placed   []bool
	offset   []int64
	excluded []exclusion
	weight   []float64 // by section: how often it had no possibility
	base     []float64 // by block: what it is worth anywhere
	worth    []float64 // likewise, of this run
	unplaced int
	why      stretch // of the last failure

	count  []int32 // scratch by section: blocks that may cover it at the floor
	bytes  []int64 // scratch by section: of blocks that lie within the niche
	lists  []int32 // the candidates of all nodes, one behind the other
	undone []undo
	before []exclusion // likewise, what was excluded before
}

// preferences are how blocks are ordered that are possible at a place.
type preferences struct {
	contention, lifetime, area, size float64 // each of 0 to 1 before it is weighed
	sides                            float64 // for each side that is even with what is beside it
	noise                            float64
	lowest                           bool // fill the lowest niche first, not the one with the fewest possibilities
	seed                             uint64
}

// exclusion is a height at which a block was tried, and the stretch in which that
// failed.
type exclusion struct {
	at  int64
	why stretch
}

// stretch is a range of sections.
type stretch struct{ from, to int32 }

func (s stretch) with(t stretch) stretch { return stretch{min(s.from, t.from), max(s.to, t.to)} }
func (s stretch) meets(from, to int32) bool {
	return s.from < to && from < s.to
}

// undo is what a section was before.
type undo struct {
	section, top int32
	height       int64
}

// niche is a run of sections of equal height between higher ones.
type niche struct {
	begin, end  int32
	floor       int64
	left, right int64 // heights of the walls
}

// plan is what was found: offsets of the blocks with some positions.
func (s *niches) plan() (index []int32, offsets []int64) { return s.index, s.offset }

func (n niche) around() stretch { return stretch{n.begin - 1, n.end + 1} }

const wall = math.MaxInt64 / 2

// nichePreferences are those that found most plans of instances cut from a
// rectangle and of variations of MiniMalloc's.
var nichePreferences = []preferences{
	{lifetime: 1, sides: 0.3, noise: 0.1, lowest: true, seed: 1},
	{lifetime: 1, contention: 3, sides: 0.2, noise: 0.2, seed: 2},
	{area: 1, contention: 10, noise: 0.05, lowest: true, seed: 3},
	{lifetime: 1, size: 0.3, sides: 1, noise: 0.3, seed: 4},
}

// mixedPreferences are others for each seed, always the same.
func mixedPreferences(seed uint64) preferences {
	r := rand.New(rand.NewPCG(seed, 2))
	return preferences{lifetime: r.Float64(), area: r.Float64() * r.Float64(), size: 0.5 * r.Float64() * r.Float64(),
		contention: 3 * r.Float64() * r.Float64(), sides: r.Float64() * r.Float64(), noise: 0.02 + 0.3*r.Float64()*r.Float64(),
		lowest: r.IntN(2) == 0, seed: seed}
}

func newNiches(p *problem, rules preferences) *niches {
	sections, n := len(p.live), len(p.size)
	s := &niches{problem: p, rules: rules, height: make([]int64, sections),
		left: make([]int64, sections), top: make([]int32, sections), starts: make([][]int32, sections), twin: make([]int32, n),
		placed: make([]bool, n), offset: make([]int64, n), excluded: make([]exclusion, n), weight: make([]float64, sections),
		base: make([]float64, n), worth: make([]float64, n), count: make([]int32, sections+1), bytes: make([]int64, sections+1)}
	var most int64
	for _, live := range p.live {
		most = max(most, live)
	}
	for i := range p.size {
		s.starts[p.from[i]] = append(s.starts[p.from[i]], int32(i))
		width := float64(p.to[i]-p.from[i]) / float64(sections)
		size := float64(p.size[i]) / float64(most)
		contention := float64(slices.Max(p.live[p.from[i]:p.to[i]])) / float64(most)
		s.base[i] = rules.contention*contention + rules.lifetime*width + rules.size*size + rules.area*math.Sqrt(width*size)
	}
	for _, blocks := range s.starts {
		slices.SortFunc(blocks, func(a, b int32) int {
			return cmp.Or(cmp.Compare(p.to[b], p.to[a]), cmp.Compare(p.size[b], p.size[a]), cmp.Compare(a, b))
		})
		for at, i := range blocks {
			s.twin[i] = -1
			if at > 0 && p.to[blocks[at-1]] == p.to[i] && p.size[blocks[at-1]] == p.size[i] {
				s.twin[i] = blocks[at-1]
			}
		}
	}
	return s
}

// A search begins again after so many nodes, each time a little later. It has twice
// as many as the other kind.
const (
	firstRestart = 300
	laterRestart = 20 // a twentieth more
	nicheNodes   = 2
)

// run searches within a capacity, for at most so many nodes of search. What it
// does depends on nothing that was before.
func (s *niches) run(ctx context.Context, capacity, budget int64) outcome {
	s.ctx, s.capacity = ctx, capacity
	s.random = rand.New(rand.NewPCG(s.rules.seed, uint64(budget)))
	clear(s.weight)
	for left, most := nicheNodes*budget, int64(firstRestart); left > 0; most += most / laterRestart {
		s.budget = min(most, left)
		left -= s.budget
		if o := s.once(); o != gaveUp || ctx.Err() != nil {
			return o
		}
	}
	return gaveUp
}

// once searches until it has used up its nodes.
func (s *niches) once() outcome {
	s.lists, s.undone, s.before, s.unplaced = s.lists[:0], s.undone[:0], s.before[:0], len(s.placed)
	copy(s.left, s.live)
	for k := range s.height {
		if s.live[k] > s.capacity {
			return exhausted
		}
		s.height[k], s.top[k] = 0, -1
	}
	for i := range s.placed {
		s.placed[i], s.excluded[i].at = false, -1
		s.worth[i] = s.base[i] + s.rules.noise*s.random.Float64()
	}
	return s.next()
}

// next fills a place and all that comes after it.
func (s *niches) next() outcome {
	if s.unplaced == 0 {
		return found
	}
	s.nodes++
	if s.budget--; s.budget < 0 || s.budget&0xff == 0 && s.ctx.Err() != nil {
		return gaveUp
	}
	n, at, ok := s.choose()
	if !ok {
		return exhausted
	}
	why := n.around()
	mark := len(s.lists)
	lifts := s.candidates(n, at, &why)
	list := s.lists[mark:len(s.lists):len(s.lists)]
	tried := 0
	for ; tried < len(list); tried++ {
		i := list[tried]
		o := s.put(n, i)
		if o == gaveUp || o == found {
			return o
		}
		if !s.why.meets(s.from[i], s.to[i]) {
			break // whatever becomes of block i
		}
		why = why.with(s.why)
		s.before = append(s.before, s.excluded[i])
		s.excluded[i] = exclusion{n.floor, s.why.with(n.around())}
	}
	for at := len(list[:tried]) - 1; at >= 0; at-- {
		s.excluded[list[at]] = s.before[len(s.before)-1]
		s.before = s.before[:len(s.before)-1]
	}
	s.lists = s.lists[:mark]
	if tried < len(list) {
		return exhausted
	}
	if lifts {
		o := s.lift(n)
		if o == gaveUp || o == found || !s.why.meets(n.begin, n.end) {
			return o
		}
		why = why.with(s.why)
	}
	if at < 0 {
		at = n.begin
	}
	s.weight[at]++
	s.why = why
	return exhausted
}

// set changes sections; reset takes it back.
func (s *niches) set(begin, end int32, height int64, top int32) {
	for k := begin; k < end; k++ {
		s.undone = append(s.undone, undo{k, s.top[k], s.height[k]})
		s.height[k], s.top[k] = height, top
	}
}

func (s *niches) reset(mark int) {
	for _, u := range s.undone[mark:] {
		s.height[u.section], s.top[u.section] = u.height, u.top
	}
	s.undone = s.undone[:mark]
}

func (s *niches) lift(n niche) outcome {
	mark := len(s.undone)
	s.set(n.begin, n.end, min(n.left, n.right), -1)
	o := s.next()
	s.reset(mark)
	return o
}

func (s *niches) put(n niche, i int32) outcome {
	from, to, mark := s.from[i], s.to[i], len(s.undone)
	s.set(from, to, n.floor+s.size[i], i)
	for k := from; k < to; k++ {
		s.left[k] -= s.size[i]
	}
	s.placed[i], s.offset[i] = true, n.floor
	s.unplaced--
	o := s.next()
	if o == exhausted {
		s.reset(mark)
		for k := from; k < to; k++ {
			s.left[k] += s.size[i]
		}
		s.placed[i] = false
		s.unplaced++
	}
	return o
}

// at is the height of a section as its neighbours see it: where nothing is left
// to be placed it is a wall.
func (s *niches) at(k int32) int64 {
	if k < 0 || int(k) >= len(s.height) || s.left[k] == 0 {
		return wall
	}
	return s.height[k]
}

// choose finds the section that has to be covered at its floor with the fewest
// possibilities, else the niche with the fewest (section -1). It is not ok when
// there is a section without any.
func (s *niches) choose() (best niche, at int32, ok bool) {
	least := math.Inf(1)
	for k := int32(0); int(k) < len(s.height); {
		h := s.at(k)
		if h == wall {
			k++
			continue
		}
		n := niche{begin: k, floor: h, left: s.at(k - 1)}
		for n.end = k + 1; s.at(n.end) == h; n.end++ {
		}
		k = n.end
		n.right = s.at(n.end)
		if n.left < h || n.right < h {
			continue
		}
		section, cost := s.judge(n)
		if cost == 0 {
			return n, section, false
		}
		if s.rules.lowest && cost > 0.5 {
			cost = float64(n.floor) + 2
		}
		if cost < least {
			least, best, at = cost, n, section
		}
	}
	return best, at, true
}

// judge finds a niche's most pressing section, and what it costs to fill it; 0 if
// it cannot be filled, with s.why.
func (s *niches) judge(n niche) (at int32, cost float64) {
	count, bytes := s.count[n.begin:n.end+1], s.bytes[n.begin:n.end+1]
	clear(count)
	clear(bytes)
	deep := min(n.left, n.right) - n.floor
	least := deep // that a section is lifted by if nothing covers it
	var many int32
	for k := n.begin; k < n.end; k++ {
		for _, i := range s.starts[k] {
			if s.placed[i] || s.to[i] > n.end {
				continue
			}
			bytes[k-n.begin] += s.size[i]
			bytes[s.to[i]-n.begin] -= s.size[i]
			least = min(least, s.size[i])
			if s.possible(n, i) {
				count[k-n.begin]++
				count[s.to[i]-n.begin]--
				many++
			}
		}
	}
	at, cost = -1, math.Inf(1)
	var may int32
	var within int64
	for k := n.begin; k < n.end; k++ {
		may += count[k-n.begin]
		within += bytes[k-n.begin]
		slack := s.capacity - n.floor - s.left[k]
		must := slack < least
		if slack < 0 || must && may == 0 || deep < wall/2 && within < deep-slack {
			s.weight[k]++
			s.why = s.because(n)
			return k, 0
		}
		if must {
			if c := float64(may); may == 1 {
				at, cost = k, 0.5
			} else if c /= 1 + s.weight[k]; c < cost {
				at, cost = k, c
			}
		}
	}
	if at >= 0 {
		return at, cost
	}
	return -1, 1e6 + float64(many)
}

// because is what a failure in a niche comes from.
func (s *niches) because(n niche) stretch {
	why := n.around()
	for k := n.begin; k < n.end; k++ {
		for _, i := range s.starts[k] {
			if !s.placed[i] && s.to[i] <= n.end && s.excluded[i].at == n.floor {
				why = why.with(s.excluded[i].why)
			}
		}
	}
	return why
}

// possible reports whether an unplaced block within a niche may lie on its floor.
func (s *niches) possible(n niche, i int32) bool {
	if s.excluded[i].at == n.floor {
		return false
	}
	if t := s.twin[i]; t >= 0 && !s.placed[t] {
		return false // of equal blocks the first one comes first
	}
	// Blocks of the same lifetime lie on one another in the order of their sizes.
	t := s.top[s.from[i]]
	return t < 0 || s.size[t] <= s.size[i] || s.from[t] != s.from[i] || s.to[t] != s.to[i]
}

// candidates puts the blocks on the list that may cover a section, or lie anywhere
// in the niche, the preferred first. It reports whether the niche may be lifted if
// none of them does, and adds to why what keeps others away.
func (s *niches) candidates(n niche, at int32, why *stretch) (lifts bool) {
	mark := len(s.lists)
	deep := min(n.left, n.right) - n.floor
	lifts = at < 0 && deep < wall/2
	for k := n.begin; k < n.end && (at < 0 || k <= at); k++ {
		for _, i := range s.starts[k] {
			if s.placed[i] || s.to[i] > n.end || at >= 0 && s.to[i] <= at {
				continue
			}
			if s.size[i] <= deep {
				lifts = false // it would do no harm below: such a plan is found with it there
			}
			if s.excluded[i].at == n.floor {
				*why = why.with(s.excluded[i].why)
			}
			if s.possible(n, i) {
				s.lists = append(s.lists, i)
			}
		}
	}
	for k := n.begin; lifts && k < n.end; k++ {
		lifts = s.capacity-n.floor-s.left[k] >= deep
	}
	list := s.lists[mark:]
	slices.SortFunc(list, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.score(n, b), s.score(n, a)), cmp.Compare(a, b))
	})
	return lifts
}

// score says how good it is that a block lies in a niche.
func (s *niches) score(n niche, i int32) float64 {
	if s.rules.sides == 0 {
		return s.worth[i]
	}
	var sides float64
	high := n.floor + s.size[i]
	if s.from[i] == n.begin {
		sides++
		if high == n.left {
			sides++
		}
	}
	if s.to[i] == n.end {
		sides++
		if high == n.right {
			sides++
		}
	}
	return s.worth[i] + s.rules.sides*sides
}
