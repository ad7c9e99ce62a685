// Package ondemand asks PyTorch's own profiler in the jobs that are recorded for a trace of a window. Every Linux build
// of PyTorch since 2.0 polls a local daemon for that, if the process was started with KINETO_USE_DAEMON=1; this package
// is such a daemon for the length of a recording.
//
// What a job sends, and the file that it writes, may be anything: senders are known by what the kernel says of them, the
// file is looked at before it is opened, and nothing waits for a job longer than a deadline.
package ondemand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Options of Start.
type Options struct {
	// Targets are the processes that are recorded; their descendants are as well.
	Targets []int
	// Window is how long the profiler of each process runs.
	Window time.Duration
	// MostBytes bounds a trace.
	MostBytes int64
	// Patience bounds the wait for a trace after its window.
	Patience time.Duration
	// MostTraces bounds how many processes are asked.
	MostTraces int
	// Told is called with a sentence when a process is asked and when its trace is there; nil for none. It is called from
	// several goroutines.
	Told func(sentence string)
}

func (o *Options) tell(format string, arguments ...any) {
	if o.Told != nil {
		o.Told(fmt.Sprintf(format, arguments...))
	}
}

// DefaultOptions are the options of a recording of some processes.
func DefaultOptions(targets []int) Options {
	return Options{Targets: targets, Window: time.Second, MostBytes: 512 << 20, Patience: 30 * time.Second, MostTraces: 64}
}

// Trace is what a process's profiler wrote.
type Trace struct {
	PID   int
	Asked time.Time
	// File is a copy that only we can write; it has no name any more when it is closed.
	File string
	// Err is why there is none.
	Err error
}

// Result is what became of the asking.
type Result struct {
	Traces []Trace
	// Refused are sentences on what was not done.
	Refused []string
}

// Daemon asks while a recording runs.
type Daemon struct {
	options Options
	socket  *socket
	cancel  context.CancelFunc
	done    chan struct{}
	fetches sync.WaitGroup

	mu      sync.Mutex
	asked   map[int]*request
	over    bool // nobody asks for the result any more
	result  Result
	strange int       // messages of processes that are not recorded
	begin   time.Time // when all profilers are to begin; zero: at once
}

// request is one process's trace under way.
type request struct {
	process *process.Process
	place   *process.Handover
	at      time.Time
}

func newRequest(pid int) (*request, error) {
	p, err := process.Open(pid)
	if err != nil {
		return nil, err
	}
	place, err := p.NewHandover()
	if err != nil {
		return nil, err
	}
	return &request{process: p, place: place, at: time.Now()}, nil
}

// errSlow: the process's file system does not answer.
var errSlow = errors.New("its file system did not make a directory within " + abandonment.String())

// requestInTime is newRequest for a process whose file system may never answer.
func requestInTime(pid int) (*request, error) {
	type made struct {
		r   *request
		err error
	}
	done := make(chan made, 1)
	go func() {
		r, err := newRequest(pid)
		done <- made{r, err}
	}()
	select {
	case m := <-done:
		if errors.Is(m.err, process.ErrExited) {
			m.err = ErrExited
		}
		return m.r, m.err
	case <-time.After(abandonment):
	}
	go func() { // one that comes late after all
		if m := <-done; m.r != nil {
			_ = m.r.place.Remove()
		}
	}()
	return nil, errSlow
}

// Start binds the daemon's name in the network namespace of the first target and answers until Finish. The error is
// ErrNameTaken, ErrNetwork or the system's.
func Start(o Options) (*Daemon, error) {
	if len(o.Targets) == 0 {
		return nil, errors.New("no process to ask")
	}
	s, err := listen(o.Targets[0])
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &Daemon{options: o, socket: s, cancel: cancel, done: make(chan struct{}), asked: map[int]*request{}}
	go d.run(ctx)
	return d, nil
}

// breath is how long the daemon rests after a message of a stranger, who could send without end.
const breath = time.Millisecond

func (d *Daemon) run(ctx context.Context) {
	defer close(d.done)
	for {
		m, err := d.socket.receive(ctx)
		if err != nil {
			if ctx.Err() == nil {
				d.refuse(err.Error())
			}
			return
		}
		if !d.recorded(m.pid) {
			d.mu.Lock()
			d.strange++
			d.mu.Unlock()
			time.Sleep(breath)
			continue
		}
		d.handle(ctx, m)
	}
}

// mostAncestors bounds the way from a process up to a target.
const mostAncestors = 64

// recorded reports whether a process is a target or below one.
func (d *Daemon) recorded(pid int) bool {
	for range mostAncestors {
		for _, target := range d.options.Targets {
			if pid == target {
				return true
			}
		}
		parent, ok := process.Parent(pid)
		if !ok || parent <= 1 {
			return false
		}
		pid = parent
	}
	return false
}

func (d *Daemon) handle(ctx context.Context, m received) {
	var payload []byte
	switch {
	case m.kind == registers:
		payload = []byte{1, 0, 0, 0}
	case m.wantsTrace():
		payload = d.configuration(ctx, m.pid)
	case m.kind != requests:
		time.Sleep(breath)
		return
	}
	if err := d.socket.answer(m, payload); err != nil && len(payload) > 4 {
		d.refuse(err.Error())
	}
}

// configuration is what a process is to do; nothing if it was asked before.
func (d *Daemon) configuration(ctx context.Context, pid int) []byte {
	d.mu.Lock()
	_, before := d.asked[pid]
	if before || len(d.asked) >= d.options.MostTraces {
		d.mu.Unlock()
		return nil
	}
	d.asked[pid] = nil // whatever comes of it, it is not asked again
	d.fetches.Add(1)
	d.mu.Unlock()
	r, err := requestInTime(pid)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.result.Traces = append(d.result.Traces, Trace{PID: pid, Err: err})
		d.fetches.Done()
		return nil
	}
	d.asked[pid] = r
	d.together()
	d.options.tell("the profiler of pid %d is asked for a trace of %v", pid, d.options.Window)
	go d.fetch(ctx, r, d.begin)
	return d.words(r)
}

// together sets when the profilers begin: at once where one process can be asked, else when all have polled, which each
// does every five seconds.
func (d *Daemon) together() {
	if len(d.asked) > 1 {
		return
	}
	if countAskable(d.options.Targets) > 1 {
		d.begin = time.Now().Add(pollPeriod + time.Second)
	}
}

// pollPeriod is how often a client asks.
const pollPeriod = 5 * time.Second

func (d *Daemon) words(r *request) []byte {
	lines := []string{
		"ACTIVITIES_LOG_FILE=" + r.place.Path() + "/trace.json",
		fmt.Sprintf("ACTIVITIES_DURATION_MSECS=%d", d.options.Window.Milliseconds()),
		"ACTIVITIES_WARMUP_PERIOD_SECS=0",
		"PROFILE_REPORT_INPUT_SHAPES=false", "PROFILE_PROFILE_MEMORY=false", "PROFILE_WITH_STACK=false",
	}
	if !d.begin.IsZero() {
		lines = append(lines, fmt.Sprintf("PROFILE_START_TIME=%d", d.begin.UnixMilli()))
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// fileName is the trace's: the client adds its pid, as it knows it.
func (r *request) fileName() string {
	pid := r.process.PID
	if r.process.NSPID != nil {
		pid = *r.process.NSPID
	}
	return fmt.Sprintf("trace_%d.json", pid)
}

func (d *Daemon) fetch(ctx context.Context, r *request, begin time.Time) {
	defer d.fetches.Done()
	until := time.Now().Add(d.options.Window + d.options.Patience)
	if !begin.IsZero() {
		until = begin.Add(d.options.Window + d.options.Patience)
	}
	file, err := r.collect(ctx, until, d.options.MostBytes)
	removed := r.place.Remove(r.fileName())
	if err == nil {
		d.options.tell("the profiler of pid %d wrote its trace", r.process.PID)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over && file != "" {
		_ = os.Remove(file)
	}
	d.result.Traces = append(d.result.Traces, Trace{PID: r.process.PID, Asked: r.at, File: file, Err: err})
	if removed != nil {
		d.result.Refused = append(d.result.Refused, fmt.Sprintf("%s is left behind: %v", r.place.Path(), removed))
	}
}

func (d *Daemon) refuse(sentence string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.result.Refused = append(d.result.Refused, sentence)
}

// Finish ends the asking, waits for traces under way until they are there, ctx ends or their deadlines pass, and says
// what became of all. It is called once; the files are the caller's to remove.
func (d *Daemon) Finish(ctx context.Context) Result {
	fetched := make(chan struct{})
	go func() { d.fetches.Wait(); close(fetched) }()
	if d.waiting() {
		select {
		case <-fetched:
		case <-ctx.Done():
		}
	}
	d.cancel()
	select { // a job's file system may answer no more
	case <-fetched:
	case <-time.After(abandonment):
	}
	<-d.done
	d.socket.close()
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.strange == 1:
		d.result.Refused = append(d.result.Refused, "1 message of a process that is not recorded was not answered")
	case d.strange > 1:
		d.result.Refused = append(d.result.Refused, fmt.Sprintf("%d messages of processes that are not recorded were not answered", d.strange))
	}
	if len(d.result.Traces) == 0 {
		d.result.Refused = append(d.result.Refused, d.silence())
	}
	d.over = true
	return d.result
}

// abandonment is how long a file system of a job may take, and a fetch to end after its deadline.
const abandonment = 2 * time.Second

func (d *Daemon) waiting() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.asked) > 0
}

// Discard removes the copies of the traces.
func (r Result) Discard() {
	for _, t := range r.Traces {
		if t.File != "" {
			_ = os.Remove(t.File)
		}
	}
}
