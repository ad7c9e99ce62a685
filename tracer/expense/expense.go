// Package expense adds up what a recording costs its job beside the hits of its probes: the
// programs that run at switches of threads, at system calls, at samples and when processes
// begin and end, and the tracer's own CPU time where the job would have had the CPU.
//
// The package is no part of the public API: it may change with any version.
package expense

import (
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Rates are what the programs in the kernel take, in CPUs (1: all of one), all over the
// machine and of it for the job's threads.
type Rates struct {
	Waits, IO       Pair
	Samples, Starts float64
}

// Pair is a rate of the whole machine, and of it what the job's own threads pay.
type Pair struct{ Machine, Job float64 }

// Parts are shares of the job's time. Those of the probes package budget knows.
type Parts = event.CostParts

// Interval is what was seen since the look before.
type Interval struct {
	Length time.Duration
	Rates  Rates         // at its end, by a moment in which the kernel measured them
	Own    time.Duration // CPU time of the tracer
	Job    time.Duration // CPU time of the job's processes
	Full   float64       // for how much of the time no CPU would have been idle without us, 0 to 1
	Used   time.Duration // CPU time of all processes, on all CPUs
	Beside float64       // how much our CPU time slows the job while a CPU is idle (func Beside)
}

// Account adds intervals up.
type Account struct {
	time  float64 // of the job, ns: at least one CPU's
	spent Parts   // ns
}

// JobCPUs is how many CPUs the job keeps busy, and at the least one: a job that waits for its
// device or a timer has its time as well.
func (i *Interval) JobCPUs() float64 {
	return max(1, float64(i.Job)/float64(max(i.Length, 1)))
}

// Shares are those of one interval.
func (i *Interval) Shares() Parts {
	cpus := i.JobCPUs()
	return Parts{
		Waits: i.Rates.Waits.Job / cpus, IO: i.Rates.IO.Job / cpus, Samples: i.Rates.Samples / cpus, Starts: i.Rates.Starts / cpus,
		Own: i.OwnCPUs() * (i.Full*i.jobPart() + (1-i.Full)*i.Beside) / cpus,
	}
}

// slowed is how much of its speed a thread loses while the other hardware thread of its core is
// busy: a loop in Python that takes 0.43 s of a CPU took 0.56 s so.
const slowed = 0.25

// Beside is how much the tracer's CPU time slows the job where an idle CPU takes it: its part of
// a core that two hardware threads share, one of so many, if any other runs the job.
func Beside(sharedCores bool, jobCPUs float64, cpus int) float64 {
	if !sharedCores || cpus < 2 {
		return 0
	}
	return slowed * min(1, jobCPUs/float64(cpus-1))
}

// jobPart is the job's part of the CPU time that all others than the tracer used: so much of
// what the tracer took would have been the job's.
func (i *Interval) jobPart() float64 {
	others := i.Used - i.Own
	if others <= i.Job {
		return 1
	}
	return float64(i.Job) / float64(others)
}

// Full is for how much of a time all CPUs were busy with others than the tracer: while one is
// idle, it takes nobody's time. busy are the shares of each CPU that was used, by the tracer
// as well, own is what it took of a CPU. It is taken to have run where there was most room,
// and the CPUs to be busy independently of each other.
func Full(busy []float64, own float64) float64 {
	full := 1.0
	for _, share := range slices.Sorted(slices.Values(busy)) {
		ours := min(own, share)
		own -= ours
		if ours < 1 {
			full *= (share - ours) / (1 - ours)
		}
	}
	return full
}

// OwnCPUs is how much of a CPU the tracer takes.
func (i *Interval) OwnCPUs() float64 { return float64(i.Own) / float64(max(i.Length, 1)) }

// Add adds one.
func (a *Account) Add(i *Interval) {
	over := float64(i.Length) * i.JobCPUs()
	shares := i.Shares()
	a.time += over
	a.spent.Waits += shares.Waits * over
	a.spent.IO += shares.IO * over
	a.spent.Samples += shares.Samples * over
	a.spent.Starts += shares.Starts * over
	a.spent.Own += shares.Own * over
}

// Known reports whether anything was added.
func (a *Account) Known() bool { return a.time > 0 }

// Shares are those of the job's time since the beginning.
func (a *Account) Shares() (p Parts) {
	if a.time <= 0 {
		return p
	}
	p.Waits, p.IO, p.Samples, p.Starts, p.Own = a.spent.Waits/a.time, a.spent.IO/a.time, a.spent.Samples/a.time, a.spent.Starts/a.time,
		a.spent.Own/a.time
	return p
}
