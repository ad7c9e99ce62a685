package kernel

import (
	"fmt"
	"maps"

	"github.com/cilium/ebpf"
	"github.com/ebpfprof/ebpfprof/bpf"
)

// openCalls are the programs' tables of what has begun and not ended.
type openCalls struct {
	call   *ebpf.Collection
	shares *shares
}

// callsOpen reports whether a thread is in a call of the detail groups that was
// seen to begin; once nothing begins any more, in any call.
func (k *openCalls) callsOpen() bool {
	var tid, on uint32
	var state bpf.CallThreadState
	recording := k.call.Variables["recording"].Get(&on) == nil && on != 0
	for threads := k.call.Maps["threads"].Iterate(); threads.Next(&tid, &state); {
		for _, f := range state.Frame[:min(int(state.Depth), len(state.Frame))] {
			if !recording || f.Flags&uint16(bpf.CallSpecFlagSPEC_DETAIL) != 0 {
				return true
			}
		}
	}
	return false
}

// OpenCall is a call that had not ended when the recording did.
type OpenCall struct {
	Spec      uint32
	Tgid, TID uint32
	SpanID    uint64
	ParentID  uint64
	StartNS   uint64
	Epoch     uint32
	Line      uint64
}

// OpenCalls reads what is still open, from the kernel's thread table and the
// table of scopes.
func (k *openCalls) OpenCalls() (calls []OpenCall, err error) {
	var tid uint32
	var state bpf.CallThreadState
	threads := k.call.Maps["threads"].Iterate()
	for threads.Next(&tid, &state) {
		for _, f := range state.Frame[:min(int(state.Depth), len(state.Frame))] {
			calls = append(calls, OpenCall{f.Spec, state.Tgid, tid, f.SpanId, f.ParentId, f.StartNs, f.Epoch, f.Line})
		}
	}
	if err := threads.Err(); err != nil {
		return nil, fmt.Errorf("reading the open calls: %w", err)
	}
	return append(calls, k.TakeScopes(EveryScope)...), nil
}

// OpenFrame is a call that a thread is in, and what was captured of it.
type OpenFrame struct {
	OpenCall
	Args [len(bpf.CallProbeSpec{}.Capture)]uint64
}

// OpenFrames reads the calls of some probes that threads are in, of those whose end will
// be seen: what began before the epochs, which it returns, has none. The first is that of
// all calls, the other of those in slices. A thread that ends meanwhile may end the walk
// through the table; the next look sees the rest.
func (k *openCalls) OpenFrames(wanted func(spec uint32) bool) (open []OpenFrame, all, sliced uint32) {
	if k.call.Variables["anchor_epoch"].Get(&all) != nil || k.call.Variables["epoch"].Get(&sliced) != nil {
		return nil, 0, 0
	}
	var tid uint32
	var state bpf.CallThreadState
	for threads := k.call.Maps["threads"].Iterate(); threads.Next(&tid, &state); {
		for i := range state.Frame[:min(int(state.Depth), len(state.Frame))] {
			if f := &state.Frame[i]; endSeen(f.Flags, f.Epoch, all, sliced) && wanted(f.Spec) {
				open = append(open, OpenFrame{OpenCall{f.Spec, state.Tgid, tid, f.SpanId, f.ParentId, f.StartNs, f.Epoch, f.Line}, f.Arg})
			}
		}
	}
	return open, all, sliced
}

// endSeen reports whether a call that goes on will be seen to end: what the probes of a
// slice saw begin is, until that slice is over (stale, bpf/maps.h).
func endSeen(flags uint16, epoch, all, sliced uint32) bool {
	if flags&uint16(bpf.CallSpecFlagSPEC_DETAIL) != 0 {
		return epoch >= sliced
	}
	return epoch >= all
}

func EveryScope(*OpenCall) bool { return true }

// TakeScopes takes open scopes out of the kernel's table, and off what is counted of
// their processes.
func (k *openCalls) TakeScopes(which func(*OpenCall) bool) (open []OpenCall) {
	var key bpf.CallScopeKey
	var v bpf.CallScopeValue
	taken, users := map[bpf.CallScopeKey]OpenCall{}, map[bpf.CallScopeKey]uint32{}
	scopes, counts := k.call.Maps["scopes"], k.call.Maps["scope_counts"]
	for it := scopes.Iterate(); it.Next(&key, &v); {
		c := OpenCall{v.Spec, key.Tgid, v.Tid, v.SpanId, v.ParentId, v.StartNs, v.Epoch, v.Line}
		if which(&c) {
			taken[key], users[key] = c, v.User
		}
	}
	of := map[uint32]uint32{}
	for key, c := range maps.All(taken) {
		if scopes.Delete(key) != nil {
			continue // it ended meanwhile
		}
		open = append(open, c)
		of[c.Tgid]++
		k.shares.change(users[key], bpf.CallShareSHARE_SCOPES, -1)
	}
	// What begins or ends between these two calls is off by one, in a share of a thousand.
	for tgid, n := range of {
		var counted uint32
		if counts.Lookup(tgid, &counted) == nil {
			_ = counts.Put(tgid, counted-min(counted, n))
		}
	}
	return open
}
