package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
)

// Jobs that come and go under the agent. They are plain processes that run a library by a
// framework's name and call its scopes, as an optimizer does: quick to begin, and steps are
// learnt of them. Of five one is a restart of the same job, the others are jobs of their own.
// They do next to nothing, so that all is cold at each step: beside a busy machine that may be
// too much for a budget of 1 %, and steps would be seen in slices alone.

const (
	abreast   = 3 // jobs at a time
	someSteps = 20
	jobWithin = 2 * time.Minute // from a job's begin to its being forgotten
)

// watched is an agent and where it listens.
type watched struct {
	*exec.Cmd
	address   string
	directory string // of its store and spool
	said      lastWords
}

// lastWords are the end of what a program has said.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	l.text = l.text[max(0, len(l.text)-8000):]
	return len(p), nil
}

func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

func startAgent(program, directory string) (*watched, error) {
	store, spool := filepath.Join(directory, "store"), filepath.Join(directory, "spool")
	file := filepath.Join(directory, "agent.yaml")
	text := fmt.Sprintf("store: %s\nspool: %s\nonly: ['soak-*']\nlisten: 127.0.0.1:0\nevery: 200ms\nsettle: 200ms\nflush: 2s\nbudget: 5%%\nmax_jobs: %d\nspool_mb: 16\noutbox_mb: 4\n",
		store, spool, 2*abreast)
	if err := errors.Join(os.Mkdir(store, 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		return nil, err
	}
	w := &watched{Cmd: exec.Command(program, "--config", file), directory: directory}
	w.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	said, err := w.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w: make build", program, err)
	}
	lines := bufio.NewScanner(io.TeeReader(said, &w.said))
	for w.address == "" && lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "address="); ok {
			w.address = strings.Fields(address)[0]
		}
	}
	go func() {
		for lines.Scan() {
		}
	}()
	if w.address == "" {
		return nil, fmt.Errorf("the agent does not listen: %w", w.Wait())
	}
	return w, nil
}

func (w *watched) get(page string) ([]byte, error) {
	client := http.Client{Timeout: 10 * time.Second}
	r, err := client.Get("http://" + w.address + page)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// jobs are those that the agent knows: how many steps it has seen of each.
func (w *watched) jobs() (map[string]int64, error) {
	text, err := w.get("/jobs")
	if err != nil {
		return nil, err
	}
	var all []struct {
		Name   string
		Status struct{ Steps int64 }
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	steps := map[string]int64{}
	for _, j := range all {
		steps[j.Name] = j.Status.Steps
	}
	return steps, nil
}

// until waits for what /jobs says.
func (w *watched) until(what string, met func(map[string]int64) bool) error {
	for deadline := time.Now().Add(jobWithin); ; time.Sleep(100 * time.Millisecond) {
		jobs, err := w.jobs()
		if err != nil {
			return err
		}
		if met(jobs) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no %s in %s; /jobs has %v; the agent says\n%s", what, jobWithin, jobs, &w.said)
		}
	}
}

// read is what the agent takes, its workers, and what it has on the disk.
func (w *watched) read() (reading, error) {
	r := reading{"worker_rss_mib": 0, "descriptors": 0, "spool_mb": 0} // where no worker runs, and nothing waits
	var err error
	if r["agent_rss_mib"], r["agent_descriptors"], err = taken(w.Process.Pid); err != nil {
		return nil, fmt.Errorf("the agent has ended: %w", err)
	}
	children, err := childrenOf(w.Process.Pid)
	if err != nil {
		return nil, err
	}
	r["workers"] = float64(len(children))
	for _, pid := range children {
		if rss, descriptors, err := taken(pid); err == nil { // it may have ended
			r["worker_rss_mib"], r["descriptors"] = max(r["worker_rss_mib"], rss), max(r["descriptors"], descriptors)
		}
	}
	metrics, err := w.get("/metrics")
	if err != nil {
		return nil, err
	}
	r["metrics"] = float64(bytes.Count(metrics, []byte("\n")))
	err = filepath.WalkDir(filepath.Join(w.directory, "spool"), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				r["spool_mb"] += float64(info.Size()) / 1e6
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return r, err
}

func childrenOf(pid int) (children []int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		if err != nil {
			continue
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) > 1 && string(fields[1]) == strconv.Itoa(pid) {
			children = append(children, child)
		}
	}
	return children, nil
}

// comeAndGo has so many jobs come and go.
func comeAndGo(restarts int, program, native string) error {
	directory, err := os.MkdirTemp("", "ebpfprof-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	if err := os.Chmod(directory, 0o755); err != nil {
		return err
	}
	lives, err := install(filepath.Join(native, "lives"), directory)
	if err != nil {
		return err
	}
	library, err := install(filepath.Join(native, "scopes", "libtorch_cpu.so"), directory)
	if err != nil {
		return err
	}
	agent, err := startAgent(program, directory)
	if err != nil {
		return err
	}
	defer agent.Process.Kill()
	began := time.Now()
	readings, err := agent.have(restarts, lives, library)
	if err != nil {
		return err
	}
	if err := agent.until("job forgotten", func(jobs map[string]int64) bool { return len(jobs) == 0 }); err != nil {
		return err
	}
	left, err := childrenOf(agent.Process.Pid)
	if err != nil || len(left) > 0 {
		return fmt.Errorf("%d workers are left when all jobs have ended: %w", len(left), err)
	}
	agent.Process.Signal(syscall.SIGTERM)
	if err := agent.Wait(); err != nil {
		return fmt.Errorf("the agent ended with %w", err)
	}
	sent, err := filepath.Glob(filepath.Join(directory, "store", "v1", "pattern", "*"))
	if err != nil {
		return err
	}
	fmt.Printf("%d jobs came and went in %s; %d of them, by their names, have patterns in the store\n\n", restarts, time.Since(began).Round(time.Second), len(sent))
	return judge(os.Stdout, readings)
}

// have lets jobs come and go, and reads what the agent takes while they do.
func (w *watched) have(restarts int, lives, library string) (readings []reading, err error) {
	type turn struct {
		number int
		name   string
	}
	turns, ended := make(chan turn), make(chan error, restarts)
	var running sync.WaitGroup
	for lane := range abreast {
		running.Go(func() {
			for t := range turns {
				if t.number%5 == 0 {
					t.name = fmt.Sprintf("soak-again-%d", lane)
				}
				ended <- w.job(t.name, lives, library)
			}
		})
	}
	go func() {
		for i := range restarts {
			turns <- turn{i, fmt.Sprintf("soak-%d", i)}
		}
		close(turns)
		running.Wait()
		close(ended)
	}()
	done := 0
	for err := range ended {
		if err != nil {
			return nil, err
		}
		r, err := w.read()
		if err != nil {
			return nil, err
		}
		readings = append(readings, r)
		if done++; done%50 == 0 {
			fmt.Fprintf(os.Stderr, "%d jobs\n", done)
		}
	}
	return readings, nil
}

// job runs one until the agent has seen steps of it, and then until the agent has
// forgotten it.
func (w *watched) job(name, lives, library string) error {
	j, err := startJobWith([]string{"TORCHELASTIC_RUN_ID=" + name}, lives, "train", "1000000000", library)
	if err != nil {
		return err
	}
	defer j.end()
	if _, err := io.WriteString(j.stdin, "go\n"); err != nil {
		return fmt.Errorf("starting a job: %w", err)
	}
	if err := w.until("step of "+name, func(jobs map[string]int64) bool { return jobs[name] >= someSteps }); err != nil {
		return err
	}
	j.end()
	return w.until("end of "+name, func(jobs map[string]int64) bool { _, known := jobs[name]; return !known })
}
