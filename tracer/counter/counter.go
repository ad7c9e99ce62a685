// Package counter reads what a machine tells about itself while a job runs: its
// processors, memory, disks, networks and accelerators, each source through the
// files or the library that its driver keeps, none through the job.
//
// A reading says when it was taken and over what time it holds, both measured:
// a sampler that the scheduler made wait says so in the data.
//
// The package is no part of the public API: it may change with any version.
package counter

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Reading is one value of one counter.
type Reading = event.Counter

// Kind says what a value is.
type Kind = event.CounterKind

// The kinds of values.
const (
	Gauge = event.Gauge
	Delta = event.Delta
	Mean  = event.Mean
)

// Units of values.
const (
	Nanoseconds = "ns"
	Bytes       = "bytes"
	Percent     = "percent"
	Count       = "count"
	Watts       = "watts"
	Joules      = "joules"
	Celsius     = "celsius"
	Hertz       = "hertz"
	PerSecond   = "bytes_per_second"
	Flag        = "flag" // 1 or 0
)

// place is what a reading is of.
type place struct {
	device, scope string
	id, pid       int32 // -1 is absent
}

var machine = place{id: -1, pid: -1}

func device(name string) place { return place{device: name, id: -1, pid: -1} }

func accelerator(id int, name string) place { return place{device: name, id: int32(id), pid: -1} }

func (p place) within(scope string) place { p.scope = scope; return p }

func (p place) of(pid int32) place { p.pid = pid; return p }

// source is one kind of place that counters come from.
type source interface {
	// read takes one reading of everything. What it already told the round when
	// it fails stays.
	read(*round) error
}

// round is one reading of one source, which fills it in.
type round struct {
	name     string
	clock    func() int64
	now      int64
	history  map[series]point
	readings []Reading
	backward int           // totals that fell: the counter began anew
	used     time.Duration // processor time spent on another thread
}

type series struct {
	place
	name string
}

type point struct {
	ts    int64
	value float64
}

// during stamps what f reads with the middle of the time that it took.
func (r *round) during(f func() error) error {
	before := r.clock()
	err := f()
	r.now = before + (r.clock()-before)/2
	return err
}

// gauge adds a value as it is.
func (r *round) gauge(at place, name, unit string, value float64) {
	key := series{at, name}
	reading := r.reading(at, name, unit, Gauge, value)
	if before, ok := r.history[key]; ok {
		period := r.now - before.ts
		reading.PeriodNS = &period
	}
	r.history[key] = point{r.now, value}
	r.readings = append(r.readings, reading)
}

// total takes a value that only grows and adds what came since the last one;
// nothing the first time. A total that fell began anew: what was added since is
// not known, and that interval stays empty.
func (r *round) total(at place, name, unit string, value float64) {
	key := series{at, name}
	before, ok := r.history[key]
	r.history[key] = point{r.now, value}
	switch {
	case !ok || r.now <= before.ts:
		return
	case value < before.value:
		r.backward++
		return
	}
	period := r.now - before.ts
	reading := r.reading(at, name, unit, Delta, value-before.value)
	reading.PeriodNS = &period
	r.readings = append(r.readings, reading)
}

// rest remembers a total of something that was never used yet, and adds nothing.
func (r *round) rest(at place, name string, value float64) {
	r.history[series{at, name}] = point{r.now, value}
}

// mean adds an average; period 0 is unknown.
func (r *round) mean(at place, name, unit string, value float64, period int64) {
	reading := r.reading(at, name, unit, Mean, value)
	if period > 0 {
		reading.PeriodNS = &period
	}
	r.readings = append(r.readings, reading)
}

func (r *round) reading(at place, name, unit string, kind Kind, value float64) Reading {
	reading := Reading{TSNS: r.now, Source: r.name, Device: at.device, Scope: at.scope, Name: name, Kind: kind, Unit: unit, Value: value}
	if at.id >= 0 {
		reading.DeviceID = &at.id
	}
	if at.pid >= 0 {
		reading.PID = &at.pid
	}
	return reading
}
