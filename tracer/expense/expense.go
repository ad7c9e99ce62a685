// Package expense adds up what a recording costs its job beside the hits of its probes: the
// programs that run at switches of threads, at system calls, at samples and when processes
// begin and end, and the tracer's own CPU time where the job would have had the CPU.
//
// The package is no part of the public API: it may change with any version.
package expense

import (
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
	Full   float64       // how much of the machine's CPU time was used, 0 to 1
	Used   time.Duration // that, of all CPUs
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
		Own: i.OwnCPUs() * i.Full * i.jobPart() / cpus,
	}
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
	p.Waits, p.IO, p.Samples, p.Starts, p.Own = a.spent.Waits/a.time, a.spent.IO/a.time, a.spent.Samples/a.time, a.spent.Starts/a.time, a.spent.Own/a.time
	return p
}
