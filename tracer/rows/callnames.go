package rows

import (
	"github.com/ebpfprof/ebpfprof/tracer/cache"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// MaxNames are the names that calls were given at run time, kept so that their spans
// share them: those that came last.
const MaxNames = 1 << 16

// CallNames are calls that got another name or category than their probe's, one for all
// of their spans.
type CallNames struct {
	named cache.Recent[callName, *event.Call]
}

type callName struct {
	spec     uint32
	category string
	name     string
}

func newCallNames() CallNames {
	return CallNames{cache.NewRecent[callName, *event.Call](MaxNames)}
}

// Name returns a call like base with another name, the same one each time.
func (n *CallNames) Name(spec uint32, base *event.Call, name string) *event.Call {
	return n.of(callName{spec, base.Category, name}, base)
}

// Recategorize returns a call like base of another category, the same one each time.
func (n *CallNames) Recategorize(spec uint32, base *event.Call, category string) *event.Call {
	return n.of(callName{spec, category, base.Name}, base)
}

func (n *CallNames) of(key callName, base *event.Call) *event.Call {
	call, ok := n.named.Get(key)
	if !ok {
		copied := *base
		copied.Category, copied.Name = key.category, key.name
		call = &copied
		n.named.Put(key, call)
	}
	return call
}
