package job

import (
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probes"
)

// What had no turn when its file was planned is planned while the recording goes on: file
// by file, a little at a time, and with rests in between, so that a file which takes a
// minute of the CPU takes a tenth of one for ten minutes.

const (
	// restRound is how much of the CPU is used between two rests, and restShare how many
	// times as long these are.
	restRound = 200 * time.Millisecond
	restShare = 9
)

// backlog is the files of which something is still to be planned.
type backlog struct {
	job     *Job
	waiting []*planRest // the first is being planned
	done    chan *planRest
}

// planRest is what is left of one file.
type planRest struct {
	found     *probes.Found // whose Source it has open
	rest      *plan.Rest
	later     *plan.Plan // what was planned last
	err       error
	functions int // that had no turn at first
}

func newBacklog(j *Job) backlog { return backlog{job: j, done: make(chan *planRest, 1)} }

// begin takes what is left of a file that was just added.
func (b *backlog) begin(found *probes.Found) {
	if found.Plan.Rest == nil {
		return
	}
	rest := found.Plan.Rest
	found.Plan.Rest = nil
	found.Source.Share()
	b.waiting = append(b.waiting, &planRest{found: found, rest: rest, functions: rest.Len()})
	if len(b.waiting) == 1 {
		b.next(0)
	}
}

// next plans some more of the first file, after a rest.
func (b *backlog) next(pause time.Duration) {
	for len(b.waiting) > 0 && !b.job.config.Probes.Holds(b.waiting[0].found) {
		b.drop() // no process maps it any more
	}
	if len(b.waiting) == 0 {
		return
	}
	one := b.waiting[0]
	go func() {
		time.Sleep(pause)
		elf.Sparing(func() {
			one.err = elf.Guard(func() { one.later = one.rest.Next(restRound) })
		})
		b.done <- one
	}()
}

// drop lets go of the first file.
func (b *backlog) drop() {
	b.waiting[0].found.Source.Close()
	b.waiting[0] = nil
	b.waiting = b.waiting[1:]
}

// PlannedLater gives what AttachLater takes: functions that had no turn at first.
func (b *backlog) PlannedLater() <-chan *planRest { return b.done }

// AttachLater puts the probes of such functions in.
func (b *backlog) AttachLater(one *planRest) error {
	held := b.job.config.Probes.Holds(one.found)
	pause := time.Duration(0)
	switch {
	case one.err != nil:
		b.job.warnOf("library", one.found.Library.Path, one.rest.Len(), "functions that had no turn when it was planned have no probes: %v",
			one.err)
		b.drop()
	case held:
		pause = restShare * one.later.Used
		if t := b.job.processes[one.found.Process.PID]; t != nil {
			t.plans.took += one.later.Used
		}
		one.rest = one.later.Rest
		one.later.Keep(b.job.config.Filter)
		if err := b.job.config.Probes.AddLater(one.found, one.later); err != nil {
			return err
		}
		if one.rest == nil {
			b.job.config.Probes.TellLater(one.found, one.functions)
			b.drop()
		}
	}
	b.next(pause)
	return nil
}
