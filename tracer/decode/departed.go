package decode

import "github.com/ebpfprof/ebpfprof/tracer/kernel"

// Departed are processes and scopes of which nothing more will come than what is still
// in the rings.
type Departed struct {
	owners    []Owner
	processes []int32
	scopes    []kernel.OpenCall
	asked     []func()
}

// Owner keeps something of each process for as long as that lives, and until its last
// records have been read: then it forgets it.
type Owner interface{ Forget(pid uint32) }

// Process notes that a process has ended.
func (d *Departed) Process(pid int32) { d.processes = append(d.processes, pid) }

// Scope notes a scope whose end will not be seen: it has a row when the ring of calls
// has run empty, in which its name may still be.
func (d *Departed) Scope(c kernel.OpenCall) { d.scopes = append(d.scopes, c) }

// WhenRead has something done when both rings have been read.
func (d *Departed) WhenRead(f func()) { d.asked = append(d.asked, f) }

// drained is called when the ring of calls has run empty.
func (d *Decoder) drained() {
	d.Runtimes.calls.Look()
	for _, c := range d.Departed.scopes {
		d.Unfinished(c)
	}
	d.Departed.scopes = d.Departed.scopes[:0]
}

// bothRead is called when both rings have been read.
func (d *Departed) bothRead() {
	for _, pid := range d.processes {
		for _, owner := range d.owners {
			owner.Forget(uint32(pid))
		}
	}
	d.processes = d.processes[:0]
	for _, f := range d.asked {
		f()
	}
	d.asked = d.asked[:0]
}
