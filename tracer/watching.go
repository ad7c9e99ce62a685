package tracer

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/expense"
	"github.com/ebpfprof/ebpfprof/tracer/reader"
	"github.com/ebpfprof/ebpfprof/tracer/sampler"
)

// What the recording costs beside its probes is looked at every few seconds, for a moment in
// which the kernel measures each program (tracer/sampler), and what costs too much gives way
// (tracer/expense).

const (
	// watchEvery is how long there is between two moments, watchMoment how long one lasts; the
	// first comes at once and is short, as are those after a change: while it lasts the job
	// and its neighbours pay whatever it is.
	watchEvery       = 5 * time.Second
	watchMoment      = 100 * time.Millisecond
	watchShortMoment = 40 * time.Millisecond
	// watchSoon is when the second comes, where the first changed nothing.
	watchSoon = 500 * time.Millisecond
	// ownNice is the nice value of the tracer's threads once it takes too much.
	ownNice = 10
	// fewerWaits is by how much longer waits have rows if that was not enough.
	fewerWaits = 10
)

// watchLook is what the manager knows of that.
type watchLook struct {
	at      time.Time
	moment  io.Closer // open while the kernel measures
	begun   *sampler.Watched
	ended   *sampler.Watched // at the end of the interval before; nil: it is the first
	since   machineTimes     // likewise
	rates   expense.Rates    // of that interval
	settled bool             // nothing changed at the last look
	account expense.Account
	off     bool      // it cannot be measured here
	nice    bool      // our threads are, and calls are read in larger batches
	fewer   bool      // only longer waits have rows
	over    bool      // the sum of all costs was above the budget at the last look
	waits   *waitLook // waits are sampled, not watched
}

// machineTimes are sums of CPU times.
type machineTimes struct {
	at             time.Time
	own, job       time.Duration
	cpus           []cpuTicks
	jobOfProcesses map[int]time.Duration
}

// look opens a moment, or ends it and judges by it.
func (l *watchLook) look(s *Session, now time.Time) {
	loaded := s.sampling.sampler
	if loaded == nil || l.off || now.Before(l.at) {
		return
	}
	if l.at.IsZero() {
		l.since = takeTimes(s, nil)
	}
	if l.moment == nil {
		l.open(s, now)
		return
	}
	ended, err := loaded.Look(s.kernel.LifePrograms())
	l.moment.Close()
	l.moment, l.at = nil, now.Add(watchEvery)
	if err != nil {
		l.giveUp(s, err)
		return
	}
	times := takeTimes(s, l.since.jobOfProcesses)
	first := l.ended == nil
	if first {
		l.at = now.Add(watchSoon)
	}
	l.rates = loaded.Rates(cmp.Or(l.ended, l.begun), l.begun, ended)
	i := l.interval(&times, l.rates)
	l.since, l.ended = times, ended
	l.account.Add(&i)
	s.stats.expenses(&l.account)
	if l.settled = !l.judge(s, &i, first); !l.settled {
		l.open(s, now) // it may not have been enough
	}
}

func (l *watchLook) open(s *Session, now time.Time) {
	moment, err := sampler.OpenMoment()
	if err != nil {
		l.giveUp(s, err)
		return
	}
	begun, err := s.sampling.sampler.Look(s.kernel.LifePrograms())
	if err != nil {
		moment.Close()
		l.giveUp(s, err)
		return
	}
	length := watchShortMoment
	if l.settled {
		length = watchMoment
	}
	l.moment, l.begun, l.at = moment, begun, now.Add(length)
}

// giveUp does without: the cost of what is watched is not known.
func (l *watchLook) giveUp(s *Session, err error) {
	l.off = true
	s.warn(Warning{
		TSNS: time.Now().UnixNano(), Kind: "incomplete", Source: "cost", Count: 1,
		Detail: fmt.Sprintf("what the recording costs beside its probes is not known, and not kept within the budget: %v", err),
	})
}

func (l *watchLook) interval(now *machineTimes, rates expense.Rates) expense.Interval {
	i := expense.Interval{Length: now.at.Sub(l.since.at), Rates: rates, Own: now.own - l.since.own, Job: now.job}
	busy := make([]float64, 0, len(now.cpus))
	for n := range min(len(now.cpus), len(l.since.cpus)) { // else one went or came
		used, all := now.cpus[n].since(l.since.cpus[n])
		if i.Used += time.Duration(used * float64(tick)); all > 0 {
			busy = append(busy, used/all)
		}
	}
	i.Full, i.Beside = expense.Full(busy, i.OwnCPUs()), expense.Beside(sharedCores(), i.JobCPUs(), len(busy))
	return i
}

// judge takes out what costs too much, and reports whether there was any.
func (l *watchLook) judge(s *Session, i *expense.Interval, first bool) (changed bool) {
	loaded, form := s.sampling.sampler, s.sampling.sampler.Form()
	budget := s.options.Budget
	next, job, machine := expense.Judge(form, i, first, budget, runtime.NumCPU())
	if loaded.GaveUpIO() {
		next.IO = false
	}
	rest := l.account.Shares()
	probes := s.governor.Beside(rest.Sum())
	cheaper := false
	if l.settled && next == form {
		next, cheaper = expense.Cheaper(form, i, probes, budget, l.mayTakeLess(s))
		before := l.over
		if l.over = next != form || cheaper; !before { // one interval may be noise, and what goes does not come back
			next, cheaper = form, false
		}
		if next != form {
			now := i.Shares()
			job, machine = now.Waits, i.Rates.Waits.Machine/float64(runtime.NumCPU())
			if form.IO && !next.IO {
				job, machine = now.IO, i.Rates.IO.Machine/float64(runtime.NumCPU())
			}
		}
	}
	if form.IO && !next.IO {
		loaded.EndIO()
		if job > 0 {
			l.tell(s, "io", job, machine, "reads and writes are not measured from here on")
		}
	}
	if form.Waits && !next.Waits {
		l.waits = newWaitLook(s)
		loaded.EndWaits()
		l.tell(s, "waits", job, machine, l.waits.says())
	}
	if l.settled && (cheaper || expense.OwnTooMuch(i, budget)) {
		l.takeLess(s, i)
	}
	return next != form
}

// mayTakeLess reports whether takeLess has something left to do.
func (l *watchLook) mayTakeLess(s *Session) bool {
	return !l.nice || !l.fewer && s.sampling.sampler.Form().Waits
}

// takeLess has the tracer take less of the CPUs: at first it lets the job's threads go before
// its own and reads more calls at a time, then there are fewer rows of waits.
func (l *watchLook) takeLess(s *Session, i *expense.Interval) {
	switch {
	case !l.nice:
		l.nice = true
		s.thrifty.Store(true)
		beNice()
	case !l.fewer && s.sampling.sampler.Form().Waits:
		l.fewer = true
		longer := fewerWaits * s.options.OffCPU
		if err := s.sampling.sampler.SetWaitThreshold(longer); err != nil {
			return
		}
		s.warn(Warning{
			TSNS: time.Now().UnixNano(), Kind: "slice", Source: "waits", Count: 1,
			Detail: fmt.Sprintf("the tracer took %.1f %% of a CPU, more than the budget has room for: waits shorter than %v have no rows "+
				"from here on",
				100*i.OwnCPUs(), longer),
		})
	}
}

func (l *watchLook) tell(s *Session, source string, job, machine float64, instead string) {
	s.warn(Warning{
		TSNS: time.Now().UnixNano(), Kind: "slice", Source: source, Count: 1,
		Detail: fmt.Sprintf("to watch each would take %.1f %% of the job's time and %.1f %% of the machine's CPUs: %s", 100*job, 100*machine,
			instead),
	})
}

// end closes what is open, and adds the time since the last look.
func (l *watchLook) end(s *Session) {
	if l.moment != nil {
		l.moment.Close()
	}
	if l.ended != nil && !l.off {
		l.addRest(s)
	}
	if l.waits != nil {
		l.waits.end()
	}
}

func (l *watchLook) addRest(s *Session) {
	loaded := s.sampling.sampler
	now, err := loaded.Look(s.kernel.LifePrograms())
	if err != nil {
		return // then the account is of the time until the last look
	}
	times := takeTimes(s, l.since.jobOfProcesses)
	i := l.interval(&times, loaded.RatesSince(l.ended, now, l.rates))
	l.account.Add(&i)
	s.stats.expenses(&l.account)
}

// until is how long there is to the next look.
func (l *watchLook) until() time.Duration {
	wait := time.Duration(math.MaxInt64)
	if !l.off {
		wait = time.Until(l.at)
	}
	if l.waits != nil {
		wait = min(wait, time.Until(l.waits.at))
	}
	return max(time.Millisecond, wait)
}

// beNice lets the job's threads go before ours, where there are not enough CPUs.
func beNice() {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, ownNice)
		}
	}
}

// takeTimes reads the CPU times of the tracer, the job and the machine. The job's is what its
// processes, and their children that have ended, have used since the times before.
func takeTimes(s *Session, before map[int]time.Duration) machineTimes {
	t := machineTimes{at: time.Now(), jobOfProcesses: map[int]time.Duration{}}
	var own unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &own) == nil {
		t.own = time.Duration(own.Utime.Nano()+own.Stime.Nano()) + reader.CPU()
	}
	for _, pid := range s.job.PIDs() {
		used, ok := processTime(pid)
		if !ok {
			continue
		}
		if last, known := before[pid]; known || before == nil {
			t.job += max(0, used-last)
		}
		t.jobOfProcesses[pid] = used
	}
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t
	}
	t.cpus = ticksOf(string(raw))
	return t
}

// tick is the unit of the kernel's CPU times, of any architecture (USER_HZ).
const tick = 10 * time.Millisecond

// cpuTicks are the CPU times of one CPU.
type cpuTicks struct{ all, idle float64 }

func (c cpuTicks) since(before cpuTicks) (used, all float64) {
	all = c.all - before.all
	return max(0, all-(c.idle-before.idle)), all
}

// ticksOf reads those of each CPU, from proc_stat(5).
func ticksOf(text string) (cpus []cpuTicks) {
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, " ")
		switch {
		case name == "cpu": // all of them
			continue
		case !strings.HasPrefix(name, "cpu"):
			return cpus
		}
		var c cpuTicks
		for i, field := range strings.Fields(rest) {
			n, _ := strconv.ParseFloat(field, 64)
			if i < 8 { // guests are in user and nice
				c.all += n
			}
			if i == 3 || i == 4 { // idle, iowait
				c.idle += n
			}
		}
		cpus = append(cpus, c)
	}
	return cpus
}

// sharedCores reports whether two CPUs may be hardware threads of one core. A virtual machine
// is often not told: its CPUs may be.
var sharedCores = sync.OnceValue(func() bool {
	active, _ := os.ReadFile("/sys/devices/system/cpu/smt/active")
	info, _ := os.ReadFile("/proc/cpuinfo")
	return strings.TrimSpace(string(active)) == "1" || strings.Contains(string(info), " hypervisor")
})

// processTime is what a process and its ended children have used of a CPU: utime, stime,
// cutime and cstime of proc_pid_stat(5).
func processTime(pid int) (used time.Duration, ok bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	text := string(raw)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return 0, false
	}
	for _, f := range slices.Clone(fields[11:15]) {
		n, _ := strconv.ParseInt(f, 10, 64)
		used += time.Duration(n) * tick
	}
	return used, true
}
