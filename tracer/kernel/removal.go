package kernel

import (
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/ebpfprof/ebpfprof/tracer/site"
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

// removal makes that probes go at once when they are taken out. Before the
// Programs changes the first site it stops every fork on the machine, and that
// takes a grace period of RCU, 5 to 10 ms in which the job still pays for every
// probe. But the next one within a few milliseconds finds the way free
// (percpu_down_write(&dup_mmap_sem) in kernel/events/uprobes.c; rcu_sync_enter
// waits only from GP_IDLE). So a probe on a function of our own, which is
// never called, goes in just before.
//
// Where that cannot be done, the probes go all the same, later.
type removal struct {
	once   sync.Once
	path   string
	remove func()
	busy   sync.WaitGroup // links that the kernel is still taking out
}

// PrepareRemoval returns when sites can be taken out at once.
func (k *attacher) PrepareRemoval() {
	h := &k.removal
	h.once.Do(func() {
		if functions, ok := calibrationCode[runtime.GOARCH]; ok {
			_, h.path, h.remove, _ = mapCalibration(spaced(functions))
		}
	})
	if h.path == "" {
		return
	}
	at := uint64((site.CostEmulated + 1) * functionSpacing)
	set, err := k.AttachLearn(h.path, os.Getpid(), &Sites{Entry: uprobe.Sites{Offsets: []uint64{at}, Cookies: []uint64{0}}})
	if err != nil {
		return
	}
	h.closeLater(set)
}

// closeLater takes probes of functions of our own out, beside what comes next.
func (h *removal) closeLater(sets ...*Links) {
	for _, set := range sets {
		h.busy.Add(1)
		go func() {
			defer h.busy.Done()
			closeAll(slices.Concat(set.entry, set.exit))
		}()
	}
}

func (h *removal) close() {
	h.busy.Wait()
	if h.remove != nil {
		h.remove()
	}
}
