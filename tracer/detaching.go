package tracer

import "sync"

// detaching takes links out beside each other, off the manager's goroutine. Each
// waits for the kernel's grace periods, some 40 ms; those that wait at once wait
// for the same ones.
type detaching struct {
	running sync.WaitGroup
	slots   chan struct{}
}

// detachersAtOnce bounds the threads that wait: each link is closed in a system call.
const detachersAtOnce = 128

func newDetaching() *detaching { return &detaching{slots: make(chan struct{}, detachersAtOnce)} }

// close takes a set out some time soon; nil is none.
func (d *detaching) close(set *linkSet) {
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

// wait returns when everything is out.
func (d *detaching) wait() { d.running.Wait() }

// closeTier takes sets of links off everyone and returns when they are out.
func (d *detaching) closeTier(tiers ...map[int]*linkSet) {
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
