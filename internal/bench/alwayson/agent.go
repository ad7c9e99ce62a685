package alwayson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/bench/setup"
)

// agent is the real one, with a configuration of its own, on the tracer's core.
type agent struct {
	command   *exec.Cmd
	said      *log
	directory string // of its configuration, store and spool
}

// log is what a program says, from the goroutine that reads it.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// jobName is what the measured job is called; its twin is called otherwise, and left alone.
const jobName = "measured"

func startAgent(program string) (*agent, error) {
	directory, err := os.MkdirTemp("", "ebpfprof-bench-agent-")
	if err != nil {
		return nil, err
	}
	a := &agent{said: &log{}, directory: directory}
	file := filepath.Join(directory, "agent.yaml")
	text := fmt.Sprintf("store: %s\nspool: %s\nonly: [%s]\nlisten: 127.0.0.1:0\n", a.store(), a.spool(), jobName)
	if err := errors.Join(os.Mkdir(a.store(), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(directory))
	}
	a.command = exec.Command("taskset", "-c", strconv.Itoa(setup.TracerCore), program, "--config", file)
	a.command.Stderr = a.said
	a.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := a.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w: make build", program, err), os.RemoveAll(directory))
	}
	return a, nil
}

func (a *agent) store() string { return filepath.Join(a.directory, "store") }
func (a *agent) spool() string { return filepath.Join(a.directory, "spool") }

// patience is how long the agent may take until it watches: it finds the job, lets it
// settle, and plans its probes. After learning it sees steps, or it never does: those of the
// worst case may be too short to be seen one by one within the budget.
const (
	patience = 3 * time.Minute
	learning = 20 * time.Second
)

// watches waits until it watches the job, and sees its steps if it ever will.
func (a *agent) watches() error {
	var since time.Time
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Second) {
		j, err := a.job()
		if err == nil && j.State != "" && since.IsZero() {
			since = time.Now()
		}
		if err == nil && (j.Steps > 0 || !since.IsZero() && time.Since(since) > learning) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the agent does not watch the job: %w\n%s", err, a.said)
		}
	}
}

// status is what is read of /jobs.
type status struct {
	State          string
	Steps, Windows int64
}

func (a *agent) job() (s status, err error) {
	_, address, ok := strings.Cut(a.said.String(), "address=")
	if !ok {
		return s, errors.New("the agent does not listen yet")
	}
	client := http.Client{Timeout: 5 * time.Second}
	r, err := client.Get("http://" + strings.Fields(address)[0] + "/jobs")
	if err != nil {
		return s, fmt.Errorf("asking the agent: %w", err)
	}
	defer r.Body.Close()
	var jobs []struct{ Status status }
	if err := json.NewDecoder(r.Body).Decode(&jobs); err != nil || len(jobs) != 1 {
		return s, fmt.Errorf("the agent has %d jobs: %w", len(jobs), err)
	}
	return jobs[0].Status, nil
}

// stop ends it and says what it wrote if that went wrong.
func (a *agent) stop() error {
	_ = a.command.Process.Signal(syscall.SIGTERM)
	if err := a.command.Wait(); err != nil {
		return fmt.Errorf("the agent: %w\n%s", err, a.said)
	}
	return nil
}

// remove ends what still runs and removes its files.
func (a *agent) remove() {
	_ = a.command.Process.Kill()
	_, _ = a.command.Process.Wait()
	_ = os.RemoveAll(a.directory)
}

// usage is what the agent takes at one moment: it and its workers together.
type usage struct {
	at           time.Time
	cpu          float64 // seconds
	rss          float64 // MiB
	worker       float64 // of it, of the largest worker
	store, spool int64   // bytes
	state        string  // of the worker
}

// watching is the state of a worker that takes no window.
const watching = "watching"

func (a *agent) usage() (u usage, err error) {
	now, err := a.job()
	if err != nil {
		return u, err
	}
	u.at, u.state = time.Now(), now.State
	pid := a.command.Process.Pid // taskset has become the agent
	agent, err := statOf(pid)
	if err != nil {
		return u, fmt.Errorf("the agent has ended: %w\n%s", err, a.said)
	}
	u.cpu, u.rss = agent.cpu, agent.rss
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return u, err
	}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, err := statOf(child); err == nil && s.parent == pid {
			u.cpu, u.rss, u.worker = u.cpu+s.cpu, u.rss+s.rss, max(u.worker, s.rss)
		}
	}
	u.store, err = bytesIn(a.store())
	if err != nil {
		return u, err
	}
	u.spool, err = bytesIn(a.spool())
	return u, err
}

// stat is of a process: its CPU time and that of the children that it has waited for.
type stat struct {
	parent   int
	cpu, rss float64
}

func statOf(pid int) (s stat, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, err
	}
	// The command's name is in parentheses and may have any characters; proc_pid_stat(5).
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 22 {
		return s, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	number := func(i int) (n int64) { n, _ = strconv.ParseInt(string(fields[i]), 10, 64); return n }
	const ticks = 100 // of /proc in a second, on every architecture that this runs on
	s.parent = int(number(1))
	for i := 11; i <= 14; i++ { // utime, stime, cutime, cstime
		s.cpu += float64(number(i)) / ticks
	}
	s.rss = float64(number(21)*int64(os.Getpagesize())) / (1 << 20)
	return s, nil
}

func bytesIn(directory string) (held int64, err error) {
	err = filepath.WalkDir(directory, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				held += info.Size()
			}
		}
		return ignoreGone(err) // files go while they are looked at
	})
	return held, err
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
