package accel

import (
	"fmt"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// A library of the job's own can say that it makes handle after handle, and takes none
// back: what is kept of them has an end, which is counted.
func TestHandlesWithoutEndAreNotAllKept(t *testing.T) {
	for name, call := range map[string]func(m *commands, handle uint64){
		"events": func(m *commands, handle uint64) {
			m.call(catalog.Function{Category: "event", Effect: catalog.RecordsEvent}, map[catalog.Field]uint64{catalog.FieldStream: aQueue, catalog.FieldEvent: handle})
		},
		"streams": func(m *commands, handle uint64) {
			m.call(catalog.Function{Category: "event", Effect: catalog.RecordsEvent}, map[catalog.Field]uint64{catalog.FieldStream: 1000 + handle, catalog.FieldEvent: 1})
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
				m.state.Release()
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
	m := newCommands()
	for i := range MaxNodes + 2*recount {
		m.addNode(aGraph, nil)
		m.spans = m.spans[:0]
		if i%4096 == 0 {
			m.state.Release()
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
