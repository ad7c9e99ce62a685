package site

import "fmt"

// Possible numbers of sites passed on the way to an instruction, as a set.
const (
	countZero uint8 = 1 << iota
	countOne
	countMore
)

// passed is the set of counts after one more site.
func passed(c uint8) uint8 { return c&countZero<<1 | (c&countOne|c&countMore>>1)<<1 }

// check confirms that every normal return passes exactly one of sites exactly
// once. It shares no algorithm with the selector: it propagates, instruction
// by instruction, the set of counts with which each may be reached, from the
// entry and from every place that only unseen control can enter.
//
// A landing pad is entered by an exception from any call that may throw, with
// the counts that call may have; so where a call after a site may throw into
// a landing pad that returns normally, the plan is refused.
func (p *program) check(sites []int32) error {
	c := checker{program: p, before: make([]uint8, len(p.ins)), site: make([]bool, len(p.ins))}
	for _, i := range sites {
		c.site[i] = true
	}
	c.enter(0, countZero)
	c.findRoots()
	for {
		thrown := c.thrown
		for _, r := range c.roots {
			c.enter(r, countZero|thrown)
		}
		if c.thrown == thrown {
			break
		}
	}
	exits := 0
	for i := range p.ins {
		set := c.before[i]
		if set == 0 {
			continue
		}
		if _, tail := p.tail[int32(i)]; !tail && p.ins[i].flow != flowReturn {
			continue
		}
		exits++
		if c.site[i] {
			set = passed(set)
		}
		if set != countOne {
			return fmt.Errorf("%w: the exit at %#x may be reached past another number of sites than one", ErrUnproven, p.addr(int32(i)))
		}
	}
	if exits == 0 {
		return ErrNeverReturns
	}
	return nil
}

type checker struct {
	*program
	before []uint8
	site   []bool
	roots  []int32
	thrown uint8 // counts at calls that may throw
	work   []int32
}

// enter adds counts to instruction i and propagates them.
func (c *checker) enter(i int32, set uint8) {
	c.add(i, set)
	for len(c.work) > 0 {
		i := c.work[len(c.work)-1]
		c.work = c.work[:len(c.work)-1]
		out := c.before[i]
		if c.site[i] {
			out = passed(out)
		}
		if c.ins[i].throws {
			c.thrown |= out
		}
		c.succ(i, func(j int32) { c.add(j, out) })
	}
}

func (c *checker) add(i int32, set uint8) {
	if c.before[i]|set != c.before[i] {
		c.before[i] |= set
		c.work = append(c.work, i)
	}
}

// findRoots enters every instruction that nothing known leads to, but for
// padding; then whatever is left, such as a loop that is never entered.
func (c *checker) findRoots() {
	into := make([]bool, len(c.ins))
	for i := range c.ins {
		c.succ(int32(i), func(j int32) { into[j] = into[j] || !c.ins[i].nop || c.before[i] != 0 })
	}
	for _, orphan := range []bool{true, false} {
		for i := range c.ins {
			if c.before[i] != 0 || c.ins[i].nop || orphan && into[i] {
				continue
			}
			c.roots = append(c.roots, int32(i))
			c.enter(int32(i), countZero)
		}
	}
}
