package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/agentrun"
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

// underAgent is what is read of an agent.
type underAgent struct{ *agentrun.Agent }

// steps are how many the agent has seen of each job that runs.
func steps(jobs []agentrun.Job) map[string]int64 {
	seen := map[string]int64{}
	for _, j := range jobs {
		if j.Ended != nil {
			continue // it was killed, and is shown for that
		}
		seen[j.Name] = j.Status.Steps
	}
	return seen
}

// read is what the agent takes, its workers, and what it has on the disk; and the CPU time of
// them all until now, seconds.
func (w underAgent) read() (r reading, cpu float64, err error) {
	r = reading{"worker_rss_mib": 0, "descriptors": 0} // where no worker runs
	agent, workers, err := w.Taken()
	if err != nil {
		return nil, 0, err
	}
	cpu = agent.CPU
	r["agent_rss_mib"], r["agent_descriptors"], r["workers"] = agent.RSS, agent.Descriptors, float64(len(workers))
	for _, t := range workers {
		r["worker_rss_mib"], r["descriptors"] = max(r["worker_rss_mib"], t.RSS), max(r["descriptors"], t.Descriptors)
		cpu += t.CPU
	}
	metrics, err := w.Get("/metrics")
	if err != nil {
		return nil, 0, err
	}
	r["metrics"] = float64(bytes.Count(metrics, []byte("\n")))
	held, err := agentrun.BytesIn(w.Spool())
	r["spool_mb"] = float64(held) / 1e6
	return r, cpu, err
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
	settings := fmt.Sprintf("only: ['soak-*']\nevery: 200ms\nsettle: 200ms\nflush: 2s\nbudget: 5%%\nmax_jobs: %d\nspool_mb: "+
		"16\noutbox_mb: 4\n", 2*abreast)
	running, err := agentrun.Start(program, directory, settings)
	if err != nil {
		return err
	}
	defer running.Kill()
	agent := underAgent{running}
	began := time.Now()
	readings, err := agent.have(restarts, lives, library)
	if err != nil {
		return err
	}
	if err := agent.Until("job forgotten", jobWithin, func(jobs []agentrun.Job) bool { return len(steps(jobs)) == 0 }); err != nil {
		return err
	}
	if _, left, err := agent.Taken(); err != nil || len(left) > 0 {
		return fmt.Errorf("%d workers are left when all jobs have ended: %w", len(left), err)
	}
	if err := agent.Stop(); err != nil {
		return err
	}
	sent, err := filepath.Glob(filepath.Join(agent.Store(), "v1", "pattern", "*"))
	if err != nil {
		return err
	}
	fmt.Printf("%d jobs came and went in %s; %d of them, by their names, have patterns in the store\n\n", restarts,
		time.Since(began).Round(time.Second), len(sent))
	return judge(os.Stdout, readings)
}

// have lets jobs come and go, and reads what the agent takes while they do.
func (w underAgent) have(restarts int, lives, library string) (readings []reading, err error) {
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
		r, _, err := w.read()
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
func (w underAgent) job(name, lives, library string) error {
	j, err := startJobWith([]string{"TORCHELASTIC_RUN_ID=" + name}, lives, "train", "1000000000", library)
	if err != nil {
		return err
	}
	defer j.end()
	if _, err := io.WriteString(j.stdin, "go\n"); err != nil {
		return fmt.Errorf("starting a job: %w", err)
	}
	if err := w.Until("step of "+name, jobWithin, func(jobs []agentrun.Job) bool { return steps(jobs)[name] >= someSteps }); err != nil {
		return err
	}
	j.end()
	return w.Until("end of "+name, jobWithin, func(jobs []agentrun.Job) bool { _, known := steps(jobs)[name]; return !known })
}
