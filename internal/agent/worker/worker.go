// Package worker records one job in a process of its own: at level anchor until something
// is slow, blocked or has failed, and then a window. What it sees it writes to the node's
// disk, what it has noticed to its standard output.
package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/fleet/live"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/request"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
	"github.com/ebpfprof/ebpfprof/internal/record/recorder"
	"github.com/ebpfprof/ebpfprof/internal/version"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/beat"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Assignment is what a worker reads from its standard input.
type Assignment struct {
	Config config.Config
	Job    jobs.Job
	Tried  bool // one of the job's processes was recorded alone, and lived
}

// Status is a line of a worker's standard output. Counts are since it started.
type Status struct {
	Job       string  `json:"job"`
	State     string  `json:"state"` // canary, watching, waiting, window, refused
	Steps     int64   `json:"steps"`
	MeanMS    float64 `json:"mean_ms"` // of the last steps' periods
	Sequence  string  `json:"sequence"`
	Slow      int64   `json:"slow"`
	Blocked   int64   `json:"blocked"`
	Now       Lasting `json:"now"`
	Windows   int64   `json:"windows"`
	Patterns  int64   `json:"patterns"`   // written for the store
	Bytes     int64   `json:"bytes"`      // likewise
	Unsent    int64   `json:"unsent"`     // uploads that the disk did not take, and that were dropped
	Unwritten int64   `json:"unwritten"`  // windows whose samples for the collector the disk did not take
	RawFailed int64   `json:"raw_failed"` // windows whose raw events could not all be written
	Dropped   int64   `json:"dropped"`    // steps, waits, threads with anchors and failures beyond the limits
	Cut       int64   `json:"cut"`        // samples of windows that were too many for the collector's profiles
	Skipped   int64   `json:"skipped"`    // windows not taken because of the cool-down
	Refused   int64   `json:"refused"`    // requests that were not signed
	RawBytes  int64   `json:"raw_bytes"`  // of raw events in the spool, those that have been removed too
	Failures  Kinds   `json:"failures"`   // what went wrong in processes, by kind
	Failed    *Failed `json:"failed"`     // the first of those that were reported last; null before
	Hangs     Kinds   `json:"hangs"`      // verdicts on ranks that were blocked
	Hang      *Hang   `json:"hang"`       // the last one; null before the first
	Recorded  Counts  `json:"recorded"`
	Message   string  `json:"message,omitempty"`
}

// Lasting is how many threads that train, one a rank, are degraded now.
type Lasting struct {
	Slow    int64 `json:"slow"`
	Blocked int64 `json:"blocked"`
}

// unwatched are groups of level anchor that nobody reads while the job is watched: they would
// cost it probes, and the worker half of what it decodes. What finds no room is recorded
// without them (group out-of-memory).
var unwatched = filter.Terms{filter.Group: {"memory", "device-memory"}}

// frequency at level anchor: no divisor of what else comes so many times a second.
const frequency = 19

// worker records one job.
type worker struct {
	config config.Config
	job    jobs.Job
	outbox *store.Directory // patterns: the supervisor sends them
	peers  *store.Lazy      // the store, for requests, which must not wait
	inbox  *request.Inbox   // nil without a key
	host   string
	budget float64
	out    *json.Encoder

	steps   *live.Steps
	blocked *blocked // of which there is no verdict yet; nil: none
	status  Status
	last    time.Time                      // window
	dropped int64                          // steps between two uploads
	told    map[live.FailureKind]time.Time // when a failure was reported last
	said    bool                           // that no steps are seen
	seen    recorded
	refused time.Time // when refused requests were reported last
}

// Run records the job of the assignment until its processes have ended, or the
// context is done.
func Run(ctx context.Context, in io.Reader, out io.Writer) error {
	var a Assignment
	if err := json.NewDecoder(in).Decode(&a); err != nil {
		return fmt.Errorf("reading the assignment: %w", err)
	}
	box, err := spool.Outbox(a.Config.Spool)
	if err != nil {
		return err
	}
	w := &worker{config: a.Config, job: a.Job, outbox: box, peers: &store.Lazy{Location: func() string { return a.Config.Store }},
		out: json.NewEncoder(out), status: Status{Job: a.Job.Name}}
	if w.budget, err = a.Config.Share(); err != nil {
		return err
	}
	if a.Config.KeyFile != "" {
		key, err := request.ReadKey(a.Config.KeyFile)
		if err != nil {
			return err
		}
		w.inbox = request.NewInbox(a.Job.Name, key)
	}
	if w.host, err = a.Config.NodeName(); err != nil {
		return err
	}
	if w.last, err = spool.LastWindow(a.Config.Spool, a.Job.Owned(), time.Now()); err != nil {
		return err
	}
	constants := trigger.Published
	constants.Steps, constants.Slower, constants.Blocked = a.Config.StepsMean, a.Config.Slower, a.Config.Blocked
	constants.Repeats, constants.Patience = a.Config.Repeats, a.Config.Patience
	w.steps = live.New(constants)
	defer frugal()()
	if !a.Tried {
		if err := w.canary(ctx); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		start, reason, err := w.watch(ctx)
		if err != nil || reason == "" {
			return err
		}
		if err := w.window(ctx, start, reason); err != nil {
			return err
		}
	}
	return nil
}

// leastShare is the share of the time from which on a function is sent by itself: a
// tenth of what a finding needs.
const leastShare = 0.001

// options are those of both levels.
func (w *worker) options(level tracer.Level) tracer.Options {
	return tracer.Options{
		PIDs: w.job.PIDs, Level: level, Follow: true, OffCPU: time.Millisecond, BufferBytes: 16 << 20, AllowUserMounts: w.config.AllowUserMounts,
	}
}

// anchored are those of level anchor.
func (w *worker) anchored() tracer.Options {
	options := w.options(tracer.LevelAnchor)
	options.Budget, options.Frequency, options.BufferBytes = w.budget, frequency, anchorBuffer
	options.Filter.Exclude = unwatched
	return options
}

// lookEvery is how often it is asked whether there is a reason.
const lookEvery = 200 * time.Millisecond

// watch records at level anchor until there is a reason for a window, which it returns
// with the window's start, or the job has ended.
func (w *worker) watch(ctx context.Context) (_ time.Time, reason string, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	options := w.anchored()
	k := w.watching()
	session, err := tracer.Open(ctx, options, k.guarded)
	if err != nil {
		return time.Time{}, "", ended(err)
	}
	defer session.Close()
	describe := w.describing(options, session)
	w.blocked = nil
	defer settled().Stop()
	w.seen.begin(session.Stats)
	defer w.seen.end()
	w.say("watching", "")
	began := time.Now()
	over := make(chan error, 1)
	go func() { over <- session.Run(ctx) }()
	poll, flush, look := time.NewTicker(request.Poll), time.NewTicker(time.Duration(w.config.Flush)), time.NewTimer(lookEvery)
	defer poll.Stop()
	defer flush.Stop()
	defer look.Stop()
	looked := func(now time.Time) (failure, reason string) {
		defer look.Reset(beat.Of(lookEvery))
		return k.fail(ctx, now, false, describe), k.look(ctx, now, session.Stats().Lost)
	}
	for {
		var reason string
		var peer *request.Request
		select {
		case err := <-over:
			k.fail(ctx, time.Now(), true, describe)
			k.send(ctx)
			return time.Time{}, "", ended(err)
		case now := <-look.C:
			reason = cmp.Or(looked(now))
		case now := <-poll.C:
			peer = w.asked(ctx, now)
		case <-flush.C:
			k.send(ctx)
			w.say("watching", k.blind(time.Since(began)))
		}
		next, ok := w.decide(ctx, time.Now(), reason, peer)
		if !ok {
			continue
		}
		// Until the window begins the job is watched on: what led to it is sent, too.
		w.say("waiting", next.reason)
		k.guarded.Lock()
		w.blockWith(next.reason, time.Now())
		k.guarded.Unlock()
		for begins := time.After(time.Until(next.start)); begins != nil; {
			select {
			case now := <-look.C:
				failure, _ := looked(now)
				next.because(failure)
			case <-begins:
				begins = nil
			case <-ctx.Done():
				begins = nil
			}
		}
		stop()
		if err := <-over; err != nil {
			return next.start, "", ended(err)
		}
		next.because(k.fail(ctx, time.Now(), true, describe))
		k.send(ctx)
		k.conclude(ctx, time.Now()) // the next session knows nothing of what is open
		return next.start, next.reason, nil
	}
}

// planned is a window that is to be taken.
type planned struct {
	start  time.Time
	reason string
}

// because takes a failure for the window's reason, if there is one: what it brings down, such as ranks that wait, may have
// been seen first. What a peer asked for stays the peer's.
func (p *planned) because(failure string) {
	if failure != "" && !strings.HasPrefix(p.reason, "peer:") {
		p.reason = failure
	}
}

// decide says when a window is taken for a reason of the worker's own ("" is none) or for
// a peer's request; false where there is neither, or the last window was a moment ago.
func (w *worker) decide(ctx context.Context, now time.Time, reason string, peer *request.Request) (planned, bool) {
	if reason == "" && peer == nil {
		return planned{}, false
	}
	if peer == nil { // one may just have had the same reason
		peer = w.asked(ctx, now)
	}
	next := planned{request.AlignedStart(now), reason}
	if peer != nil {
		next = planned{time.Unix(0, peer.Start), "peer:" + peer.Reason}
	}
	if !w.last.IsZero() && next.start.Sub(w.last) < time.Duration(w.config.Cooldown) {
		w.status.Skipped++
		return planned{}, false
	}
	if peer == nil {
		w.ask(ctx, reason, next.start)
	}
	return next, true
}

// trains reports whether the job makes steps: they are learnt, or what they are made of is so
// frequent that the budget has it in slices.
func (w *worker) trains() bool {
	learnt, _ := w.steps.Learnt()
	return learnt > 0 || len(w.steps.Sliced()) > 0
}

// blindAfter is how long a job is watched before the agent reports that it sees no steps.
const blindAfter = time.Minute

// blind says, once, that a job that has been watched for a while shows no steps, so that
// nothing will be noticed of it; "" where that is not so.
func (w *worker) blind(watched time.Duration) string {
	learnt, _ := w.steps.Learnt()
	if learnt > 0 || watched < blindAfter || w.said {
		return ""
	}
	w.said = true
	text := "no steps are seen, so that it would not be noticed if they became slow"
	if groups := w.steps.Sliced(); len(groups) > 0 {
		text += fmt.Sprintf(": calls of %s are recorded in slices to keep within the budget (budget: %s)", strings.Join(groups, ", "),
			w.config.Budget)
	}
	return text
}

// mostSteps bounds what is kept of steps between two uploads.
const mostSteps = 100_000

func (w *worker) keep(steps, done []pattern.Step) []pattern.Step {
	for _, s := range done {
		w.status.Steps++
		// A moving mean is enough for a status.
		w.status.MeanMS += (float64(s.PeriodNS)/1e6 - w.status.MeanMS) / float64(min(w.status.Steps, 50))
		if len(steps) >= mostSteps {
			w.dropped++
			continue
		}
		steps = append(steps, s)
	}
	return steps
}

func (w *worker) degraded(d live.Degradation) (reason string) {
	if d.Kind == trigger.Slow {
		w.status.Slow++
		return string(d.Kind)
	}
	w.status.Blocked++
	w.block(d) // the window waits for the verdict: another session knows nothing of what is open
	return ""
}

// requestPatience bounds what a slow store takes of the worker's time: while it asks for
// requests, it looks at no step.
const requestPatience = 2 * time.Second

// ask puts a request for a window into the store, if there is a key to sign it with.
func (w *worker) ask(ctx context.Context, reason string, start time.Time) {
	if w.inbox == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	s, err := w.peers.Get()
	if err == nil {
		err = w.inbox.Ask(limited, s, w.host, reason, start)
	}
	if err != nil {
		w.say("watching", err.Error())
	}
}

// asked returns a peer's request.
func (w *worker) asked(ctx context.Context, now time.Time) *request.Request {
	if w.inbox == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	s, err := w.peers.Get()
	if err != nil {
		return nil // the supervisor says that the store is away
	}
	found, refused, err := w.inbox.Due(limited, s, now)
	w.status.Refused += refused.Files
	if text := refusal(refused, err); text != "" && now.Sub(w.refused) >= time.Minute {
		w.refused = now // who floods the store must not flood the log
		w.say("watching", text)
	}
	for _, r := range found {
		if r.Host != w.host {
			return &r
		}
	}
	return nil
}

// refusal says what was wrong with the requests; "" if nothing was, or the store is away,
// which the supervisor says.
func refusal(r request.Refused, err error) string {
	switch {
	case err != nil && !errors.Is(err, store.ErrAway):
		return "requests for windows could not be read: " + err.Error()
	case r.Left > 0:
		return fmt.Sprintf("%d requests for windows are without this fleet's mark and too many to be read; one: %v", r.Left+r.Files, r.Why)
	case r.Why != nil:
		return r.Why.Error()
	}
	return ""
}

// window records at level window: raw events into the spool, patterns into the store.
func (w *worker) window(ctx context.Context, start time.Time, reason string) error {
	w.say("window", reason)
	w.windowAt(time.Now())
	options := w.options(tracer.LevelWindow)
	options.Frequency, options.Counters = 99, time.Second // which tell quotas
	k := w.windowed(options.Frequency, start)
	session, err := tracer.Open(ctx, options, k.guarded)
	if err != nil {
		k.raw.Discard()
		return ended(err)
	}
	defer session.Close()
	w.seen.begin(session.Stats)
	defer w.seen.end()
	if k.raw != nil {
		recording := recorder.Describe(options, time.Duration(w.config.Window), w.config.Redact, time.Now())
		recording.Host, recording.ClockOffsetNS = w.host, session.ClockOffsetNS()
		k.raw.Begin(recording)
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(w.config.Window))
	defer cancel()
	err = session.Run(limited)
	k.end(ctx)
	w.steps.Restart()
	w.windowAt(time.Now())
	return ended(err)
}

// windowAt begins the cool-down anew.
func (w *worker) windowAt(at time.Time) {
	w.last = at
	if err := spool.KeepWindow(w.config.Spool, w.job.Owned(), at); err != nil {
		w.say(w.status.State, fmt.Sprintf("the cool-down would not outlast a restart: %v", err))
	}
}

// send writes patterns and steps for the store, on the disk: a worker's memory does not
// depend on a store that is away. What a full disk does not take is dropped and counted.
func (w *worker) send(ctx context.Context, c *pattern.Collector, steps []pattern.Step, raw int64) {
	patterns := pattern.Compact(c.Flush(), leastShare)
	if len(patterns) == 0 || !w.trains() {
		return // imports, and building the model: nothing to compare
	}
	for i := range patterns {
		patterns[i].Job, patterns[i].Host = w.job.Name, w.host
	}
	for i := range steps {
		steps[i].Job, steps[i].Host = w.job.Name, w.host
	}
	n, err := store.Send(context.WithoutCancel(ctx), w.outbox, store.Batch{Session: fmt.Sprintf("%s-%d", w.host, patterns[0].BeginNS),
		Job: w.job.Name, Host: w.host,
		Tool: version.Version, Patterns: patterns, Steps: steps, Lost: c.Lost(), EventBytes: raw})
	if err != nil {
		w.status.Unsent++
		w.say(w.status.State, fmt.Sprintf("%d patterns could not be written for the store: %v", len(patterns), err))
		return
	}
	w.status.Patterns += int64(len(patterns))
	w.status.Bytes += n
}

func (w *worker) say(state, message string) {
	w.status.State, w.status.Message, w.status.Recorded = state, message, w.seen.sum()
	_ = w.out.Encode(w.status) // a supervisor that is gone ends this process by its pipe
	w.status.Message = ""
}

// ended makes no error of a job that has ended.
func ended(err error) error {
	if errors.Is(err, process.ErrNotFound) || errors.Is(err, process.ErrExited) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
