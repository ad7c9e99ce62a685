package tracer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
	"github.com/ebpfprof/ebpfprof/tracer/job"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/mapped"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probes"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
	"github.com/ebpfprof/ebpfprof/tracer/reader"
	"github.com/ebpfprof/ebpfprof/tracer/sampler"
	"github.com/ebpfprof/ebpfprof/tracer/slots"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// Session is one recording.
type Session struct {
	options  Options
	sink     Sink
	kernel   *kernel.Programs
	probes   *probes.Set
	classes  *mapped.Classes
	stubs    *accel.HostStubs
	decoder  *decode.Decoder
	governor *budget.Governor
	sampling sampling
	taking   *taking
	counters counting

	job      *job.Job
	filtered *filter.Sink // in front of sink; nil where no row is left out
	offsetNS int64
	stats    *statistics
	refused  refusals
	thrifty  atomic.Bool // the tracer takes too much of the CPUs

	// watchedUntil is when the probes were taken away: of what is open from then on no end can be seen, and reading the
	// rest of the rings may take seconds.
	watchedUntil time.Time
}

// Report says what a Session found when it attached.
type Report struct {
	Processes []Process
	Libraries []LibraryReport
	// LeftOut is a sentence on the groups that the budget leaves out, since this kernel
	// cannot have them in slices; empty if there are none.
	LeftOut string
	// Unfound are sentences on what was asked for beside the catalog and is in no file of the job so far.
	Unfound []string
}

// LibraryReport counts the probes of one file.
type LibraryReport = probes.Report

// Open loads the programs, finds the processes and puts the anchor probes in.
// The errors wrap ErrNotPermitted, ErrUnsupported, ErrUnknownGroup, ErrUnknownLevel,
// the reasons of package process, or the context's: one that is done ends the opening with
// nothing left in the kernel. The caller must Close the Session.
func Open(ctx context.Context, options Options, sink Sink) (*Session, error) {
	if err := options.resolve(); err != nil {
		return nil, err
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
	reader.Begin()
	targets, err := openTargets(options.PIDs)
	if err != nil {
		return nil, err
	}
	// Beside the probing, for what is loaded then.
	bpf.ReadKernelTypesBeside()
	if options.takesStacks() {
		sampler.FindKernelTextBeside()
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
	if err := over(ctx); err != nil {
		return nil, err
	}
	k, loaded, refused, err := options.load(&can, calibrate)
	if err != nil {
		return nil, err
	}
	s := build(options, groups, &can, sink, k, loaded, refused)
	if err := s.start(ctx, targets); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// over is why no recording is opened any more; nil: one is.
func over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("opening a recording: %w", err)
	}
	return nil
}

// build makes the parts of a Session, each of those below it: kernel, rows and decoder,
// probes, governor, job. None of them knows one that is made later, nor the Session.
func build(options Options, groups []spec.Group, can *features.Set, sink Sink, k *kernel.Programs, loaded *sampler.Sampler,
	refused error) *Session {
	plans := plan.NewCache()
	if options.catalog != nil {
		groups, plans = options.catalog, plan.Hasty(options.times.planning)
	}
	s := &Session{
		options: options, kernel: k, classes: mapped.NewClasses(), stubs: accel.NewHostStubs(), offsetNS: clockOffset(), stats: &statistics{},
	}
	s.counters = openCounters(options.Counters, s.offsetNS)
	if options.Filter.ByRow() {
		s.filtered = &filter.Sink{To: sink, Filter: &options.Filter}
		sink = s.filtered
	}
	s.sink = sink
	table := &probetable.Table{}
	s.decoder = decode.New(decode.Config{
		Sink: sink, Probes: table, OffsetNS: s.offsetNS, ProbesTook: probesTook(k), Classes: s.classes, Kernels: []accel.Namer{s.stubs},
		Owners: []decode.Owner{s.classes, s.stubs}, Stacks: options.limit("stacks"), Waits: options.OffCPU > 0,
		RanOut: s.counters.tellHeld, GiveUpIO: func() { loaded.GiveUpIO() },
	})
	decoder := s.decoder
	told, warn := told{decoder, s.counters.history}, func(w Warning) { writeWarning(decoder, w) }
	s.sampling = newSampling(&options, k, loaded, refused, s.decoder.Rows.Stacks, warn)
	s.taking = &taking{options: &options, kernel: k, warn: warn, stacks: loaded != nil && options.takesStacks(), lines: s.stats.rowsByLine}
	chosen, detaching := probes.Select(groups, options.Budget, can), kernel.NewDetacher()
	processes, thinned := job.Processes{}, weights.Thinned{}
	s.probes = probes.New(probes.Config{
		Kernel: k, Detaching: detaching, Chosen: chosen, Most: slots.Amount{Slots: options.limit("probes"), Files: options.limit("files")},
		Hazards: probes.ReturnHazards(cmp.Or(options.release, features.KernelRelease()), can), Shared: options.Follow,
		Unused:  options.times.unusedRest,
		Prepare: s.taking.prepare, Table: table, Thinned: thinned, Job: processes, Decoder: told, Warn: warn,
	})
	cost := kernel.Calibrate(k)
	if options.hitCost != nil {
		cost = *options.hitCost
	}
	s.governor = budget.New(budget.Config{
		Budget: options.Budget, NoSlices: !probes.SlicesHere(can), Cost: cost, Probes: s.probes.Governed(),
		Job: governedJob{processes, s.taking, s.probes}, Switches: switches{k}, Rows: heldRows{s.decoder}, Thinned: thinned,
		Nodes: s.decoder.Clocks.Nodes, Steps: s.decoder.Clocks.Steps, Patient: options.patient(),
		Threads: func() (progress.Threads, error) { return kernel.NewTaskList() }, Warn: warn,
	})
	keepers := []job.Keeper{s.classes, s.stubs, acceleratorMaps{s.decoder.Runtimes}, s.decoder.Modules, countedJob{s.counters.history}}
	if s.counters.sampler != nil {
		keepers = append(keepers, countedJob{s.counters.sampler})
	}
	s.job = job.New(job.Config{
		Kernel: k, Detaching: detaching, Processes: processes, Probes: s.probes, Walks: s.sampling.walks, Groups: chosen.Groups,
		Filter: &options.Filter, Plans: plans, Named: slices.Concat(options.PIDs, options.Starting), Follow: options.Follow,
		OffsetNS: s.offsetNS, Keepers: keepers, AllowUserMounts: options.AllowUserMounts, Decoder: told, Warn: warn,
	})
	chosen.Warn(warn)
	return s
}

// calibrate measures what a Session asks for when it is made, while the verifier looks at the
// programs of samples. Nothing is traced yet, so that these are the only hits.
func calibrate(k *kernel.Programs) {
	kernel.Calibrate(k)
	probesTook(k)
}

// openTargets opens the processes that were named. One that keeps its readers waiting is left
// out, with a warning, if there are others.
func openTargets(pids []int) ([]*process.Process, error) {
	var targets []*process.Process
	var late error
	for _, pid := range pids {
		p, err := process.Open(pid)
		if errors.Is(err, reader.ErrLate) {
			late = err
			continue
		}
		if err != nil {
			return nil, err
		}
		targets = append(targets, p)
	}
	if len(targets) == 0 && late != nil {
		return nil, late
	}
	return targets, nil
}

func (s *Session) start(ctx context.Context, targets []*process.Process) error {
	if err := s.kernel.WatchLife(); err != nil {
		return err
	}
	for _, pid := range s.options.Starting {
		if err := s.job.Expect(pid); err != nil {
			return err
		}
	}
	if err := each(ctx, targets, s.job.Begin); err != nil {
		return err
	}
	// Before files are looked into, which takes seconds when none of them was ever seen.
	if s.sampling.start(ctx, &s.options, s.warn) {
		s.noteTimes()
	}
	if s.options.looking != nil {
		s.options.looking()
	}
	if err := each(ctx, targets, s.job.Add); err != nil {
		return err
	}
	if err := over(ctx); err != nil {
		return err
	}
	return s.governor.Begin()
}

// each does something for each process until the context ends.
func each(ctx context.Context, targets []*process.Process, do func(*process.Process) error) error {
	for _, p := range targets {
		if err := over(ctx); err != nil {
			return err
		}
		if err := do(p); err != nil {
			return err
		}
	}
	return nil
}

// mostTimed is how many threads have their times read when sampling begins. Those of others count from their first
// sample on.
const mostTimed = 4096

// noteTimes reads what the threads have spent when sampling begins: their samples are read later, when the probes are
// in place, and by then they have spent more.
func (s *Session) noteTimes() {
	left := mostTimed
	for _, pid := range s.job.PIDs() {
		timed := process.TimedThreads(pid, left)
		left -= len(timed)
		s.do(func(d *decode.Decoder) { d.SampledFrom(int32(pid), timed) })
	}
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
	accounts := s.probes.Accounts()
	return Report{Processes: s.job.Rows(), Libraries: accounts.Reports(), LeftOut: accounts.LeftOut(), Unfound: s.job.Unfound()}
}

// do runs something on the decoder's goroutine, some time later; never, once
// that has failed.
func (s *Session) do(f func(*decode.Decoder)) { s.decoder.Do(f) }

func (s *Session) warn(w Warning) { writeWarning(s.decoder, w) }

func writeWarning(d *decode.Decoder, w Warning) {
	d.Write(func(sink Sink) error { return sink.Write(&event.Batch{Warnings: []event.Warning{w}}) })
}

// Run records until the context ends, every process has exited, or writing
// fails. It returns nil in the first two cases, after everything that the
// kernel recorded has reached the sink.
func (s *Session) Run(ctx context.Context) error {
	s.kernel.LoadLater()
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

	rings := decode.Rings{Calls: calls, CallBytes: s.options.BufferBytes, Patient: s.options.patient(), Slicing: s.kernel.DetailOn,
		Thrifty: &s.thrifty}
	if sampler := s.sampling.sampler; sampler != nil {
		if rings.Samples, err = sampler.Reader(); err != nil {
			return err
		}
		defer rings.Samples.Close()
	}

	stop := make(chan struct{})
	decoded := make(chan error, 1)
	go func() { decoded <- s.decode(rings, stop) }()
	stopCounters := s.runCounters()
	s.probes.Run()
	managed := (&manager{Session: s, watch: watchLook{off: s.options.watchAll}}).manage(ctx, heard, decoded)
	stopCounters()
	if failed, ok := managed.(decodeError); ok {
		return failed.error
	}
	s.watchedUntil = time.Now()
	managed = errors.Join(managed, s.kernel.StopRecording(), s.governor.Finish())
	s.job.FinishShorts()
	s.job.WarnUnfound()
	s.tellLate()
	s.detachAll()
	if s.sampling.sampler != nil {
		s.sampling.sampler.Stop()
		s.do(func(d *decode.Decoder) {
			d.Rows.Out.Keep(d.HeldIO(s.sampling.sampler.HeldIO(), math.MaxUint64))
		})
	}
	if n := heard.Damaged.Load(); n > 0 {
		s.do(func(d *decode.Decoder) { d.Damage(n) })
	}
	close(stop)
	return errors.Join(managed, <-decoded)
}

// decodeError is a failure of the decoder, which has ended.
type decodeError struct{ error }

// decode reads the rings until stop is closed and they are empty, and writes what is only
// known then.
func (s *Session) decode(rings decode.Rings, stop <-chan struct{}) error {
	err := s.decoder.Run(rings, stop, func(waiting decode.Pending) {
		s.stats.update(&s.decoder.Rows.Sums.Totals)
		s.stats.wait(waiting, time.Now())
	})
	if err != nil {
		return err
	}
	return s.finish()
}

// finish writes what is only known at the end, on the decoder's goroutine.
func (s *Session) finish() error {
	s.governor.FinishWeights()
	s.decoder.Serve()
	s.decoder.Rows.Slices.WeighRest()
	if s.probes.Awaits() {
		calls, since := s.openCollectives()
		s.decoder.Collectives.Open(s.watchedUntil.UnixNano(), since, calls)
	}
	if err := s.unfinished(); err != nil {
		return err
	}
	if err := s.decoder.Finish(); err != nil {
		return err
	}
	if err := s.writeLosses(); err != nil {
		return err
	}
	if err := s.sink.Write(&event.Batch{Probes: s.probes.Accounts().Rows()}); err != nil {
		return err
	}
	if err := s.countProbes(); err != nil {
		return err
	}
	s.stats.update(&s.decoder.Rows.Sums.Totals)
	s.stats.end(&s.decoder.Rows.Sums.Totals, s.sampling.walks.Unresolved(), s.governor.Cost(len(s.probes.All())))
	return s.decoder.Rows.Out.Failed()
}

// unfinished writes the calls and scopes that are still open.
func (s *Session) unfinished() error {
	s.decoder.Rows.Slices.Hold(false)
	calls, err := s.kernel.OpenCalls()
	for _, c := range calls {
		s.decoder.Unfinished(c)
	}
	return err
}

// Close takes everything out of the kernel.
func (s *Session) Close() {
	s.detachAll()
	s.sampling.close()
	s.kernel.Close()
	s.counters.close()
	s.governor.Close()
	s.classes.Close()
	s.decoder.Close()
	s.stubs.Close()
	s.probes.Close()
}

// detachPace is how often Options.Detaching is called.
const detachPace = 200 * time.Millisecond

// sayLeft does something that takes links out, and says meanwhile how many are left.
func sayLeft(left func() int, said func(left int), do func()) {
	if said == nil {
		do()
		return
	}
	out := make(chan struct{})
	go func() {
		do()
		close(out)
	}()
	pace := time.NewTicker(detachPace)
	defer pace.Stop()
	for {
		select {
		case <-out:
			return
		case <-pace.C:
			said(left())
		}
	}
}

// detachAll takes everything out of the job.
func (s *Session) detachAll() {
	s.job.Unhook()
	sayLeft(s.kernel.LinksLeft, s.options.Detaching, s.probes.Detach)
}
