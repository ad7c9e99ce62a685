package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
)

// seen is what a recording holds of a job: calls that succeeded, while it did
// what it tells of.
type seen struct {
	Launches      map[string]int64 `json:"launches"`
	NameSources   map[string]int64 `json:"name_sources"`
	Copies        int64            `json:"copies"`
	GraphLaunches int64            `json:"graph_launches"`
	Captured      int64            `json:"captured_launches"`
	Collectives   map[string]int64 `json:"collectives,omitempty"`
	Lost          map[string]int64 `json:"lost"` // by reason; empty is nothing
}

// collector keeps the calls into the runtimes.
type collector struct {
	mu    sync.Mutex
	calls []call
	lost  map[string]int64
}

type call struct {
	startNS                         int64
	name, category, runtime, source string
}

// Write implements event.Sink.
func (c *collector) Write(b *event.Batch) error {
	c.addSpans(b.Spans)
	for i := range b.Warnings {
		c.addWarning(b.Warnings[i])
	}
	return nil
}

func (c *collector) addSpans(spans []tracer.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range spans {
		s := &spans[i]
		if s.Call.Runtime == "" || s.Status != tracer.StatusOK {
			continue
		}
		one := call{startNS: s.StartNS, name: s.Call.Name, category: s.Call.Category, runtime: s.Call.Runtime}
		if s.Detail != nil {
			one.source = s.Detail.NameSource
		}
		c.calls = append(c.calls, one)
	}
}

func (c *collector) addWarning(w tracer.Warning) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.Kind == "lost" {
		c.lost[w.Source] += w.Count
	}
}

// groups are what is recorded: the runtimes, not the framework.
var groups = []string{"cuda", "cuda-code", "cuda-memory", "cuda-sync", "cuda-stubs", "nccl"}

// recorded runs a job under the tracer, from ready to told.
func recorded(j *job) (*told, *seen, error) {
	to := &collector{lost: map[string]int64{}}
	session, err := tracer.Open(context.Background(), tracer.Options{PIDs: []int{j.Process.Pid}, Filter: filter.OfGroups(groups...),
		Follow: true, Budget: tracer.Unlimited}, to)
	if err != nil {
		return nil, nil, err
	}
	defer session.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- session.Run(ctx) }()
	if err := j.goOn(); err != nil {
		return nil, nil, err
	}
	told, toldErr := j.tells()
	stop()
	if err := <-done; err != nil {
		return nil, nil, fmt.Errorf("recording: %w", err)
	}
	if toldErr != nil {
		return nil, nil, toldErr
	}
	return told, to.between(told, session.ClockOffsetNS()), nil
}

// between counts what began while the job did what it tells of.
func (c *collector) between(t *told, offsetNS int64) *seen {
	s := &seen{Launches: map[string]int64{}, NameSources: map[string]int64{}, Collectives: map[string]int64{}, Lost: c.lost}
	for _, one := range c.calls {
		at := one.startNS - offsetNS
		if at < t.BeginNS || at > t.EndNS {
			continue
		}
		switch {
		case one.runtime == "nccl":
			s.Collectives[one.name]++
		case one.category == "launch" && isGraphLaunch(one.name):
			s.GraphLaunches++
		case one.category == "launch":
			s.Launches[one.name]++
			s.NameSources[one.source]++
		case one.category == "graph" && isGraphLaunch(one.name):
			s.GraphLaunches++
		case one.category == "graph" && one.source != "":
			s.Captured++
		case one.category == "copy":
			s.Copies++
		}
	}
	return s
}

func isGraphLaunch(name string) bool { return strings.HasPrefix(name, "cuGraphLaunch") }
