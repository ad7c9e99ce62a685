// Package replay proves plans: it reads what the test library in testdata/replay
// logged of a training loop on the CPU, plans its steps, and writes the plan that
// the library serves the same loop from. For testing only: nothing of it is in the
// shipped commands.
package replay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/hot"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/pool"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
)

// ErrNothingRecurs is returned for a log whose steps are not alike.
var ErrNothingRecurs = errors.New("no three consecutive steps are alike")

// Log is what a run allocated and freed, and where its steps began.
type Log struct {
	Lives *blocks.Lives
	Steps hot.Steps
}

// Paths of a log's requests: it has no stacks, but knows which came in a step.
const (
	inStep  = 0
	outside = 1
)

// ReadLog reads REPLAY_LOG.
func ReadLog(r io.Reader) (*Log, error) {
	var (
		l      = &Log{Steps: hot.Steps{Method: "the job's own mark"}}
		events []blocks.Event
		path   int64 = outside
	)
	scanner := bufio.NewScanner(r)
	for n := 1; scanner.Scan(); n++ {
		text := scanner.Text()
		e := blocks.Event{TSNS: int64(n), Allocated: blocks.Unknown, Reserved: blocks.Unknown, Duration: blocks.Unknown,
			Path: path, Weight: 1, Bytes: blocks.Unknown}
		switch {
		case text == "s":
			l.Steps.Cuts, l.Steps.CutsNS = append(l.Steps.Cuts, int64(len(events))), append(l.Steps.CutsNS, int64(n))
			path = inStep
			continue
		case text == "p":
			path = outside
			continue
		}
		var kind string
		if _, err := fmt.Sscan(text, &kind, &e.Address); err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", n, text, err)
		}
		if kind == "f" {
			e.Action = blocks.Free
		} else if _, err := fmt.Sscan(text, &kind, &e.Address, &e.Bytes); err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", n, text, err)
		}
		events = append(events, e)
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	all := blocks.Build([]blocks.Arena{{Space: "host", Level: "allocator", Device: blocks.Unknown}}, events)
	if len(all) == 0 {
		return nil, errors.New("the log is empty")
	}
	l.Lives = all[0]
	return l, nil
}

// Plan is what a step of a log is served from.
type Plan struct {
	Requests []Request // of a step, in order
	Result   *solve.Plan
	NoReuse  int64
	Pool     int64 // what PyTorch's caching allocator would hold for the planned part
	Recurs   float64
	From     int // steps that come before those that are alike
}

// Request is one of a step's requests.
type Request struct {
	Bytes   int64
	Offset  int64 // -1: not planned
	block   int
	ends    int64 // tick
	crosses bool
}

// Plan plans the requests that recur.
func (l *Log) Plan(ctx context.Context, limit time.Duration) (*Plan, error) {
	t := hot.NewTemplate(l.Lives, l.Steps)
	if t == nil {
		return nil, ErrNothingRecurs
	}
	offsetOf := map[int]int{} // by block: the template's request
	var all []solve.Block
	for _, r := range t.Requests {
		if r.Path == inStep {
			offsetOf[r.Example] = len(all)
			all = append(all, solve.Block{Lower: r.Lower, Upper: r.Upper, Size: r.Bytes})
		}
	}
	all, err := solve.Align(all, solve.AlignmentCPU)
	if err != nil {
		return nil, err
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	result, err := solve.Solve(timed, solve.Problem{Blocks: all})
	if err != nil {
		return nil, err
	}
	p := &Plan{Result: result, NoReuse: solve.Total(all), Recurs: t.Share(), From: firstAlike(l, t)}
	planned := map[int]bool{}
	for i, is := range t.Hot {
		planned[i] = is && l.Lives.Blocks[i].Path == inStep
	}
	p.Pool = pool.Simulate(hot.PoolRequests(l.Lives, func(i int) bool { return planned[i] }), pool.Options{}).Reserved
	k := t.FirstOf3 + 2
	for i := range l.Lives.Blocks {
		b := &l.Lives.Blocks[i]
		if b.Born <= l.Steps.Cuts[k] || b.Born > l.Steps.Cuts[k+1] || b.Path != inStep {
			continue
		}
		r := Request{Bytes: b.Bytes, Offset: -1, block: i, ends: b.Died, crosses: b.Died > l.Steps.Cuts[k+1]}
		if at, is := offsetOf[i]; is {
			r.Offset = result.Offsets[at]
		}
		p.Requests = append(p.Requests, r)
	}
	return p, nil
}

// firstAlike is the first step from which on every one makes as many requests as
// the template's steps do.
func firstAlike(l *Log, t *hot.Template) int {
	counts := make([]int, len(l.Steps.Cuts))
	for i := range l.Lives.Blocks {
		b := &l.Lives.Blocks[i]
		if b.Path != inStep {
			continue
		}
		at, _ := slices.BinarySearch(l.Steps.Cuts, b.Born)
		counts[at-1]++
	}
	first := t.FirstOf3
	for first > 0 && counts[first-1] == counts[t.FirstOf3] {
		first--
	}
	return first
}

// Write writes REPLAY_PLAN.
func (p *Plan) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "region %d from %d\n", p.Result.Peak, p.From)
	for _, r := range p.Requests {
		fmt.Fprintf(out, "%d %d\n", r.Bytes, r.Offset)
	}
	return out.Flush()
}

// WriteSequence writes a step for the benchmark: what outlives it is freed before
// its next birth.
func (p *Plan) WriteSequence(l *Log, w io.Writer) error {
	out := bufio.NewWriter(w)
	dying := map[int64]int{}
	for i, r := range p.Requests {
		if !r.crosses {
			dying[r.ends] = i
		}
	}
	if len(p.Requests) == 0 {
		return out.Flush()
	}
	next := 0
	last := l.Lives.Blocks[p.Requests[len(p.Requests)-1].block].Born
	for tick := l.Lives.Blocks[p.Requests[0].block].Born; tick <= last || len(dying) > 0; tick++ {
		if i, is := dying[tick]; is {
			fmt.Fprintf(out, "f %d\n", i)
			delete(dying, tick)
		}
		if next < len(p.Requests) && l.Lives.Blocks[p.Requests[next].block].Born == tick {
			if p.Requests[next].crosses {
				fmt.Fprintf(out, "f %d\n", next)
			}
			fmt.Fprintf(out, "a %d %d\n", next, p.Requests[next].Bytes)
			next++
		}
	}
	return out.Flush()
}
