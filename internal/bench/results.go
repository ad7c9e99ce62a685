package main

import (
	"time"

	"github.com/ebpfprof/ebpfprof/internal/bench/alwayson"
	"github.com/ebpfprof/ebpfprof/internal/bench/calls"
	"github.com/ebpfprof/ebpfprof/internal/bench/samples"
	"github.com/ebpfprof/ebpfprof/internal/bench/training"
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
