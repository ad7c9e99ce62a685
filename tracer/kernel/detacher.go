package kernel

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf/link"
)

// Detacher takes links out beside each other, off the manager's goroutine. Each
// waits for the kernel's grace periods, some 40 ms; those that wait at once wait
// for the same ones.
type Detacher struct {
	running sync.WaitGroup
	slots   chan struct{}
}

// detachersAtOnce bounds the threads that wait: each link is closed in a system call.
const detachersAtOnce = 128

func NewDetacher() *Detacher { return &Detacher{slots: make(chan struct{}, detachersAtOnce)} }

// Close takes a set out some time soon; nil is none.
func (d *Detacher) Close(set *Links) {
	if set == nil {
		return
	}
	d.running.Add(1)
	go func() {
		defer d.running.Done()
		d.slots <- struct{}{}
		set.Close()
		<-d.slots
	}()
}

// Wait returns when everything is out.
func (d *Detacher) Wait() { d.running.Wait() }

// CloseTier takes sets of links off everyone and returns when they are out.
func (d *Detacher) CloseTier(tiers ...map[int]*Links) {
	var out sync.WaitGroup
	for _, tier := range tiers {
		for pid, set := range tier {
			delete(tier, pid)
			out.Add(1)
			go func() {
				defer out.Done()
				d.slots <- struct{}{}
				set.Close()
				<-d.slots
			}()
		}
	}
	out.Wait()
}

// countedLink is one of those that are not out yet.
type countedLink struct {
	link.Link
	left *atomic.Int64
	spec uint32 // the probe; one of many, if the link is of many sites
}

// busiestFirst puts links of one site each in the order in which they are to go: each
// takes the kernel tens of milliseconds, and the job pays for those that wait. One link
// of all sites is left as it is.
func busiestFirst(of *counts, sets ...[]link.Link) {
	hits := map[uint32]uint64{}
	for _, links := range sets {
		if len(links) < 2 {
			continue
		}
		for _, l := range links {
			spec := l.(countedLink).spec
			if _, ok := hits[spec]; ok {
				continue
			}
			if c, err := of.Count(spec); err == nil {
				hits[spec] = c.Entries + c.Exits + c.Passed
			}
		}
		slices.SortStableFunc(links, func(a, b link.Link) int {
			return cmp.Compare(hits[b.(countedLink).spec], hits[a.(countedLink).spec])
		})
	}
}

// Close takes the link out.
func (l countedLink) Close() error { return l.remove()() }

// remove takes the link's sites out; what it returns waits for the kernel's grace periods.
func (l countedLink) remove() (wait func() error) {
	end := l.Link.Close
	if early, ok := l.Link.(interface{ Remove() func() error }); ok {
		end = early.Remove()
	}
	return func() error {
		defer l.left.Add(-1)
		return end()
	}
}

// LinksLeft is how many links of probes are not out yet.
func (k *attacher) LinksLeft() int { return int(k.links.Load()) }
