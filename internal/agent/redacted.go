package agent

import (
	"github.com/ebpfprof/ebpfprof/internal/redact"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// With redact, what leaves a node names no host, no job and no directory: not in the
// store, whose keys have both, not in the spool, not in /metrics, /jobs and the log.

// called is what a job or a host is called outside.
func (c *Config) called(name string) string {
	if c.Redact {
		return redact.Pseudonym(name)
	}
	return name
}

// sink is where events go that leave the node.
func (c *Config) sink(to event.Sink) event.Sink {
	if c.Redact {
		return redact.NewSink(to)
	}
	return to
}
