package config

import (
	"github.com/ebpfprof/ebpfprof/internal/redact"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// With redact, what leaves a node names no host, no job and no directory: not in the
// store, whose keys have both, not in the spool, not in /metrics, /jobs and the log.

// Called is what a job or a host is called outside.
func (c *Config) Called(name string) string {
	if c.Redact {
		return redact.Pseudonym(name)
	}
	return name
}

// Sink is where events go that leave the node.
func (c *Config) Sink(to event.Sink) event.Sink {
	if c.Redact {
		return redact.NewSink(to)
	}
	return to
}
