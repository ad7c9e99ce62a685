package tracer

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/counter"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/places"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/sampler"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// Session is one recording.
type Session struct {
	options  Options
	chosen   selection
	plans    plan.Cache
	sink     Sink
	kernel   *kernel.Programs
	probes   *probeSet
	classes  *classes
	stubs    *accel.HostStubs
	decoder  *decoder
	governor *budget.Governor
	sampler  *sampler.Sampler // nil: no samples
	walks    *stacks.Walks    // nil: nothing takes stacks
	counters *counter.Sampler // nil without counters

	processes map[int]*tracedProcess
	files     map[process.FileID]*tracedFile
	planning  map[process.FileID]*planning // what is looked into for long
	planned   chan *planning
	patience  patience
	// returnHazards are the kernel's; withoutReturns is the one for which there
	// are no return probes.
	returnHazards  []features.Hazard
	withoutReturns *features.Hazard
	detaching      *kernel.Detacher
	running        bool     // what is found from now on, the job has loaded meanwhile
	steps          []*probe // one call of each is about one training step
	pastSteps      uint64   // calls of those that were there before
	leaving        leavingFiles
	filtered       *filter.Sink    // in front of sink; nil where no row is left out
	demoted        map[string]bool // anchor groups that are in slices
	foreign        uint64          // foreign hits at the last look
	unheard        uint64          // records of processes that the kernel had no room for, likewise
	lossesAt       time.Time
	scopes         scopeSweep
	open           openLook

	offsetNS int64
	requests requests
	stats    statistics
}

// Report says what a Session found when it attached.
type Report struct {
	Processes []Process
	Libraries []LibraryReport
	// LeftOut is a sentence on the groups that the budget leaves out, since this kernel
	// cannot have them in slices; empty if there are none.
	LeftOut string
}

// LibraryReport counts the probes of one file.
type LibraryReport struct {
	Path     string
	Planned  int
	Attached int
	Skipped  int // no site, or none that is safe; the probe table says why
}

// Open loads the programs, finds the processes and puts the anchor probes in.
// The errors wrap ErrNotPermitted, ErrUnsupported, ErrUnknownGroup, ErrUnknownLevel
// or the reasons of package process. The caller must Close the Session.
func Open(options Options, sink Sink) (*Session, error) {
	if err := options.resolve(); err != nil {
		return nil, err
	}
	var filtered *filter.Sink
	if options.Filter.ByRow() {
		filtered = &filter.Sink{Sink: sink, Filter: &options.Filter}
		sink = filtered
	}
	groups, err := options.SelectGroups()
	if err != nil {
		return nil, err
	}
	for _, check := range []func() error{features.CheckKillSwitch, features.CheckNamespaces, features.CheckPermitted} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	plans := plan.NewCache()
	if options.catalog != nil {
		groups, plans = options.catalog, plan.Cache{}
	}
	targets, err := openTargets(options.PIDs)
	if err != nil {
		return nil, err
	}
	if options.takesStacks() {
		sampler.FindKernelTextBeside() // beside the probing, for the programs of samples
	}
	can := *features.Probe()
	if err := can.Check(); err != nil {
		return nil, err
	}
	if err := features.CheckHazards(&can, slices.Concat(options.PIDs, options.Starting)); err != nil {
		return nil, err
	}
	if options.PerfEvents {
		can.UprobeMulti = false
	}
	k, sampler, noSampler, err := options.load(&can)
	if err != nil {
		return nil, err
	}
	s := &Session{
		options: options, chosen: newSelection(groups, options.Budget, &can), plans: plans, sink: sink, kernel: k, probes: newProbeSet(places.Most{Places: options.limit("probes"), Files: options.limit("files")}), classes: newClasses(), stubs: accel.NewHostStubs(),
		processes: map[int]*tracedProcess{}, files: map[process.FileID]*tracedFile{}, detaching: kernel.NewDetacher(), demoted: map[string]bool{},
		planning: map[process.FileID]*planning{}, planned: make(chan *planning, process.MaxLibraries),
		offsetNS: clockOffset(), scopes: scopeSweep{every: orphanWait}, leaving: leavingFiles{rest: cmp.Or(options.unusedRest, fileRest)},
	}
	s.filtered = filtered
	s.findReturnHazards(&can)
	s.decoder = newDecoder(sink, s.probes.table, s.classes, s.offsetNS)
	s.decoder.stacks.SetLimit(options.limit("stacks"))
	s.decoder.accelerators.AddNamer(s.decoder.cuda)
	s.decoder.accelerators.AddNamer(s.stubs)
	s.decoder.owners = append(s.decoder.owners, s.classes, s.stubs)
	s.governor = newGovernor(s, kernel.Calibrate(k), slicesHere(&can))
	s.openSampler(sampler, noSampler)
	s.openCounters(counter.Options{})
	s.chosen.warn(s.warn)
	if err := s.start(targets); err != nil {
		s.Close()
		return nil, err
	}
	k.LoadLater()
	return s, nil
}

func openTargets(pids []int) ([]*process.Process, error) {
	var targets []*process.Process
	for _, pid := range pids {
		p, err := process.Open(pid)
		if err != nil {
			return nil, err
		}
		targets = append(targets, p)
	}
	return targets, nil
}

// expect waits for a process to exec the job.
func (s *Session) expect(pid int) error {
	if err := s.checkReturns(pid); err != nil {
		return err
	}
	s.follow(pid)
	ticks, err := process.StartTicks(pid)
	if err != nil {
		return err
	}
	t := newTracedProcess(&process.Process{PID: pid, StartTicks: ticks}, Process{PID: int32(pid), StartedNS: time.Now().UnixNano()})
	t.rescanAt = time.Now().Add(365 * 24 * time.Hour)
	s.processes[pid] = t
	return s.kernel.Trace(t.process, s.options.Follow)
}

func (s *Session) start(targets []*process.Process) error {
	if err := s.kernel.WatchLife(); err != nil {
		return err
	}
	for _, pid := range s.options.Starting {
		if err := s.expect(pid); err != nil {
			return err
		}
	}
	for _, p := range targets {
		if err := s.addTarget(p); err != nil {
			return err
		}
		if !s.options.Follow {
			continue
		}
		children, err := process.Children(p.PID)
		if err != nil {
			return err
		}
		for _, pid := range children {
			child, err := process.Open(pid)
			if err != nil {
				continue
			}
			s.addChild(child)
		}
	}
	s.prepareTables()
	s.startSampler()
	return s.governor.Begin()
}

// addTarget begins to trace a process that the user named. Without the only one
// there is nothing to record; without one of many the recording goes on.
func (s *Session) addTarget(p *process.Process) error {
	err := s.addProcess(p)
	if err == nil {
		return nil
	}
	if len(s.options.PIDs)+len(s.options.Starting) == 1 || errors.Is(err, features.ErrNotPermitted) {
		return err
	}
	s.drop(s.processes[p.PID], err)
	return nil
}

// clockOffset is the Unix epoch minus CLOCK_MONOTONIC, which the kernel stamps
// records with: the middle of the tightest of a few readings.
func clockOffset() int64 {
	best, offset := int64(1<<62), int64(0)
	for range 16 {
		var before, wall, after unix.Timespec
		unix.ClockGettime(unix.CLOCK_MONOTONIC, &before)
		unix.ClockGettime(unix.CLOCK_REALTIME, &wall)
		unix.ClockGettime(unix.CLOCK_MONOTONIC, &after)
		if width := after.Nano() - before.Nano(); width < best {
			best, offset = width, wall.Nano()-before.Nano()-width/2
		}
	}
	return offset
}

// ClockOffsetNS is the Unix epoch minus CLOCK_MONOTONIC, nanoseconds.
func (s *Session) ClockOffsetNS() int64 { return s.offsetNS }

// Report says what was found when the session attached.
func (s *Session) Report() Report {
	r := Report{LeftOut: s.chosen.says()}
	for _, t := range s.processes {
		r.Processes = append(r.Processes, t.row)
	}
	slices.SortFunc(r.Processes, func(a, b Process) int { return int(a.PID) - int(b.PID) })
	for _, f := range s.files {
		r.Libraries = append(r.Libraries, f.report(s.probes))
	}
	slices.SortFunc(r.Libraries, func(a, b LibraryReport) int { return strings.Compare(a.Path, b.Path) })
	return r
}

// do runs something on the decoder's goroutine, some time later; never, once
// that has failed.
func (s *Session) do(f func(*decoder)) { s.requests.add(f) }

func (s *Session) warn(w Warning) {
	s.do(func(d *decoder) { d.keep(d.sink.Warning(w)) })
}

// Run records until the context ends, every process has exited, or writing
// fails. It returns nil in the first two cases, after everything that the
// kernel recorded has reached the sink.
func (s *Session) Run(ctx context.Context) error {
	calls, err := s.kernel.OpenCallRing()
	if err != nil {
		return err
	}
	defer calls.Close()
	heard, err := s.kernel.OpenLifeRing()
	if err != nil {
		return err
	}
	defer heard.Close()

	if s.sampler != nil {
		if s.decoder.sampleRing, err = s.sampler.Reader(); err != nil {
			return err
		}
		defer s.decoder.sampleRing.Close()
	}

	stop := make(chan struct{})
	decoded := make(chan error, 1)
	go func() { decoded <- s.decode(calls, stop) }()
	stopCounters := s.runCounters()
	s.running = true
	managed := s.manage(ctx, heard, decoded)
	stopCounters()
	if failed, ok := managed.(decodeError); ok {
		return failed.error
	}
	managed = errors.Join(managed, s.kernel.StopRecording(), s.governor.Finish())
	s.detachAll()
	if s.sampler != nil {
		s.sampler.Stop()
	}
	if n := heard.Damaged.Load(); n > 0 {
		s.do(func(d *decoder) { d.damaged += n })
	}
	close(stop)
	return errors.Join(managed, <-decoded)
}

// decodeError is a failure of the decoder, which has ended.
type decodeError struct{ error }

// decode reads the ring until stop is closed and the ring is empty.
func (s *Session) decode(ring *kernel.CallRing, stop <-chan struct{}) error {
	var record ringbuf.Record
	wait := pollWait
	for {
		stopping := false
		select {
		case <-stop:
			stopping = true
		default:
		}
		s.serve()
		if !stopping {
			ring.Wakeup.Wait(wait)
		}
		n, err := s.decoder.poll(ring.Reader, &record)
		if err == nil {
			err = s.decoder.failed
		}
		if err != nil {
			return err
		}
		s.stats.update(&s.decoder.totals)
		if stopping && n == 0 {
			return s.finish()
		}
		wait = s.nextWait(wait, n > 0)
	}
}

// pollWait is how long the reader sleeps when the ring is empty. The programs
// do not wake it: wake-ups would cost the job more than the records.
const (
	pollWait = 10 * time.Millisecond
	// idleWait is how long that becomes while the job makes no calls: for samples
	// alone it is often enough. Each look wakes the Go scheduler, which takes longer
	// over it than the look itself.
	idleWait = 100 * time.Millisecond
	// restWait is what it grows to where no sample comes either: a job that sleeps.
	restWait = 250 * time.Millisecond
	// A smaller ring than idleRing, bytes, could be full after so long.
	idleRing     = 16 << 20
	tinyIdleWait = 40 * time.Millisecond
)

// nextWait is how long to sleep after a look that followed a sleep of wait and
// found calls, or none.
func (s *Session) nextWait(wait time.Duration, calls bool) time.Duration {
	switch {
	case calls || s.decoder.behind:
		return pollWait
	case s.options.BufferBytes < idleRing:
		return min(2*wait, tinyIdleWait)
	case s.decoder.sampled || wait < idleWait:
		return min(2*wait, idleWait)
	}
	return min(wait+wait/32, restWait)
}

// serve runs what others asked the decoder to do.
func (s *Session) serve() {
	for queue := s.requests.take(); len(queue) > 0; queue = s.requests.take() {
		for _, f := range queue {
			f(s.decoder)
		}
	}
}

// finish writes what is only known at the end, on the decoder's goroutine.
func (s *Session) finish() error {
	s.governor.FinishWeights()
	s.serve()
	s.decoder.releaseLate(true)
	if s.open.wanted {
		calls, epoch := s.openCollectives()
		s.decoder.writeOpen(time.Now().UnixNano(), epoch, calls)
	}
	if err := s.unfinished(); err != nil {
		return err
	}
	s.decoder.accelerators.ReleaseAll()
	if err := s.decoder.flush(); err != nil {
		return err
	}
	if err := s.writeLosses(); err != nil {
		return err
	}
	if err := s.sink.Probes(s.probeRows()); err != nil {
		return err
	}
	s.stats.update(&s.decoder.totals)
	s.stats.end(&s.decoder.totals, s.governor.Cost(len(s.probes.all())))
	return s.decoder.failed
}

// unfinished writes the calls and scopes that are still open.
func (s *Session) unfinished() error {
	s.decoder.slicing.Store(false)
	calls, err := s.kernel.OpenCalls()
	for _, c := range calls {
		s.decoder.unfinished(c)
	}
	return err
}

// Close takes everything out of the kernel.
func (s *Session) Close() {
	s.detachAll()
	if s.sampler != nil {
		s.sampler.Close()
	}
	if s.walks != nil {
		s.walks.Close() // it looks into the kernel's maps until then
	}
	s.kernel.Close()
	if s.counters != nil {
		s.counters.Close()
	}
	s.governor.Close()
	s.classes.close()
	s.decoder.remote.close()
	s.stubs.Close()
	for _, f := range s.files {
		f.source.Close()
	}
}

func hostname() string {
	name, _ := os.Hostname()
	return name
}
