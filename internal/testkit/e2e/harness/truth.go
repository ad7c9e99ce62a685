package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Truth is what a job says it did: the last line of its output. Each job tells
// a part of it (testdata/jobs/README.md).
type Truth struct {
	PID    int    `json:"pid"`
	Torch  string `json:"torch"`
	SHA256 string `json:"sha256"`
	Begin  Clocks `json:"begin"`
	End    Clocks `json:"end"`

	Trained Clocks `json:"trained"` // gloo.py: between begin and end

	Steps          int64            `json:"steps"`
	Tokens         int64            `json:"tokens"`
	Requests       int64            `json:"requests"`
	Seconds        float64          `json:"seconds"`
	BackwardPasses int64            `json:"backward_passes"`
	Scopes         map[string]int64 `json:"scopes"`
	Nodes          map[string]int64 `json:"nodes"`

	Train     int     `json:"train"` // loops.py: training and evaluation steps
	Evaluate  int     `json:"evaluate"`
	PeriodsNS []int64 `json:"periods_ns"`
	Line      int     `json:"line"` // planted.py: of the problem

	Stacks [][]string       `json:"stacks"` // lines.py: file:line, innermost first
	Marked map[string][]int `json:"marked"` // likewise: which of them each call has, by operator

	Fused        map[string]int64 `json:"fused"`      // compiled.py: calls between begin and end
	Functions    map[string]int64 `json:"functions"`  // likewise, as torch.profiler names and counts them in one step
	Libraries    int64            `json:"libraries"`  // likewise: generated
	CompileNS    int64            `json:"compile_ns"` // likewise: what torch._dynamo counts
	Compilations int64            `json:"compilations"`

	Operators  map[string]int64              `json:"operators"`
	Numbers    map[string][]string           `json:"numbers"` // devicecalls.py: function:line, leaf first
	Threads    map[string]map[string]int64   `json:"threads"`
	Forked     map[string]map[string]int64   `json:"forked"`
	Executed   map[string]map[string]int64   `json:"executed"`
	Parent     map[string]int64              `json:"parent"`
	Workers    []map[string]map[string]int64 `json:"workers"`
	InParent   map[string]int64              `json:"operators_in_parent"`
	Threw      map[string]int64              `json:"threw"`
	ThrewOther map[string]int64              `json:"threw_other"`
	Succeeded  map[string]int64              `json:"succeeded"`

	Memory   *Balance          `json:"memory"`
	Kernels  map[string]Kernel `json:"kernels"`
	Writes   Calls             `json:"writes"`
	Reads    Calls             `json:"reads"`
	Finishes int64             `json:"finishes"`
	Refused  map[string]int64  `json:"refused"`
	DeviceNS map[string]int64  `json:"device_ns"`
	Calls    []RuntimeCall     `json:"calls"` // opencl_calls, levelzero.py

	UserNS int64 `json:"user_ns"` // busy.py
	Bytes  int64 `json:"bytes"`

	CPUNS   map[string]int64 `json:"cpu_ns"` // shares.py: by function
	Sleeps  [][2]int64       `json:"sleeps"` // CLOCK_MONOTONIC before and after
	SleepNS int64            `json:"sleep_ns"`

	Loaded map[string]Loaded `json:"loaded"` // loader.py: by directory
	Faults int64             `json:"faults"`

	Rivalry   [2]int64 `json:"rivalry"` // waits.py: CLOCK_MONOTONIC
	QueuedNS  int64    `json:"queued_ns"`
	StoppedNS int64    `json:"stopped_ns"`

	PJRT PJRTTruth `json:"pjrt"`
	JAX  JAXTruth  `json:"jax"`

	Rank      int              `json:"rank"`
	WorldSize int              `json:"world_size"`
	Setup     map[string]Calls `json:"setup"`
	DDP       map[string]Calls `json:"ddp"`
	ByHand    map[string]Calls `json:"by_hand"`
}

// Clocks is one moment as the job read it.
type Clocks struct {
	Monotonic int64 `json:"monotonic_ns"`
}

// Balance is what allocations.py and torch.profiler say of a region's memory.
type Balance struct {
	Allocations    int64 `json:"allocations"`
	Frees          int64 `json:"frees"`
	BytesAllocated int64 `json:"bytes_allocated"`
	BytesFreed     int64 `json:"bytes_freed"`
	PeakBytes      int64 `json:"peak_bytes"`
	LiveAtEnd      int64 `json:"live_bytes_at_end"`
	TimedNS        int64 `json:"timed_ns"` // of the allocations, by the job's own clock
	FreedNS        int64 `json:"freed_ns"` // likewise of the frees
	Refused        int64 `json:"refused"`
	RefusedBytes   int64 `json:"refused_bytes"`
}

// Kernel is what was launched by one name, and in which sizes.
type Kernel struct {
	Launches int64   `json:"launches"`
	Global   []int64 `json:"global"`
	Local    []int64 `json:"local"`
}

// Calls are how many, of how many bytes together.
type Calls struct {
	Calls int64 `json:"calls"`
	Bytes int64 `json:"bytes"`
}

// Loaded is what loader.py has read, and how long that took by its own clock.
type Loaded struct {
	Calls
	NS int64 `json:"ns"`
}

// RuntimeCall is one call as the program tells it: status is the runtime's own,
// bytes -1 where the call says none.
type RuntimeCall struct {
	Name      string `json:"name"`
	Status    int64  `json:"status"`
	Bytes     int64  `json:"bytes"`
	Direction string `json:"direction"`
}

func (c RuntimeCall) String() string {
	return fmt.Sprintf("%s: status %d, %d bytes %s", c.Name, c.Status, c.Bytes, c.Direction)
}

// PJRTTruth is what the driver of the stub plugin says it did.
type PJRTTruth struct {
	Executions map[string]struct {
		Calls     int64 `json:"calls"`
		Devices   int64 `json:"devices"`
		Arguments int64 `json:"arguments"`
		LaunchIDs int64 `json:"launch_ids"`
	} `json:"executions"`
	Refused   int64            `json:"refused"`
	Sent      map[string]Calls `json:"sent"`
	Received  Calls            `json:"received"`
	Destroyed int64            `json:"destroyed"`
	Compiled  int64            `json:"compiled"`
	Awaited   int64            `json:"awaited"`
}

// JAXTruth is what jax_plugin.py says it did.
type JAXTruth struct {
	Executions map[string]int64 `json:"executions"`
	Arguments  map[string]int64 `json:"arguments"`
	Sent       map[string]Calls `json:"sent"`
}

// Profiled is what torch.profiler counted in a job's region.
type Profiled struct {
	Operators map[string]int64    `json:"operators"`
	MedianNS  map[string]int64    `json:"median_ns"`
	Scopes    map[string]int64    `json:"scopes"`
	Classes   map[string][]string `json:"classes"`
}

var errNoTruth = errors.New("the job told no truth")

// Truth is what the job said, so far; errNoTruth when it said nothing.
func (c *Command) Truth() (told Truth, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.out {
		if !strings.HasPrefix(line, `{"truth"`) {
			continue
		}
		outer := struct{ Truth *Truth }{&told}
		if err := json.Unmarshal([]byte(line), &outer); err != nil {
			return told, fmt.Errorf("%w: %s", err, line)
		}
		return told, nil
	}
	return told, fmt.Errorf("%s: %w\n%s", c, errNoTruth, strings.Join(c.out, "\n")+"\n"+c.errs.String())
}
