package tracer

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/threadclock"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// Where watching each switch of a thread costs too much, waits are sampled: the threads of
// the job that stand are looked at some times a second, from outside, so that the cost goes
// with the threads and not with their switches. Each thread that stands at the same place of
// its code at two looks, as far apart as the shortest wait that is recorded, has a sample that
// stands for the time since the sample before. So has one that could run and had no CPU, be it another's
// or taken by a quota.

const (
	// sampledEvery is how often a second threads are looked at, at the most, and sampledShare
	// how much of the budget that may take, of one CPU.
	sampledEvery = 50 * time.Millisecond
	sampledShare = 0.1
	// sampledStacks are taken at one look, of all processes' main threads first.
	sampledStacks = 4
)

// waitLook samples waits.
type waitLook struct {
	s         *Session
	registers *kernel.Registers
	failed    error
	at        time.Time // of the next look
	last      time.Time
	turn      int // which of the other threads has its stack taken
	busy      chan struct{}
}

func newWaitLook(s *Session) *waitLook {
	l := &waitLook{s: s, at: time.Now(), last: time.Now()}
	if s.sampling.walks == nil {
		l.failed = fmt.Errorf("no stacks are taken")
		return l
	}
	l.registers, l.failed = kernel.NewRegisters()
	return l
}

// says is what is recorded instead of each wait.
func (l *waitLook) says() string {
	if l.failed != nil {
		return fmt.Sprintf("waits are not recorded from here on, and not sampled either: %v", l.failed)
	}
	return fmt.Sprintf("waits are sampled from here on, up to %d times a second (state off_cpu, weight_ns the time between two looks)",
		time.Second/sampledEvery)
}

// look takes a sample, if it is time and the one before is taken.
func (l *waitLook) look(now time.Time) {
	if l.failed != nil || now.Before(l.at) {
		return
	}
	if l.busy != nil {
		select {
		case <-l.busy:
		default:
			l.at = now.Add(sampledEvery)
			return
		}
	}
	weight := now.Sub(l.last)
	// Not at a pace of its own: quotas are given out ten times a second, and a look that comes at the
	// same moment of each period would say that a thread runs always, or never.
	l.last, l.at = now, now.Add(sampledEvery/2+rand.N(sampledEvery))
	l.busy = make(chan struct{})
	go func(pids []int, turn int, over chan struct{}) {
		defer close(over)
		l.take(pids, turn, weight)
	}(l.s.job.PIDs(), l.turn, l.busy)
	l.turn++
}

// take looks twice, and between takes some stacks. Where the machine is busy and the tracer stands back for the job, a look
// must not: between its two readings waits begin and end, and are not seen. What it may use of the CPUs is bounded.
func (l *waitLook) take(pids []int, turn int, weight time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer promptly()()
	began, used := time.Now(), threadclock.Now()
	wanted := func(pid int) bool { return slices.Contains(pids, pid) }
	before, err := l.registers.Of(wanted)
	if err != nil {
		return
	}
	taken := l.stacks(before, turn)
	time.Sleep(max(0, l.s.options.OffCPU-time.Since(began)))
	after, err := l.registers.Of(wanted)
	if err != nil {
		return
	}
	stood := map[uint32]*bpf.TasksTaskRegisters{}
	for i := range before {
		stood[before[i].Start.Tid] = &before[i]
	}
	var waiting []decode.SampledWait
	for i := range after {
		r := &after[i]
		if b := stood[r.Start.Tid]; b == nil || !stands(b) || !stands(r) || !sameCall(b, r) {
			continue
		}
		w := decode.SampledWait{TaskRegisters: *r}
		if s, ok := taken[r.Start.Tid]; ok {
			w.Stack = &s
		}
		waiting = append(waiting, w)
	}
	ts := began.UnixNano() - l.s.offsetNS
	l.s.do(func(d *decode.Decoder) { d.SampledWaits(ts, weight, waiting) })
	time.Sleep(restAfterLook(threadclock.Now()-used, l.s.options.Budget))
}

// restAfterLook has a look take no more of a CPU than its share: the next one comes later. That it lasted long because
// others had the CPUs is no reason to.
func restAfterLook(used time.Duration, budget float64) time.Duration {
	rest := time.Duration(float64(used) / (sampledShare * budget))
	return max(0, min(rest, time.Second)-sampledEvery)
}

// promptly gives the calling thread the priority that programs begin with, and back in what it returns.
func promptly() (restore func()) {
	was, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || 20-was <= 0 || unix.Setpriority(unix.PRIO_PROCESS, 0, 0) != nil {
		return func() {}
	}
	return func() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, 20-was) } // the system call gives 20 less the nice value
}

// sameCall reports whether a thread is where it was, though it may have run in between: a write to a full pipe wakes for
// each piece that is read, and is one wait.
func sameCall(a, b *bpf.TasksTaskRegisters) bool {
	return a.Start.Sp == b.Start.Sp && a.Start.Pc == b.Start.Pc
}

// stands reports whether a thread is on no CPU.
func stands(r *bpf.TasksTaskRegisters) bool { return r.State != 0 || r.Ready != 0 }

// stacks are those of some of the threads that stand: main threads first, each kind in turn.
func (l *waitLook) stacks(threads []bpf.TasksTaskRegisters, turn int) map[uint32]stacks.Standing {
	var mains, others []bpf.TasksTaskRegisters
	for i := range threads {
		switch r := threads[i]; {
		case !stands(&r):
		case r.Start.Tid == r.Start.Tgid:
			mains = append(mains, r)
		default:
			others = append(others, r)
		}
	}
	var chosen []bpf.TasksTaskRegisters
	for _, kind := range [][]bpf.TasksTaskRegisters{mains, others} {
		for i := 0; i < len(kind) && len(chosen) < sampledStacks; i++ {
			chosen = append(chosen, kind[(turn*sampledStacks+i)%len(kind)])
		}
	}
	taken := map[uint32]stacks.Standing{}
	for i := range chosen {
		all, err := l.s.sampling.walks.Standing(int(chosen[i].Start.Tgid), chosen[i:i+1])
		if err != nil {
			continue
		}
		for _, s := range all {
			taken[s.Start.Tid] = s
		}
	}
	return taken
}

// end waits for a look that goes on, but not for one that the kernel keeps waiting.
func (l *waitLook) end() {
	if l.busy != nil {
		select {
		case <-l.busy:
		case <-time.After(2 * time.Second):
			return
		}
	}
	if l.registers != nil {
		l.registers.Close()
	}
}
