package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/agent/worker"
	"github.com/ebpfprof/ebpfprof/internal/fleet/outbox"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/tracer/reader"
)

// WorkerCommand is how the agent runs itself as a job's worker.
const WorkerCommand = "internal-worker"

// A worker that ends with an error is started again after a while, which doubles.
const (
	firstPause   = 5 * time.Second
	longestPause = 10 * time.Minute
	stopWithin   = 20 * time.Second // of a worker, before it is killed
)

// ownProgram is the program of this process, also once another version lies where it was
// begun from: a worker of that would get its job in words that it may not know.
const ownProgram = "/proc/self/exe"

// supervisor owns the jobs and the workers.
type supervisor struct {
	log      *slog.Logger
	discover *jobs.Discoverer
	sender   *outbox.Sender // nil in tests that send nothing
	profiles *profiles      // likewise
	node     *node

	mu      sync.Mutex // the supervisor's goroutine, the workers' readers and HTTP handlers
	config  config.Config
	jobs    map[string]*supervised
	refused map[string]refusedJob // by identity
	names   jobs.Names            // what jobs are called
	crowded int64                 // jobs that max_jobs turned away, at the last look
	lookErr error
	looked  time.Time
}

// settleTwice is for how many times of settling new processes put a job's worker off.
const settleTwice = 2

// supervised is a job and its worker.
type supervised struct {
	job      jobs.Job
	found    time.Time // its youngest process
	first    time.Time // when it began to be without a worker
	worker   *exec.Cmd // nil while none runs
	input    io.WriteCloser
	started  time.Time
	status   worker.Status
	restarts int64
	gaps     []gap
	failure  string
	pause    time.Duration
	again    time.Time // not before
	stopping bool
	ended    time.Time     // the job's end; zero while it runs
	before   worker.Status // of the worker before this one: what failed then stays told
	tried    bool          // one of its processes was recorded alone, and lived
	refused  string        // why the job is left alone; "" is not so
}

// failedStays is how long a job that has ended is shown if something failed in it: for
// Prometheus, which looks once a minute or so, to see that.
const failedStays = 5 * time.Minute

// gap is a time without a worker.
type gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Why  string    `json:"why"`
}

// mostGaps is how many gaps of a job are kept.
const mostGaps = 100

func newSupervisor(c config.Config, log *slog.Logger) *supervisor {
	return &supervisor{log: log, discover: jobs.New(c.Libraries, c.Ranks), node: newNode(), config: c, jobs: map[string]*supervised{},
		refused: map[string]refusedJob{}}
}

// run looks for jobs until the context is done, and then stops the workers.
func (s *supervisor) run(ctx context.Context) {
	for {
		s.look(ctx)
		s.mu.Lock()
		every := time.Duration(s.config.Every)
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			s.stopAll()
			return
		case <-time.After(every):
		}
	}
}

func (s *supervisor) look(ctx context.Context) {
	s.mu.Lock()
	unnamed := s.config.Job
	s.mu.Unlock()
	found, err := s.discover.Look(unnamed)
	for _, late := range reader.TakeLate() {
		s.log.Warn("a process keeps whoever reads it waiting, and is left alone for a while", "pid", late.PID, "user", late.User)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookErr, s.looked, s.crowded = err, time.Now(), 0
	if err != nil {
		s.log.Error("looking for jobs", "error", err)
		return
	}
	var wanted []jobs.Job
	for _, job := range jobs.Rename(s.config.Names, found) {
		if s.config.Wants(job.Name) {
			wanted = append(wanted, job)
		}
	}
	running, called := map[string]bool{}, map[string]string{}
	wanted = s.names.Distinct(wanted)
	for i := range wanted {
		wanted[i].Name = s.config.Called(wanted[i].Name)
		running[wanted[i].Name], called[wanted[i].Identity()] = true, wanted[i].Name
	}
	for name, j := range s.jobs {
		// Its name is another's now, or it has another: what runs is not told of that.
		if now, known := called[j.job.Identity()]; (known && now != name || !known && running[name]) && j.worker != nil && !j.stopping {
			j.stop()
		}
	}
	for _, job := range wanted {
		s.update(ctx, job)
	}
	for name, j := range s.jobs {
		switch {
		case running[name]:
			j.ended = time.Time{}
			continue
		case j.worker != nil:
			continue
		case j.ended.IsZero():
			j.ended = time.Now()
			s.log.Info("job has ended", "job", name, "steps", j.status.Steps, "windows", j.status.Windows)
		}
		if len(j.status.Failures) == 0 || time.Since(j.ended) >= failedStays {
			delete(s.jobs, name)
		}
	}
}

// full reports whether there are as many jobs as may be, or as many as a user's may; those that
// have ended make room.
func (s *supervisor) full(user uint32) bool {
	of := func() (n int) {
		for _, j := range s.jobs {
			if j.job.User == user {
				n++
			}
		}
		return n
	}
	most := s.config.MaxJobs - s.config.MaxJobs/keptFree
	if len(s.jobs) >= s.config.MaxJobs || of() >= most {
		maps.DeleteFunc(s.jobs, func(_ string, j *supervised) bool { return !j.ended.IsZero() })
	}
	return len(s.jobs) >= s.config.MaxJobs || of() >= most
}

// keptFree: a quarter of max_jobs, of four and more, is for others than the user with most jobs.
const keptFree = 4

// update starts the worker of a job whose processes have settled, and replaces one
// that does not know of all of them.
func (s *supervisor) update(ctx context.Context, job jobs.Job) {
	j := s.jobs[job.Name]
	if j != nil && j.job.Identity() != job.Identity() {
		if j.worker != nil {
			return // until the other's has ended
		}
		delete(s.jobs, job.Name)
		j = nil
	}
	switch {
	case j == nil && s.full(job.User):
		s.crowded++
		return
	case j == nil:
		s.log.Info("job found", "job", job.Name, "pids", job.PIDs, "user", job.User)
		s.jobs[job.Name] = &supervised{job: job, found: time.Now(), first: time.Now(), pause: firstPause}
		return
	}
	if slices.ContainsFunc(job.PIDs, func(pid int) bool { return !slices.Contains(j.job.PIDs, pid) }) {
		settle := time.Duration(s.config.Settle)
		switch {
		case j.worker == nil && time.Since(j.first) < settleTwice*settle:
			j.job, j.found = job, time.Now() // a rank came later, or the job began again
			return
		case j.worker != nil && time.Since(j.started) < settleTwice*settle:
			return // its worker has hardly begun: a job whose processes come and go is recorded all the same
		case j.worker != nil:
			j.job, j.found, j.first = job, time.Now(), time.Now()
			if !j.stopping {
				s.log.Info("job has new processes", "job", job.Name, "pids", job.PIDs)
				j.stop()
			}
			return
		}
	}
	j.job = job
	if j.refused = s.whyRefused(job.Identity()); j.refused != "" {
		j.failure = j.refused
		return
	}
	if j.worker == nil && time.Since(j.found) >= time.Duration(s.config.Settle) && time.Now().After(j.again) {
		s.start(ctx, j)
	}
}

// start runs the worker: the same program, told its job by a pipe. It lives in a
// process of its own so that what a hostile job does to its recording it does to that
// alone; GOMEMLIMIT is a soft limit, those of its data and of its descriptors are hard ones.
func (s *supervisor) start(ctx context.Context, j *supervised) {
	c := exec.Command(ownProgram, WorkerCommand)
	c.Args[0] = os.Args[0]
	c.Env = append(workerEnvironment(os.Environ(), &s.config), fmt.Sprintf("GOMEMLIMIT=%dMiB", s.config.MaxRSSMB))
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	in, err := c.StdinPipe()
	if err != nil {
		s.failed(j, err)
		return
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = withSmallStacks(func() error { return startUnhurried(c) })
	}
	if err == nil {
		if err := limitMemory(c.Process.Pid, s.config.MaxRSSMB); err != nil {
			s.log.Error("limiting a worker's memory", "job", j.job.Name, "error", err)
		}
	}
	if err != nil {
		s.failed(j, err)
		return
	}
	if !j.started.IsZero() {
		j.restarts++
		j.gaps = append(j.gaps, gap{From: j.again.Add(-j.pause), To: time.Now(), Why: j.failure})
		j.gaps = j.gaps[max(0, len(j.gaps)-mostGaps):]
	}
	j.before = j.status
	j.worker, j.input, j.started, j.stopping, j.failure = c, in, time.Now(), false, ""
	if err := json.NewEncoder(in).Encode(worker.Assignment{Config: s.config, Job: j.job, Tried: j.tried}); err != nil {
		s.log.Error("telling a worker its job", "job", j.job.Name, "error", err)
	}
	s.log.Info("worker started", "job", j.job.Name, "pid", c.Process.Pid)
	go s.follow(j, c, out)
}

// follow reads a worker's lines until it ends.
func (s *supervisor) follow(j *supervised, c *exec.Cmd, out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, worker.MostStatus)
	for lines.Scan() {
		var status worker.Status
		if json.Unmarshal(lines.Bytes(), &status) != nil {
			continue
		}
		s.mu.Lock()
		before := j.status
		alsoFailed(&status, &j.before)
		j.status = status
		j.tried = j.tried || status.State == "watching"
		if status.State == worker.StateRefused {
			s.refuse(j, status.Message)
		}
		s.mu.Unlock()
		if status.State != before.State || status.Message != "" {
			s.log.Info("worker", "job", status.Job, "state", status.State, "reason", status.Message, "steps", status.Steps, "windows",
				status.Windows)
		}
		s.logHang(before.Hang, &status)
		s.logFailed(before.Failed, &status)
	}
	err := c.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	j.input.Close()
	j.worker = nil
	if j.refused != "" {
		j.failure = j.refused
		s.log.Error("job is left alone", "job", j.job.Name, "why", j.refused, "for", refusedFor)
		return
	}
	if err != nil && !j.stopping {
		s.failed(j, err)
		return
	}
	if time.Since(j.started) > longestPause {
		j.pause = firstPause
	}
	j.again, j.failure = time.Now().Add(firstPause), "job ended or was joined by a process"
}

func (s *supervisor) failed(j *supervised, err error) {
	j.failure, j.again = err.Error(), time.Now().Add(j.pause)
	s.log.Error("worker ended", "job", j.job.Name, "error", err, "again_in", j.pause)
	j.pause = min(2*j.pause, longestPause)
}

// stop asks a worker to end; one that does not is killed.
func (j *supervised) stop() {
	j.stopping = true
	c := j.worker
	_ = c.Process.Signal(syscall.SIGTERM)
	time.AfterFunc(stopWithin, func() { _ = c.Process.Kill() }) // no harm once it has been waited for
}

func (s *supervisor) stopAll() {
	s.mu.Lock()
	for _, j := range s.jobs {
		if j.worker != nil {
			j.stop()
		}
	}
	s.mu.Unlock()
	for deadline := time.Now().Add(stopWithin + time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		left := 0
		for _, j := range s.jobs {
			if j.worker != nil {
				left++
			}
		}
		s.mu.Unlock()
		if left == 0 {
			return
		}
	}
}

// reload takes another configuration: jobs that run keep their workers until those are
// told to end, since a window may be open.
func (s *supervisor) reload(c config.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = c
	s.discover = jobs.New(c.Libraries, c.Ranks)
	for _, j := range s.jobs {
		if j.worker != nil && !j.stopping {
			j.stop()
		}
	}
}

// sends has what workers write for the store sent there.
func (s *supervisor) sends() error {
	box, err := spool.Outbox(s.config.Spool)
	if err != nil {
		return err
	}
	config := func() config.Config {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.config
	}
	s.sender = outbox.NewSender(box, timed{&store.Lazy{Location: func() string { return config().Store }}, s.node.uploads},
		func() int64 { return config().OutboxMB << 20 })
	s.profiles, err = newProfiles(config)
	return err
}

// health is nil while jobs are looked for as often as the configuration says.
func (s *supervisor) health() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.lookErr != nil:
		return s.lookErr
	case time.Since(s.looked) > 3*time.Duration(s.config.Every)+time.Minute:
		return errors.New("jobs have not been looked for")
	}
	return nil
}
