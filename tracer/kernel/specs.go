package kernel

import (
	"cmp"
	"fmt"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// Reference is the entry of the probe table that counts what the budget takes for a
// step; the probes of files end below.
func (k *Programs) Reference() uint32 { return uint32(cmp.Or(k.sizes.Probes, MaxSpecs)) }

// OpenSpecs are the probes whose calls and scopes are open, with some that have ended
// unseen.
func (k *openCalls) OpenSpecs() (map[uint32]bool, error) {
	open := map[uint32]bool{}
	var tid uint32
	var state bpf.CallThreadState
	threads := k.call.Maps["threads"].Iterate()
	for threads.Next(&tid, &state) {
		for _, f := range state.Frame[:min(int(state.Depth), len(state.Frame))] {
			open[f.Spec] = true
		}
	}
	if err := threads.Err(); err != nil {
		return nil, fmt.Errorf("reading the open calls: %w", err)
	}
	var key bpf.CallScopeKey
	var v bpf.CallScopeValue
	scopes := k.call.Maps["scopes"].Iterate()
	for scopes.Next(&key, &v) {
		open[v.Spec] = true
	}
	if err := scopes.Err(); err != nil {
		return nil, fmt.Errorf("reading the open scopes: %w", err)
	}
	return open, nil
}

// CloseThen takes sets of links out some time soon, and then does something.
func (d *Detacher) CloseThen(done func(), tiers ...map[int]*Links) {
	d.running.Add(1)
	go func() {
		defer d.running.Done()
		d.CloseTier(tiers...)
		done()
	}()
}
