package importer

import (
	"bytes"
	"fmt"
	"slices"
)

// Some writers of Chrome's format say where a call begins and where it ends in events of
// their own, B and E, instead of one event X with a duration. Those of one thread nest, in
// the order of the file ("Trace Event Format", Duration Events).

// maxOpen bounds how many events wait for their end: what a hostile file can make of it.
const maxOpen = 1 << 16

// pairs are the events whose end has not come yet, the innermost of a thread last.
type pairs struct {
	open  map[[2]int64][]fields
	count int
}

// begin keeps an event until its end; false if there are too many already.
func (p *pairs) begin(thread [2]int64, f *fields) bool {
	if p.count >= maxOpen {
		return false
	}
	if p.open == nil {
		p.open = map[[2]int64][]fields{}
	}
	// The scanner writes over what it has read.
	kept := *f
	for _, v := range []*[]byte{&kept.cat, &kept.name, &kept.pid, &kept.tid, &kept.ts, &kept.id, &kept.args} {
		*v = bytes.Clone(*v)
	}
	p.open[thread] = append(p.open[thread], kept)
	p.count++
	return true
}

// end makes an event with a duration of the innermost one that an end belongs to: of its
// name, if it has one. Those inside of it have no end, dropped is how many. False where
// none was begun, or the times make no duration.
func (p *pairs) end(thread [2]int64, f *fields) (whole fields, dropped int, ok bool) {
	open := p.open[thread]
	at := len(open) - 1
	for len(f.name) > 0 && at >= 0 && !bytes.Equal(open[at].name, f.name) {
		at--
	}
	if at < 0 {
		return fields{}, 0, false
	}
	whole, dropped = open[at], len(open)-1-at
	clear(open[at:])
	if p.open[thread] = open[:at]; at == 0 {
		delete(p.open, thread)
	}
	p.count -= 1 + dropped
	from, began := micros(whole.ts)
	to, ended := micros(f.ts)
	if !began || !ended || to < from {
		return fields{}, dropped + 1, false
	}
	whole.ph = 'X'
	whole.dur = fmt.Appendf(nil, "%d.%03d", (to-from)/1000, (to-from)%1000)
	if len(whole.args) == 0 {
		whole.args = slices.Clone(f.args)
	}
	return whole, dropped, true
}

const (
	beginAlone = "ph B without its E"
	endAlone   = "ph E without its B"
)

// paired takes one event of a pair.
func (p *kinetoPass) paired(f *fields) error {
	thread := [2]int64{p.number(f.pid), p.number(f.tid)}
	if f.ph == 'B' {
		if !p.pairs.begin(thread, f) {
			p.leave(beginAlone, 1)
		}
		return nil
	}
	whole, dropped, ok := p.pairs.end(thread, f)
	p.leave(beginAlone, dropped)
	if !ok {
		p.leave(endAlone, 1)
		return nil
	}
	return p.span(&whole)
}

// leave counts events that are not imported, in the first pass.
func (p *kinetoPass) leave(kind string, n int) {
	if p.brief && n > 0 {
		p.left[kind] += int64(n)
	}
}
