package counter

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/threadclock"
)

// Options are for Open.
type Options struct {
	Files Files
	// NVML is the path of libnvidia-ml, "" to let the dynamic linker find it.
	NVML string
	// Clock is what readings are stamped with, nanoseconds since the Unix epoch;
	// nil is the system's.
	Clock func() int64
}

// Availability says whether a source is there.
type Availability struct {
	Source string
	What   string // what it tells, for people
	Err    error  // why it is not there; nil if it is
}

// Failure is a source that could not be read, some of the times.
type Failure struct {
	Source string
	Count  int64
	Err    error // the last one
}

// Sampler takes readings of every source that is there.
type Sampler struct {
	options   Options
	job       job
	sources   []*sampled
	available []Availability
	self      map[series]point
	used      time.Duration // processor time of earlier readings
}

type sampled struct {
	name     string
	source   source
	history  map[series]point
	failures Failure
	backward int64
}

// job is the processes whose control groups and networks are read.
type job struct {
	mu   sync.Mutex
	pids []int
}

func (j *job) processes() []int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.pids)
}

// sources lists every kind of source.
var sources = []struct {
	name, what string
	open       func(*Sampler) (source, error)
}{
	{"cpu", "time of each processor", func(s *Sampler) (source, error) { return openCPU(s.options.Files) }},
	{"pressure", "time that tasks waited for processors, memory, disks", func(s *Sampler) (source,
		error) {
		return openPressure(s.options.Files)
	}},
	{"frequency", "clocks of processors", func(s *Sampler) (source, error) { return openFrequency(s.options.Files) }},
	{"thermal", "temperatures, and how long processors were slowed down for heat", func(s *Sampler) (source,
		error) {
		return openThermal(s.options.Files)
	}},
	{"energy", "energy of processors and memory, by RAPL", func(s *Sampler) (source, error) { return openEnergy(s.options.Files) }},
	{"memory", "the machine's memory", func(s *Sampler) (source, error) { return openMemory(s.options.Files) }},
	{"cgroup", "the job's control groups: memory, processor time, throttling", func(s *Sampler) (source,
		error) {
		return openCgroup(s.options.Files, &s.job)
	}},
	{"disk", "disks", func(s *Sampler) (source, error) { return openDisk(s.options.Files) }},
	{"network", "interfaces of the job's network namespace", func(s *Sampler) (source, error) { return openNetwork(s.options.Files, &s.job) }},
	{"infiniband", "InfiniBand and RoCE ports", func(s *Sampler) (source, error) { return openInfiniband(s.options.Files) }},
	{"nvidia", "NVIDIA GPUs, by NVML", func(s *Sampler) (source, error) { return openNVML(s.options.NVML) }},
	{"amd", "AMD GPUs, by the amdgpu driver", func(s *Sampler) (source, error) { return openAMD(s.options.Files) }},
	{"neuron", "AWS Neuron devices, by their driver", func(s *Sampler) (source, error) { return openNeuron(s.options.Files) }},
}

// present is s if its file can be read.
func present(s source, path string) (source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f.Close()
	return s, nil
}

// Open finds out which sources are there. Close frees what they hold.
func Open(options Options) *Sampler {
	if options.Clock == nil {
		options.Clock = func() int64 { return time.Now().UnixNano() }
	}
	s := &Sampler{options: options, self: map[series]point{}}
	for _, kind := range sources {
		opened, err := kind.open(s)
		s.available = append(s.available, Availability{kind.name, kind.what, err})
		if err == nil {
			s.sources = append(s.sources, &sampled{name: kind.name, source: opened, history: map[series]point{}})
		}
	}
	return s
}

// Available says of every source whether it is there.
func (s *Sampler) Available() []Availability { return s.available }

// Follow adds a process of the job. It may be called while Run runs.
func (s *Sampler) Follow(pid int) {
	s.job.mu.Lock()
	defer s.job.mu.Unlock()
	if !slices.Contains(s.job.pids, pid) {
		s.job.pids = append(s.job.pids, pid)
	}
}

// Forget removes a process that has ended.
func (s *Sampler) Forget(pid int) {
	s.job.mu.Lock()
	defer s.job.mu.Unlock()
	s.job.pids = slices.DeleteFunc(s.job.pids, func(p int) bool { return p == pid })
}

// Run takes readings now, every so often, and a last time when the context
// ends, all on one thread.
func (s *Sampler) Run(ctx context.Context, every time.Duration, emit func([]Reading)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	emit(s.Read())
	for {
		select {
		case <-ctx.Done():
			emit(s.Read())
			return
		case <-ticker.C:
			emit(s.Read())
		}
	}
}

// Read takes one reading of every source, the sampler's own processor time
// among them. Totals appear from the second call on.
func (s *Sampler) Read() []Reading {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadclock.Now()
	var readings []Reading
	for _, each := range s.sources {
		r := &round{name: each.name, clock: s.options.Clock, now: s.options.Clock(), history: each.history}
		if err := each.source.read(r); err != nil {
			each.failures = Failure{each.name, each.failures.Count + 1, err}
		}
		each.backward += int64(r.backward)
		s.used += r.used
		readings = append(readings, r.readings...)
	}
	s.used += threadclock.Now() - began
	own := &round{name: "self", clock: s.options.Clock, now: s.options.Clock(), history: s.self}
	own.total(machine, "sampler_cpu", Nanoseconds, float64(s.used))
	return append(readings, own.readings...)
}

// Used is the processor time that all readings so far took. What a driver's library does
// on threads of its own is not in it.
func (s *Sampler) Used() time.Duration { return s.used }

// Failures lists the sources that could not be read each time, and those whose
// totals fell. Not while Run runs.
func (s *Sampler) Failures() (failures []Failure) {
	for _, each := range s.sources {
		if each.failures.Count > 0 {
			failures = append(failures, each.failures)
		}
		if each.backward > 0 {
			failures = append(failures, Failure{each.name, each.backward, fmt.Errorf("totals that fell since the reading before: no value " +
				"for that time")})
		}
	}
	return failures
}

// Close frees what the sources hold.
func (s *Sampler) Close() {
	for _, each := range s.sources {
		if c, ok := each.source.(interface{ close() }); ok {
			c.close()
		}
	}
}
