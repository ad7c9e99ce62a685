package training

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/paired"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
)

const allocationTimesText = `A loop calls PyTorch's CPU allocator as its own code does (testdata/native/allocatetimes.c), and takes the time of each call without a tracer: once before and once after each recording of the same calls, in the same process. The recorded time has what probes add taken off, as measured at start on a function of the tracer's own, for allocations behind a little other work; what colder caches add is in it. Times are medians of 2,000 calls, so that what else the machine does is in neither; the share is of one call of each size, and its range that of the rounds.`

// allocationSizes are small ones, as most are, and some that go to the kernel and back.
var allocationSizes = []int64{256, 65_536, 1 << 20, 64 << 20}

// allocationCalls are made of each size in a round.
const allocationCalls = 2000

// allocationTimes is what allocations and frees took, by their own clock and recorded.
type allocationTimes struct {
	python setup.Interpreter
	own    map[string][]figure.Spread // nanoseconds a call, by action and size
	shown  map[string][]figure.Spread
	share  map[string]figure.Spread // recorded of own, of all sizes together
}

var allocatorActions = []string{"alloc", "free"}

func (r *Results) MeasureAllocationTimes(s setup.Settings, python setup.Interpreter) error {
	dir, err := os.MkdirTemp("", "ebpfprof-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	library := filepath.Join(dir, "allocatetimes.so")
	if out, err := exec.Command("cc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-o", library,
		"testdata/native/allocatetimes.c").CombinedOutput(); err != nil {
		setup.Say("no compiler of C: %v: %s", err, out)
		return nil
	}
	sizes := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(allocationSizes)), ","), "[]")
	j, err := paired.StartCommand("taskset", "-c", setup.OnJobCore, python.Path, "internal/dev/bench/jobs/allocate.py", library, sizes,
		fmt.Sprint(allocationCalls))
	if err != nil {
		return err
	}
	defer func() {
		j.In.Close()
		j.Command.Wait()
	}()
	m := allocationTimes{python: python, own: map[string][]figure.Spread{}, shown: map[string][]figure.Spread{},
		share: map[string]figure.Spread{}}
	for _, action := range allocatorActions {
		m.own[action], m.shown[action] = make([]figure.Spread, len(allocationSizes)), make([]figure.Spread, len(allocationSizes))
	}
	for range s.Rounds {
		if err := m.round(j); err != nil {
			return err
		}
	}
	r.allocations = append(r.allocations, m)
	return nil
}

// round is one recording, and the job's own times on both sides of it.
func (m *allocationTimes) round(j *paired.Job) error {
	before, err := ownTimes(j)
	if err != nil {
		return err
	}
	sink := &recordedTimes{times: map[string]map[int64][]float64{"alloc": {}, "free": {}}}
	if err := recordTimes(j, sink); err != nil {
		return err
	}
	after, err := ownTimes(j)
	if err != nil {
		return err
	}
	for _, action := range allocatorActions {
		var ownSum, shownSum float64
		for k, size := range allocationSizes {
			own := float64(before[action][k]+after[action][k]) / 2
			shown := figure.Median(sink.times[action][size])
			m.own[action][k].Add(own)
			m.shown[action][k].Add(shown)
			ownSum, shownSum = ownSum+own, shownSum+shown
		}
		share := m.share[action]
		share.Add(shownSum / ownSum)
		m.share[action] = share
	}
	if sink.untimed > 0 {
		return fmt.Errorf("%d calls of the loop have no time", sink.untimed)
	}
	return nil
}

func ownTimes(j *paired.Job) (times map[string][]int64, err error) {
	if _, err := fmt.Fprintln(j.In, "times"); err != nil {
		return nil, err
	}
	if !j.Out.Scan() {
		return nil, errors.New("the job ended")
	}
	return times, json.Unmarshal(j.Out.Bytes(), &times)
}

func recordTimes(j *paired.Job, sink tracer.Sink) error {
	session, err := tracer.Open(context.Background(), tracer.Options{
		PIDs: []int{j.Pid}, Budget: tracer.Unlimited, Filter: filter.Filter{Probe: filter.Terms{filter.Group: {"memory"}}},
	}, sink)
	if err != nil {
		return err
	}
	defer session.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- session.Run(ctx) }()
	_, err = ownTimes(j)
	cancel()
	return errors.Join(err, <-done)
}

// recordedTimes are the recorded times of the loop's calls, which its sizes tell.
type recordedTimes struct {
	times   map[string]map[int64][]float64
	untimed int
}

// Write implements event.Sink.
func (s *recordedTimes) Write(b *event.Batch) error {
	for _, row := range b.Memory {
		switch times := s.times[row.Action]; {
		case times == nil || row.Bytes == nil:
		case row.DurationNS == nil:
			s.untimed++
		default:
			times[*row.Bytes] = append(times[*row.Bytes], float64(*row.DurationNS))
		}
	}
	return nil
}

// allocationTimesWithin is how far off recorded times may be of the job's own.
const allocationTimesWithin = 0.1

func (r *Results) AllocationTargets(p *figure.Page) {
	for _, m := range r.allocations {
		for _, action := range allocatorActions {
			share := m.share[action]
			p.Row(fmt.Sprintf("time in the allocator, %s: within 10 %% of the job's own", action), m.python.Name,
				fmt.Sprintf("%+.1f %%", 100*(figure.Median(share.Values)-1)),
				figure.Verdict(math.Abs(figure.Median(share.Values)-1) <= allocationTimesWithin))
		}
	}
}

func (r *Results) AllocationTables(p *figure.Page) {
	if len(r.allocations) == 0 {
		return
	}
	p.Line("## Time in the allocator\n\n%s\n", allocationTimesText)
	p.Table("PyTorch", "call", "bytes", "own, ns", "recorded, ns", "share")
	for _, m := range r.allocations {
		for _, action := range allocatorActions {
			for k, size := range allocationSizes {
				own, shown := figure.Median(m.own[action][k].Values), figure.Median(m.shown[action][k].Values)
				p.Row(m.python.Name, action, fmt.Sprint(size), fmt.Sprintf("%.0f", own), fmt.Sprintf("%.0f", shown), fmt.Sprintf("%.2f", shown/own))
			}
			share := m.share[action]
			p.Row(m.python.Name, action, "all", "", "", fmt.Sprintf("%.3f (%.3f–%.3f)", figure.Median(share.Values), slices.Min(share.Values),
				slices.Max(share.Values)))
		}
	}
	p.Line("")
}
