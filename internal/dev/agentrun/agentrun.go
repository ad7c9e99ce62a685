// Package agentrun starts the agent as it is deployed, for those who measure what it takes:
// the bench and the soak.
package agentrun

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Agent is one that runs, with a store and a spool of its own.
type Agent struct {
	command   *exec.Cmd
	directory string
	address   string // where it listens
	said      lastWords
}

// Start has a program run with these settings, lines of its configuration beside where it
// keeps things and where it listens: a port of its own. by is a command line that starts
// another one, as taskset(1) does, or none. It returns when the agent listens; nothing of it
// outlives the caller.
func Start(program, directory, settings string, by ...string) (*Agent, error) {
	a := &Agent{directory: directory}
	file := filepath.Join(directory, "agent.yaml")
	text := fmt.Sprintf("store: %s\nspool: %s\nlisten: 127.0.0.1:0\n%s", a.Store(), a.Spool(), settings)
	if err := errors.Join(os.Mkdir(a.Store(), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		return nil, err
	}
	line := slices.Concat(by, []string{program, "--config", file})
	a.command = exec.Command(line[0], line[1:]...)
	a.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	said, err := a.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := a.command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w: make build", program, err)
	}
	lines := bufio.NewScanner(io.TeeReader(said, &a.said))
	for a.address == "" && lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "address="); ok {
			a.address = strings.Fields(address)[0]
		}
	}
	go func() {
		for lines.Scan() {
		}
	}()
	if a.address == "" {
		return nil, fmt.Errorf("the agent does not listen: %w\n%s", a.command.Wait(), &a.said)
	}
	return a, nil
}

// Store and Spool are where it keeps things.
func (a *Agent) Store() string { return filepath.Join(a.directory, "store") }
func (a *Agent) Spool() string { return filepath.Join(a.directory, "spool") }

// Said is the end of what it has said.
func (a *Agent) Said() string { return a.said.String() }

// Get is a page of those that it serves.
func (a *Agent) Get(page string) ([]byte, error) {
	client := http.Client{Timeout: 10 * time.Second}
	r, err := client.Get("http://" + a.address + page)
	if err != nil {
		return nil, fmt.Errorf("asking the agent: %w", err)
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// Watching is the state of a worker that takes no window.
const Watching = "watching"

// Job is one that the agent knows, as /jobs says.
type Job struct {
	Name   string
	Ended  *time.Time // nil while it runs; one that failed is shown for a while
	Status struct {
		State          string
		Steps, Windows int64
	}
}

// Jobs are those that it knows.
func (a *Agent) Jobs() (jobs []Job, err error) {
	text, err := a.Get("/jobs")
	if err != nil {
		return nil, err
	}
	return jobs, json.Unmarshal(text, &jobs)
}

// Until waits for what /jobs says, at most so long; without it its error says what was
// waited for, and what the agent said.
func (a *Agent) Until(what string, within time.Duration, met func([]Job) bool) error {
	for deadline := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		jobs, err := a.Jobs()
		if err != nil {
			return fmt.Errorf("%w\n%s", err, &a.said)
		}
		if met(jobs) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no %s in %s; /jobs has %v; the agent says\n%s", what, within, jobs, &a.said)
		}
	}
}

// Stop ends it as systemd does, and says what it said if that went wrong.
func (a *Agent) Stop() error {
	_ = a.command.Process.Signal(syscall.SIGTERM)
	if err := a.command.Wait(); err != nil {
		return fmt.Errorf("the agent ended with %w\n%s", err, &a.said)
	}
	return nil
}

// Kill ends it if it still runs.
func (a *Agent) Kill() {
	_ = a.command.Process.Kill()
	_ = a.command.Wait()
}

// mostSaid is how much is kept of what an agent says.
const mostSaid = 8000

// lastWords are the end of what a program has said.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	l.text = l.text[max(0, len(l.text)-mostSaid):]
	return len(p), nil
}

func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
