package main

import (
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/alwayson"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/calls"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/samples"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/training"
)

// results are all figures of a run.
type results struct {
	started time.Time
	took    time.Duration
	quick   bool
	command string
	load    []float64 // of the machine, at every part

	training training.Results
	calls    calls.Results
	samples  samples.Results
	starts   []*startResult
	decoding *decodeResult
	memory   *memoryResult
	always   alwayson.Results
}
