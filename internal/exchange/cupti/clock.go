package cupti

// clock moves CUPTI's times to CLOCK_MONOTONIC. Each batch has a reading of both: between two the clocks drift evenly.
type clock struct {
	before, last reading
	narrow       int64 // what a reading took at the least and at the most
	wide         int64
	readings     int64
}

type reading struct{ cupti, ahead int64 }

// mostReading bounds what a reading can have taken to be one.
const mostReading = 1e9

func (c *clock) read(r record) bool {
	cupti, before, after := int64(r.u64(8)), int64(r.u64(16)), int64(r.u64(24))
	if cupti <= 0 || before <= 0 || after < before || after-before > mostReading {
		return false
	}
	now := reading{cupti, cupti - (before + (after-before)/2)}
	if c.readings == 0 || now.cupti <= c.last.cupti {
		c.before = now
	} else {
		c.before = c.last
	}
	c.last = now
	if c.readings == 0 {
		c.narrow = after - before
	}
	c.narrow, c.wide = min(c.narrow, after-before), max(c.wide, after-before)
	c.readings++
	return true
}

func (c *clock) monotonic(t int64) int64 {
	ahead := c.last.ahead
	switch span := c.last.cupti - c.before.cupti; {
	case t <= c.before.cupti:
		ahead = c.before.ahead
	case t < c.last.cupti && span > 0:
		ahead = c.before.ahead + int64(float64(c.last.ahead-c.before.ahead)*float64(t-c.before.cupti)/float64(span))
	}
	return t - ahead
}
