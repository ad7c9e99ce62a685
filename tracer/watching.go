package tracer

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
	// watchFirst is when the first moment comes, watchEvery how long there is between two,
	// and watchMoment how long one lasts.
	watchFirst  = 300 * time.Millisecond
	watchEvery  = 5 * time.Second
	watchMoment = 100 * time.Millisecond
	// ownNice is the nice value of the tracer's threads once it takes too much.
	ownNice = 10
)

// watchLook is what the manager knows of that.
type watchLook struct {
	at      time.Time
	moment  io.Closer // open while the kernel measures
	begun   *sampler.Watched
	since   machineTimes // at the end of the interval before
	account expense.Account
	off     bool // it cannot be measured here
	nice    bool
	waits   *waitLook // waits are sampled, not watched
}

// machineTimes are sums of CPU times.
type machineTimes struct {
	at             time.Time
	own, job       time.Duration
	machine, idle  float64 // ticks
	jobOfProcesses map[int]time.Duration
}

// look opens a moment, or ends it and judges by it.
func (l *watchLook) look(s *Session, now time.Time) {
	loaded := s.sampling.sampler
	if loaded == nil || l.off || now.Before(l.at) {
		return
	}
	if l.at.IsZero() {
		l.at, l.since = now.Add(watchFirst), takeTimes(s, nil)
		return
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
	i := l.interval(&times, loaded.Rates(l.begun, ended))
	l.since = times
	l.account.Add(&i)
	s.stats.expenses(&l.account)
	if l.judge(s, &i) {
		l.at = now.Add(watchFirst) // it may not have been enough
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
	l.moment, l.begun, l.at = moment, begun, now.Add(watchMoment)
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
	if all := now.machine - l.since.machine; all > 0 {
		i.Full = max(0, 1-(now.idle-l.since.idle)/all)
		i.Used = time.Duration(i.Full * all * float64(10*time.Millisecond))
	}
	return i
}

// judge takes out what costs too much, and reports whether there was any.
func (l *watchLook) judge(s *Session, i *expense.Interval) (changed bool) {
	loaded, form := s.sampling.sampler, s.sampling.sampler.Form()
	budget := s.options.Budget
	next, job, machine := expense.Judge(form, i, budget, runtime.NumCPU())
	if loaded.GaveUpIO() {
		next.IO = false
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
	if !l.nice && expense.OwnTooMuch(i, budget) {
		l.nice = true
		beNice()
	}
	return next != form
}

func (l *watchLook) tell(s *Session, source string, job, machine float64, instead string) {
	s.warn(Warning{
		TSNS: time.Now().UnixNano(), Kind: "slice", Source: source, Count: 1,
		Detail: fmt.Sprintf("to watch each would take %.1f %% of the job's time and %.1f %% of the machine's CPUs: %s", 100*job, 100*machine, instead),
	})
}

// end closes what is open.
func (l *watchLook) end() {
	if l.moment != nil {
		l.moment.Close()
	}
	if l.waits != nil {
		l.waits.end()
	}
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
	line, _, _ := strings.Cut(string(raw), "\n")
	for i, field := range strings.Fields(strings.TrimPrefix(line, "cpu")) {
		n, _ := strconv.ParseFloat(field, 64)
		if i < 8 { // guests are in user and nice
			t.machine += n
		}
		if i == 3 || i == 4 { // idle, iowait
			t.idle += n
		}
	}
	return t
}

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
		used += time.Duration(n) * 10 * time.Millisecond
	}
	return used, true
}
