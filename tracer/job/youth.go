package job

import (
	"errors"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Most programs that a job starts end before anything could be learnt of them: a compiler, a
// metric's script, a decoder. To read the maps of one and to put a hook on its dynamic linker
// took 10 ms of a CPU and stalled its start for 2. So the kernel alone follows a child while
// it is young (bpf/young.h), and adds up what ends before it is looked at.

const (
	// grownUp is the age at which a child is looked at, and copyGrownUp that of a copy of a
	// process with a framework: it maps the framework from its beginning, and one that is to
	// execute another program does so within milliseconds.
	grownUp     = 500 * time.Millisecond
	copyGrownUp = 100 * time.Millisecond
	// youthEvery is how often the young are looked through, while there are any.
	youthEvery = 100 * time.Millisecond
	// shortEvery is how often what ended young is written.
	shortEvery = 2 * time.Second
	// launched children of a job without a framework are looked at from their first moment:
	// it is a launcher, and they are what matters. A launcher starts few.
	launched = 64
)

// youth are the young children, as far as user space knows them.
type youth struct {
	job    *Job
	at     time.Time // of the next look, far away while there is nothing to look for
	shorts shorts
	grown  bool // children are young, not looked at once
	seen   int  // children that were looked at once
}

func newYouth(j *Job) youth {
	return youth{job: j, at: never(), shorts: shorts{before: map[bpf.LifeShortKey]bpf.LifeShortSum{}}}
}

// never is so far away that nobody waits for it.
func never() time.Time { return time.Now().Add(365 * 24 * time.Hour) }

// told begins to look: there is one.
func (y *youth) told(now time.Time) {
	y.at = now.Add(youthEvery)
	if y.shorts.at.IsZero() {
		y.shorts.at = now
	}
}

// began counts a child that was looked at from its first moment. From some number on the
// others are young, and so they are once the job has a framework.
func (y *youth) began() {
	if y.seen++; y.seen >= launched { // those that have grown up do no harm here
		y.letGrow()
	}
}

func (y *youth) letGrow() {
	if !y.grown {
		y.grown = y.job.config.Kernel.LookAtOnce(false) == nil
	}
}

// tick takes up those that have grown old, and writes what ended before.
func (y *youth) tick(now time.Time) {
	if now.Before(y.at) {
		return
	}
	list, err := y.job.config.Kernel.Young()
	if err != nil {
		y.job.warnOf("process", "young", 1, "short processes are not followed any more: %v", err)
	}
	for i := range list {
		age := time.Duration(now.UnixNano() - y.job.config.OffsetNS - int64(list[i].StartNs))
		if age >= y.grownUp(&list[i]) {
			y.takeUp(&list[i])
		}
	}
	y.at = now.Add(youthEvery)
	if len(list) == 0 { // the kernel tells of the next
		y.at = now.Add(shortEvery)
	}
	if now.Sub(y.shorts.at) >= shortEvery {
		if y.writeShorts(); len(list) == 0 && !y.shorts.news {
			y.at, y.shorts.at = never(), time.Time{}
		}
	}
}

// grownUp is the age at which one is looked at.
func (y *youth) grownUp(of *kernel.Young) time.Duration {
	if t := y.job.processes[int(of.CopyOf)]; t != nil && t.row.Framework != nil {
		return copyGrownUp
	}
	return grownUp
}

// takeUp begins to trace one.
func (y *youth) takeUp(of *kernel.Young) {
	p, err := process.Open(of.PID)
	switch {
	case err == nil && p.StartTicks == of.StartTicks:
		y.job.addChild(p)
	case err == nil, errors.Is(err, process.ErrNotFound), errors.Is(err, process.ErrExited):
		return // it has ended, and is counted
	default:
		p = &process.Process{PID: of.PID, StartTicks: of.StartTicks}
		if y.job.config.Kernel.Trace(p, y.job.config.Follow) == nil {
			y.job.addUnread(p, y.job.rowOf(p, int64(of.StartNs), int32(of.Parent), of.Execed != 0, unsignedString(of.Comm[:])))
		}
	}
	y.job.config.Kernel.TookUp(of.PID) // after it is a target: its end is reported, or counted
}

// takeUpAll begins to trace all of them: nobody else is left.
func (y *youth) takeUpAll() {
	list, _ := y.job.config.Kernel.Young()
	for i := range list {
		y.takeUp(&list[i])
	}
}

// shorts are the sums of those that ended young.
type shorts struct {
	before map[bpf.LifeShortKey]bpf.LifeShortSum
	at     time.Time // of the last look
	news   bool      // it had something
}

// FinishShorts writes the rest, once nothing more is looked at.
func (j *Job) FinishShorts() {
	y := &j.youth
	if y.shorts.at.IsZero() {
		return
	}
	from := y.shorts.at.UnixNano()
	y.writeShorts()
	now := time.Now().UnixNano()
	var rows []event.ShortProcess
	for _, of := range j.config.Kernel.TakeEnded() {
		rows = append(rows, event.ShortProcess{
			TSNS: from, EndNS: now, ParentPID: int32(of.Parent), Command: unsignedString(of.Comm[:]), Executed: of.Execed != 0,
			Count: 1, Failed: int64(of.Failed), WallNS: int64(of.EndNs - of.StartNs), CPUNS: int64(of.CpuNs),
		})
	}
	if len(rows) > 0 {
		j.config.Decoder.ShortProcesses(rows)
	}
}

// writeShorts writes what was added since the last time.
func (y *youth) writeShorts() {
	now := time.Now()
	var rows []event.ShortProcess
	y.job.config.Kernel.ShortLives(func(key bpf.LifeShortKey, sum bpf.LifeShortSum) (forget bool) {
		b := y.shorts.before[key]
		if sum.Count == b.Count {
			forget = !y.job.processes.Traced(int(key.Parent))
			if forget {
				delete(y.shorts.before, key)
			}
			return forget
		}
		rows = append(rows, event.ShortProcess{
			TSNS: y.shorts.at.UnixNano(), EndNS: now.UnixNano(), ParentPID: int32(key.Parent), Command: unsignedString(key.Comm[:]),
			Executed: key.Execed != 0,
			Count:    int64(sum.Count - b.Count), Failed: int64(sum.Failed - b.Failed), WallNS: int64(sum.WallNs - b.WallNs),
			CPUNS: int64(sum.CpuNs - b.CpuNs),
		})
		y.shorts.before[key] = sum
		return false
	})
	y.shorts.at, y.shorts.news = now, len(rows) > 0
	if len(rows) > 0 {
		y.job.config.Decoder.ShortProcesses(rows)
	}
}
