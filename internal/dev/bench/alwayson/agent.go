package alwayson

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/agentrun"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
)

// agent is the real one with its defaults, on the tracer's core.
type agent struct {
	*agentrun.Agent
	directory string // of its configuration, store and spool
}

// jobName is what the measured job is called; its twin is called otherwise, and left alone.
const jobName = "measured"

func startAgent(program string) (*agent, error) {
	directory, err := os.MkdirTemp("", "ebpfprof-bench-agent-")
	if err != nil {
		return nil, err
	}
	running, err := agentrun.Start(program, directory, "only: ["+jobName+"]\n", "taskset", "-c", strconv.Itoa(setup.TracerCore))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(directory))
	}
	return &agent{running, directory}, nil
}

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
	return a.Until("watched job", patience, func(jobs []agentrun.Job) bool {
		if len(jobs) != 1 {
			return false
		}
		if jobs[0].Status.State != "" && since.IsZero() {
			since = time.Now()
		}
		return jobs[0].Status.Steps > 0 || !since.IsZero() && time.Since(since) > learning
	})
}

// job is what it says of the only one that it may watch.
func (a *agent) job() (j agentrun.Job, err error) {
	jobs, err := a.Jobs()
	if err != nil || len(jobs) != 1 {
		return j, fmt.Errorf("the agent has %d jobs: %w", len(jobs), err)
	}
	return jobs[0], nil
}

// remove ends what still runs and removes its files.
func (a *agent) remove() {
	a.Kill()
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

func (a *agent) usage() (u usage, err error) {
	now, err := a.job()
	if err != nil {
		return u, err
	}
	u.at, u.state = time.Now(), now.Status.State
	agent, workers, err := a.Taken()
	if err != nil {
		return u, err
	}
	u.cpu, u.rss = agent.CPU, agent.RSS
	for _, w := range workers {
		u.cpu, u.rss, u.worker = u.cpu+w.CPU, u.rss+w.RSS, max(u.worker, w.RSS)
	}
	if u.store, err = agentrun.BytesIn(a.Store()); err != nil {
		return u, err
	}
	u.spool, err = agentrun.BytesIn(a.Spool())
	return u, err
}
