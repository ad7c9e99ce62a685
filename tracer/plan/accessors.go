package plan

import (
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// accessors are functions of a library whose code tells where an object has a member
// (catalog.Value.Member), by their symbols.
type accessors map[string]*accessor

type accessor struct {
	symbol elf.Symbol
	there  bool
	offset int16
	known  bool
}

func (a accessors) want(symbol string) {
	if symbol != "" && a[symbol] == nil {
		a[symbol] = &accessor{}
	}
}

func (a accessors) found(s elf.Symbol) {
	if one := a[s.Name]; one != nil && !s.Indirect {
		one.symbol, one.there = s, true
	}
}

// look reads the code of those that were found.
func (a accessors) look(p *planner) {
	for _, one := range a {
		if one.there {
			one.offset, one.known = site.Member(p.code(one.symbol))
		}
	}
}

func (a accessors) offset(symbol string) (offset int16, ok bool) {
	one := a[symbol]
	if one == nil {
		return 0, false
	}
	return one.offset, one.known
}
