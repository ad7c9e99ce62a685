package accel

import (
	"fmt"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// A library of the job's own can say that it makes handle after handle, and takes none
// back: what is kept of them has an end, which is counted.
func TestHandlesWithoutEndAreNotAllKept(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector, which has nothing to find in it: make test-kernel runs it without")
	}
	for name, call := range map[string]func(m *commands, handle uint64){
		"events": func(m *commands, handle uint64) {
			m.call(spec.Function{Category: "event", Effect: spec.RecordsEvent}, map[spec.Field]uint64{spec.FieldStream: aQueue,
				spec.FieldEvent: handle})
		},
		"streams": func(m *commands, handle uint64) {
			m.call(spec.Function{Category: "event", Effect: spec.RecordsEvent}, map[spec.Field]uint64{spec.FieldStream: 1000 + handle,
				spec.FieldEvent: 1})
		},
		"graphs": func(m *commands, handle uint64) { m.addNode(handle, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newCommands()
			for i := range uint64(3 * MaxHandles / 2) {
				call(m, i+1)
				m.spans = m.spans[:0]
				if i%4096 != 0 {
					continue
				}
				m.state.FlushExpired()
				for _, one := range m.state.of {
					if kept := one.kept(); kept > MaxHandles+8192 {
						t.Fatalf("%d are kept", kept)
					}
				}
			}
			if m.state.Forgotten == 0 {
				t.Error("nothing was forgotten")
			}
		})
	}
}

func TestNodesWithoutEndAreNotAllKept(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector, which has nothing to find in it: make test-kernel runs it without")
	}
	m := newCommands()
	for i := range MaxNodes + 2*recount {
		m.addNode(aGraph, nil)
		m.spans = m.spans[:0]
		if i%4096 == 0 {
			m.state.FlushExpired()
		}
	}
	for _, one := range m.state.of {
		if n := one.graphs.count(); n > MaxNodes {
			t.Errorf("%d nodes are kept", n)
		}
	}
	if m.state.Forgotten == 0 {
		t.Error("nothing was forgotten")
	}
}

// A process's names are its own share: its neighbour's stay.
func TestNamesWithoutEndAreAProcesssOwn(t *testing.T) {
	n := newKernelNames()
	neighbour := kernelKey{2, KernelHandle{"cuda", 1, false}}
	n.learn(neighbour, "theirs", NameGetFunction, 0)
	for i := range uint64(2 * MaxNames) {
		n.learn(kernelKey{1, KernelHandle{"cuda", i, false}}, fmt.Sprint("kernel", i), NameGetFunction, 0)
	}
	if len(n.known) > MaxNames+1 {
		t.Errorf("%d names are kept", len(n.known))
	}
	if k := n.find(neighbour, 0); k.symbol != "theirs" {
		t.Errorf("the neighbour's is %+v", k)
	}
	n.forget(1)
	if len(n.known) != 1 || n.ofProcess[1] != 0 {
		t.Errorf("%d names are left of a process that has ended, counted %d", len(n.known)-1, n.ofProcess[1])
	}
}

// What one call after the other puts onto the same handle has an end, too.
func TestWhatIsKeptOfOneHandleHasAnEnd(t *testing.T) {
	thread := &currentDevice{}
	for i := range uint64(10 * mostContexts) {
		thread.push(i)
	}
	if n := len(thread.contexts); n > mostContexts || thread.contexts[n-1] != 10*mostContexts-1 {
		t.Errorf("%d contexts are on a thread's stack, the last is %d", n, thread.contexts[n-1])
	}

	m := newCommunicators(newSplits(), func(uint64) (uint64, bool) { return 0, false })
	m.pending.waiting = []*pendingHandle{{address: 0x10, made: &communicator{}}}
	for handle := range uint64(3 * mostTried) {
		m.byHandle(handle + 1)
	}
	if n := len(m.pending.tried); n > mostTried {
		t.Errorf("%d unknown handles are kept", n)
	}

	n := newKernelNames()
	n.hint(2, 1, 7)
	for tid := range uint32(3 * mostHints) {
		n.hint(1, tid, 8)
	}
	if len(n.hints[1]) > mostHints || n.hinted(2, 1) != 7 || n.hinted(2, 1) != 0 {
		t.Errorf("%d hints are kept of a process, or its neighbour's is gone", len(n.hints[1]))
	}
	if n.ended(1); len(n.hints[1]) != 0 {
		t.Error("a process that has ended keeps its hints")
	}
}

// A communicator can be shrunk by any list of ranks.
func TestListsOfRanksThatAreLeftOutAreCounted(t *testing.T) {
	m := newCommands()
	one := m.state.get(1, "nccl")
	whole := &communicator{}
	one.communicators.known[1] = whole
	f := &spec.Function{Values: []spec.Value{spec.Mem(spec.FieldExcluded, 1, 0)}}
	for rank := range uint64(100) {
		c := &Call{runtime: one, pid: 1, f: f, r: &Record{Args: []uint64{rank % 50}}, args: &Arguments{}}
		c.args.value[spec.FieldLeftOut] = 1
		one.communicators.shrink(c, 1)
	}
	if len(whole.shrinks) != 50 || one.kept() < 50 {
		t.Errorf("%d lists are kept, %d counted", len(whole.shrinks), one.kept())
	}
	leave := &Call{runtime: one, pid: 1, f: &spec.Function{Effect: spec.LeavesCommunicator}, args: &Arguments{}}
	leave.args.value[spec.FieldCommunicator] = 1
	if one.communicators.apply(leave); one.communicators.shrunk != 0 {
		t.Errorf("%d lists are counted of a communicator that is gone", one.communicators.shrunk)
	}
}
