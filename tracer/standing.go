package tracer

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// A thread that waits is on no CPU, where a clock would find it, and its wait has a sample
// only when it ends. So where the threads of a job that hangs are, nothing says. Once the
// main thread of one process has stood still for a while, the stacks of all processes'
// threads are taken from outside: their registers of the kernel, their memory by reading
// it, and none is stopped.

const (
	// standingEvery is how often it is looked whether main threads have run: one small file
	// of /proc for each process.
	standingEvery = 2 * time.Second
	// standingMost is the longest time between two looks at stacks, while one stands still.
	standingMost = 10 * time.Minute
	// standingProof is for how long a thread is seen not to run, to count as still.
	standingProof = 500 * time.Millisecond
	// mostStanding threads of a process have a row, its main thread first.
	mostStanding = 64
	// standingTries is how often a main thread is looked at that runs now and then.
	standingTries = 5
)

// standingLook is what the manager knows of threads that stand still.
type standingLook struct {
	at     time.Time      // of the next look
	looked int64          // when the last one was, CLOCK_MONOTONIC
	ran    map[int]string // what the kernel said of the main threads at the last one
	still  map[int]bool   // those that had not run
	taken  time.Time      // when stacks may be taken again
	every  time.Duration  // while the same processes stand still
	said   bool           // there are rows
	busy   chan struct{}  // closed when the last taking is over; nil before the first
	taker  *standingTaker // of the goroutine that takes, while it does
}

// look takes the stacks of all processes if one stands still, and it is time.
func (l *standingLook) look(s *Session, now time.Time) {
	if s.sampling.walks == nil || now.Before(l.at) {
		return
	}
	since := l.looked
	l.at, l.looked = now.Add(standingEvery), monotonic()
	pids := s.job.Watched()
	still := l.runs(pids)
	news := false
	for pid := range still {
		news = news || !l.still[pid]
	}
	l.still = still
	if len(still) == 0 {
		if l.said && l.idle() {
			l.said = false
			s.do(func(d *decode.Decoder) { d.Standing(0, nil) })
		}
		return
	}
	if news {
		l.every = standingEvery
	} else if now.Before(l.taken) {
		return
	}
	if !l.idle() { // a process that cannot be read holds up this alone
		return
	}
	l.every = min(2*l.every, standingMost)
	l.taken, l.said = now.Add(l.every), true
	if l.taker == nil {
		l.taker = &standingTaker{s: s}
	}
	l.busy = make(chan struct{})
	l.taker.still, l.taker.stillNS = still, since
	go func(taker *standingTaker, over chan struct{}) {
		defer close(over)
		taker.take(pids)
	}(l.taker, l.busy)
}

// idle reports whether no stacks are being taken.
func (l *standingLook) idle() bool {
	if l.busy == nil {
		return true
	}
	select {
	case <-l.busy:
		return true
	default:
		return false
	}
}

// runs returns the processes whose main thread has not run since the last look.
func (l *standingLook) runs(pids []int) map[int]bool {
	ran, still := make(map[int]string, len(pids)), map[int]bool{}
	for _, pid := range pids {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/schedstat")
		if err != nil {
			continue
		}
		if ran[pid] = string(raw); strings.HasPrefix(ran[pid], "0 0 0") {
			continue // a kernel that does not count
		}
		if l.ran[pid] == ran[pid] {
			still[pid] = true
		}
	}
	l.ran = ran
	return still
}

// end waits for a taking that goes on, but not for one that the kernel keeps waiting.
func (l *standingLook) end() {
	if l.busy == nil {
		return
	}
	select {
	case <-l.busy:
		if l.taker != nil && l.taker.registers != nil {
			l.taker.registers.Close()
		}
	case <-time.After(standingEvery):
	}
}

// standingTaker takes stacks, on a goroutine of its own: a process's memory may be locked
// for as long as it pleases.
type standingTaker struct {
	s         *Session
	registers *kernel.Registers
	failed    bool
	since     map[uint32]stillSince // by tid
	still     map[int]bool          // processes whose main thread has not run since stillNS
	stillNS   int64
}

// stillSince is since when a thread has not left the CPU again.
type stillSince struct {
	switches uint64
	ns       int64
}

func (t *standingTaker) take(pids []int) {
	if t.failed {
		return
	}
	if t.registers == nil {
		var err error
		if t.registers, err = kernel.NewRegisters(); err != nil {
			t.failed = true
			t.s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "attach", Source: "still_thread", Count: 1, Detail: err.Error()})
			return
		}
	}
	wanted := func(pid int) bool { return slices.Contains(pids, pid) }
	begun := monotonic()
	before, err := t.registers.Of(wanted)
	if err != nil {
		return
	}
	var all []stacks.Standing
	for _, pid := range pids {
		all = append(all, t.process(pid, threadsOf(before, pid))...)
	}
	time.Sleep(max(0, standingProof-time.Duration(monotonic()-begun)))
	after, err := t.registers.Of(wanted)
	if err != nil {
		return
	}
	seen := monotonic()
	t.remember(before, after, begun)
	for i := range all {
		if known, ok := t.since[all[i].Start.Tid]; ok && known.switches == all[i].Switches {
			all[i].SinceNS = known.ns
		}
	}
	t.s.do(func(d *decode.Decoder) { d.Standing(seen, all) })
}

// process takes the stacks of one process's threads. Those that have run meanwhile are
// left out; the main thread is tried again.
func (t *standingTaker) process(pid int, threads []bpf.TasksTaskRegisters) []stacks.Standing {
	var kept []stacks.Standing
	for try := range standingTries {
		taken, err := t.s.sampling.walks.Standing(pid, threads)
		if err != nil {
			return kept
		}
		now, err := t.registers.Of(func(other int) bool { return other == pid })
		if err != nil {
			return kept
		}
		now = threadsOf(now, pid)
		for _, s := range taken {
			if slices.ContainsFunc(now, func(r bpf.TasksTaskRegisters) bool { return sameStand(&r, &s.TasksTaskRegisters) }) {
				kept = append(kept, s)
			}
		}
		isMain := func(tid uint32) bool { return int(tid) == pid }
		if try == standingTries-1 || slices.ContainsFunc(kept, func(s stacks.Standing) bool { return isMain(s.Start.Tid) }) {
			break
		}
		threads = slices.DeleteFunc(now, func(r bpf.TasksTaskRegisters) bool { return !isMain(r.Start.Tid) })
	}
	return kept
}

// sameStand reports whether a thread has not run between two looks.
func sameStand(a, b *bpf.TasksTaskRegisters) bool {
	return a.Start.Tid == b.Start.Tid && a.Switches == b.Switches && a.Start.Sp == b.Start.Sp && a.Start.Pc == b.Start.Pc
}

// threadsOf are those of one process that do not run, its main thread first, and no more
// than have a row.
func threadsOf(all []bpf.TasksTaskRegisters, pid int) []bpf.TasksTaskRegisters {
	var threads []bpf.TasksTaskRegisters
	for _, r := range all {
		if int(r.Start.Tgid) == pid && r.State != 0 {
			threads = append(threads, r)
		}
	}
	late := func(r *bpf.TasksTaskRegisters) uint32 { return r.Start.Tid - uint32(pid) } // numbers may have begun anew
	slices.SortFunc(threads, func(a, b bpf.TasksTaskRegisters) int { return cmp.Compare(late(&a), late(&b)) })
	return threads[:min(len(threads), mostStanding)]
}

// remember keeps since when each thread has been where it is.
func (t *standingTaker) remember(before, after []bpf.TasksTaskRegisters, at int64) {
	first := map[uint32]uint64{}
	for i := range before {
		first[before[i].Start.Tid] = before[i].Switches
	}
	since := map[uint32]stillSince{}
	for i := range after {
		r := &after[i]
		if switches, ok := first[r.Start.Tid]; !ok || switches != r.Switches || r.State == 0 {
			continue
		}
		known, ok := t.since[r.Start.Tid]
		if !ok || known.switches != r.Switches {
			if known = (stillSince{r.Switches, at}); t.still[int(r.Start.Tid)] {
				known.ns = t.stillNS
			}
		}
		since[r.Start.Tid] = known
	}
	t.since = since
}
