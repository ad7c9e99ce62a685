package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/peaks"
	"github.com/ebpfprof/ebpfprof/internal/record/confinement"
	"github.com/ebpfprof/ebpfprof/internal/redact"
	"github.com/ebpfprof/ebpfprof/internal/version"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// ErrNothingCaptured ends a recording that has no rows.
var ErrNothingCaptured = errors.New("nothing was captured")

// recorder is one recording, from the flags to the summary.
type recorder struct {
	options     tracer.Options
	duration    time.Duration
	rotate      time.Duration
	output      string
	access      output.Access
	commandLine string
	json, quiet bool
	redact      bool
	reading     Reading
	noVerdict   bool
	deviceTimes string
	serves      bool
	page        *serving   // nil: none
	injecting   *injecting // nil: no library of ours is in the job
}

// newRecorder reads the flags; starts says that the command will be started.
func newRecorder(c *urfave.Context, options tracer.Options, reading Reading, starts bool) (*recorder, error) {
	access, err := parseMode(c.String("mode"))
	if err != nil {
		return nil, cli.Mistaken(err)
	}
	r := &recorder{
		options: options, reading: reading, duration: c.Duration("duration"), rotate: c.Duration("rotate"), output: c.String("output"),
		commandLine: commandLine(os.Args, c.Bool("redact")), redact: c.Bool("redact"), json: c.Bool("json"), quiet: c.Bool("quiet"),
		access: access, noVerdict: c.Bool("no-verdict"),
	}
	return r, r.checkDeviceTimes(c.String("device-times"), starts)
}

// record attaches, records until the end and prints the summary. job is nil for
// attach.
func (r *recorder) record(ctx context.Context, job *job) error {
	if job != nil {
		defer job.abandon()
		r.options.Starting = []int{job.command.Process.Pid}
	}
	ctx, stop := untilSignal(ctx, job)
	defer stop()

	to := &destination{path: r.output}
	dataset, err := output.Create(r.output, output.Options{RotateEvery: r.rotate, RotateShare: r.rotateShare(), Access: r.access})
	if err != nil {
		return to.explain(err, false)
	}
	to.dataset = dataset
	started := time.Now()
	recording := describe(r, started)
	if !r.quiet && !r.json {
		throwOldCaches(os.Stderr)
	} else {
		throwOldCaches(io.Discard)
	}
	r.options.Preparing = newPreparing(ctx, r.quiet || r.json).goOn
	detaching := newDetaching(r.quiet || r.json)
	r.options.Detaching = detaching.left
	collectAsUsual := collectLess()
	defer collectAsUsual()
	// A signal that comes meanwhile ends the recording, and not the opening: the dataset
	// says what was found.
	session, err := tracer.Open(context.WithoutCancel(ctx), r.options, r.sink(dataset))
	if err != nil {
		to.undo()
		return err
	}
	defer session.Close()
	recording.ClockOffsetNS = session.ClockOffsetNS()
	if err := dataset.Session(recording); err != nil {
		to.undo()
		return to.explain(err, false)
	}
	if r.page, err = r.serve(); err != nil {
		to.undo()
		return err
	}
	progress := newProgress(r.quiet || r.json, session, dataset)
	progress.found(session.Report(), r.options, time.Since(started))
	if job != nil {
		err := r.injecting.start()
		if err == nil {
			err = job.start()
		}
		if err != nil {
			to.undo()
			return err
		}
	}
	collectAsUsual()
	// After the command was started, which must not inherit it.
	if err := confinement.Enter(); err != nil && !r.quiet {
		fmt.Fprintf(os.Stderr, "ebpfprof: going on without a filter on its own system calls: %v\n", err)
	}
	asking := r.ask(job)
	sleepLoosely()
	r.page.report(session, dataset)
	attached := time.Now()
	runErr := r.run(ctx, session, progress)
	detaching.over()
	recorded := time.Since(attached)

	lost := r.injecting.stop()
	traces := asking.finish()
	defer traces.Discard()
	ended := attached.Add(recorded).UnixNano()
	recording.EndedNS = &ended
	r.measured(&recording, session.Stats().Cost)
	closeErr := errors.Join(dataset.Session(recording), dataset.Close())
	if err := errors.Join(runErr, closeErr); err != nil {
		written := to.has()
		if !written {
			to.undo()
		}
		return to.explain(cli.FirstCause(err), written)
	}
	r.merge(traces, recording)
	beside := r.mergeActivities(lost, recording)
	s := summarize(session.Stats(), dataset, recorded)
	if beside && s.Cost != nil {
		s.Cost.Without = append(s.Cost.Without, withoutCUPTI)
	}
	if r.redact {
		s.redact()
	}
	return r.conclude(to, session, s, job)
}

// run records until a signal, --duration, or the job's end.
func (r *recorder) run(ctx context.Context, session *tracer.Session, progress *progress) error {
	if r.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.duration)
		defer cancel()
	}
	progress.start()
	defer progress.stop()
	return session.Run(ctx)
}

// conclude prints the summary and says when there is nothing in it.
func (r *recorder) conclude(to *destination, session *tracer.Session, s *summary, job *job) error {
	if job != nil {
		job.describe(s)
		if err := job.execError(); err != nil {
			to.undo()
			return err
		}
	}
	// Where threads stood still there is something to show even if nothing ran.
	nothing := s.Spans+s.Allocations+s.Samples == 0 && to.dataset.Standing() == 0
	switch {
	case r.json:
		s.printJSON(os.Stdout)
	case nothing:
		fmt.Fprintf(os.Stderr, "%sdataset: %s\n", s.jobText(), s.Dataset)
	case job != nil: // its standard output is the command's
		s.print(os.Stderr, r.printAnswer(os.Stderr, s.Dataset))
	default:
		s.print(os.Stdout, r.printAnswer(os.Stdout, s.Dataset))
	}
	if nothing {
		return fmt.Errorf("%w: %s", ErrNothingCaptured, whyNothing(session.Report(), job))
	}
	return nil
}

// untilSignal ends with Ctrl-C, SIGTERM or SIGHUP; a second one kills as usual. SIGTERM is passed on to the
// command of run: a supervisor sends it to ebpfprof alone, a terminal its signals to both.
// A reader of our output that goes away does not end a recording.
func untilSignal(ctx context.Context, job *job) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := context.WithCancel(ctx)
	received := make(chan os.Signal, 1)
	signal.Notify(received, signals...)
	go func() {
		defer stop()
		defer signal.Stop(received)
		select {
		case s := <-received:
			if s == syscall.SIGTERM && job != nil && job.started.Load() {
				job.command.Process.Signal(s)
			}
		case <-ctx.Done():
		}
	}()
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE) // not Ignore: a command would inherit that
	return ctx, func() { stop(); signal.Stop(broken) }
}

func whyNothing(report tracer.Report, job *job) string {
	switch {
	case report.LeftOut != "":
		return report.LeftOut
	case len(report.Libraries) > 0:
		return "the probes are in place, but the job called none of the probed functions; was it idle?"
	case job != nil:
		return "the command loaded no library that the catalog knows (see ebpfprof probes --groups)"
	}
	return "the job maps no library that the catalog knows; ebpfprof doctor --pid PID says what was looked for"
}

// describe fills in what is known of the recording before it begins.
// Describe is what the session table says of a recording that the agent makes.
func Describe(options tracer.Options, duration time.Duration, redacted bool, now time.Time) tracer.Recording {
	return describe(&recorder{options: options, duration: duration, redact: redacted, commandLine: commandLine(os.Args, redacted),
		access: output.PrivateAccess()}, now)
}

func describe(r *recorder, now time.Time) tracer.Recording {
	var uts syscall.Utsname
	syscall.Uname(&uts)
	host, _ := os.Hostname()
	recording := tracer.Recording{
		ID: newSessionID(now), ToolVersion: version.Version, Host: host, BootID: procfile.Line("/proc/sys/kernel/random/boot_id"),
		Kernel: utsString(uts.Release[:]), CPUModel: peaks.Processor(), DeviceName: peaks.Accelerators("/"),
		StartedNS: now.UnixNano(), Level: string(r.options.Level),
		CommandLine: r.commandLine, Parameters: r.parameters(),
	}
	if r.redact {
		return redact.Recording(recording)
	}
	return recording
}

// sink is where the session's events go on their way into the dataset.
func (r *recorder) sink(dataset *output.Dataset) event.Sink {
	if r.redact {
		return redact.NewSink(dataset)
	}
	return dataset
}
