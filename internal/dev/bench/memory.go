package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/hot"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/pool"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/replay"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const memoryText = `Synthetic training steps: weights that stay, activations that die in the reverse order of their births, workspaces in between, all of sizes that differ from step to step. The blocks hang together through the weights. ` + "`memory`" + ` reads the events of a dataset in Parquet, on both cores; the solvers' rows are the best plan in the time that it may take, and best fit as published alone. The allocator that serves a step from a plan (testdata/replay, for testing only) is timed beside glibc's on the same requests, a free included; PyTorch's caching allocator needs a GPU: beside them stands our model of it (internal/answer/memplan/pool), without a driver behind it; all three are times of the CPU. Seconds in brackets are of CPU, of all threads.`

// memoryResult is what the memory planner took.
type memoryResult struct {
	events int
	load   spent
	page   spent // of WriteHTML
	bytes  int   // of the page
	solved []solvedResult
	replay string // "" where there is no C compiler
	ns     [2]float64
	pool   float64 // ns an allocation, its free included
}

type solvedResult struct {
	blocks  int
	limit   time.Duration
	bestFit spent
	bestGap float64
	took    spent
	gap     float64
}

// spent is the time of a part, and what all threads used of the CPUs for it.
type spent struct{ wall, cpu time.Duration }

func (s spent) String() string {
	return fmt.Sprintf("%.1f s (%.1f)", s.wall.Seconds(), s.cpu.Seconds())
}

// spend times a part.
func spend(do func() error) (spent, error) {
	begun, before := time.Now(), setup.CPUTime()
	err := do()
	return spent{time.Since(begun), time.Duration((setup.CPUTime() - before) * 1e9)}, err
}

// plannedSteps are n blocks of the shape that memoryText tells.
func plannedSteps(n int) []solve.Block {
	const weights, layers = 200, 120
	r := rand.New(rand.NewPCG(1, 2))
	var all []solve.Block
	tick := int64(weights)
	for len(all)+weights < n {
		births := make([]int64, layers)
		sizes := make([]int64, layers)
		for k := range layers {
			births[k], sizes[k] = tick, 64*(1+r.Int64N(1<<uint(4+k%12)))
			tick++
			all = append(all, solve.Block{Lower: tick, Upper: tick + 1, Size: 64 * (1 + r.Int64N(4096))})
			tick += 2
		}
		for k := layers - 1; k >= 0; k-- {
			all = append(all, solve.Block{Lower: births[k], Upper: tick + 1, Size: sizes[k]})
			all = append(all, solve.Block{Lower: tick, Upper: tick + 3, Size: sizes[k]})
			tick += 2
		}
	}
	all = all[:max(0, n-weights)]
	for k := range int64(weights) {
		all = append(all, solve.Block{Lower: k, Upper: tick + 1, Size: 64 * (1 + r.Int64N(20_000))})
	}
	return all
}

func (r *results) measureMemory(s setup.Settings) error {
	m := &memoryResult{events: s.Spans}
	for _, c := range []struct {
		blocks int
		limit  time.Duration
	}{{100_000, 5 * time.Second}, {1_000_000, time.Minute}} {
		if r.quick && c.blocks > 100_000 {
			continue
		}
		result, err := solveFor(c.blocks, c.limit)
		if err != nil {
			return err
		}
		m.solved = append(m.solved, result)
	}
	if err := m.measureLoad(); err != nil {
		return err
	}
	if err := m.measureReplay(); err != nil {
		return err
	}
	r.memory = m
	return nil
}

func solveFor(n int, limit time.Duration) (solvedResult, error) {
	blocks := plannedSteps(n)
	ctx, cancel := context.WithTimeout(context.Background(), limit*9/10)
	defer cancel()
	var plan *solve.Plan
	took, err := spend(func() (err error) {
		plan, err = solve.Solve(ctx, solve.Problem{Blocks: blocks})
		return err
	})
	if err != nil {
		return solvedResult{}, err
	}
	result := solvedResult{blocks: n, limit: limit, took: took, gap: plan.Gap()}
	// By itself: the solver leaves it out where the first plan is at the bound already.
	result.bestFit, _ = spend(func() error {
		best := solve.BestFit(context.Background(), blocks)
		result.bestGap = float64(solve.Peak(blocks, best))/float64(plan.LowerBound) - 1
		return nil
	})
	return result, nil
}

// measureLoad writes a dataset of allocator events and asks it.
func (m *memoryResult) measureLoad() error {
	dir, err := os.MkdirTemp("", "ebpfprof-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := writeEvents(filepath.Join(dir, "dataset"), m.events); err != nil {
		return err
	}
	var answer *analysis.Memory
	if m.load, err = spend(func() (err error) {
		answer, err = analysis.Load(context.Background(), filepath.Join(dir, "dataset"), 0)
		return err
	}); err != nil {
		return err
	}
	var page bytes.Buffer
	m.page, err = spend(func() error { return answer.WriteHTML(&page) })
	m.bytes = page.Len()
	return errors.Join(err, answer.Close())
}

func writeEvents(dir string, n int) error {
	dataset, err := output.Create(dir, output.Options{})
	if err != nil {
		return err
	}
	const started = 1_700_000_000_000_000_000
	if err := dataset.Session(event.Recording{ID: "bench", StartedNS: started}); err != nil {
		return err
	}
	const live = 200 // blocks, the oldest of which is freed
	rows := make([]event.Memory, 0, 8192)
	bytes := make([]int64, live)
	for k := range n {
		row := event.Memory{TSNS: started + int64(k)*1000, PID: 1, TID: 1, Space: "host", Level: "allocator", Weight: 1}
		at := k / 2 % live
		row.Address = int64(at+1) << 20
		if k%2 == 0 && k >= 2*live {
			old := bytes[at]
			row.Action, row.Bytes = "free", &old
		} else {
			bytes[at] = int64(1 + k%977*64)
			size := bytes[at]
			row.Action, row.Bytes, row.Address = "alloc", &size, int64(at+1)<<20
		}
		if k < 2*live && k%2 == 0 {
			continue
		}
		if rows = append(rows, row); len(rows) == cap(rows) {
			if err := dataset.Write(&event.Batch{Memory: rows}); err != nil {
				return err
			}
			rows = make([]event.Memory, 0, cap(rows))
		}
	}
	if err := dataset.Write(&event.Batch{Memory: rows}); err != nil {
		return err
	}
	return dataset.Close()
}

// measureReplay serves a step of some 800 requests.
func (m *memoryResult) measureReplay() error {
	dir, err := os.MkdirTemp("", "ebpfprof-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "bench")
	if out, err := exec.Command("cc", "-std=gnu11", "-O2", "-o", program, "testdata/replay/bench.c").CombinedOutput(); err != nil {
		setup.Say("no allocator of plans: %v: %s", err, out)
		return nil
	}
	var log strings.Builder
	id := 0
	for range 4 {
		log.WriteString("s\n")
		var live []int
		for k := range 400 {
			id++
			fmt.Fprintf(&log, "a %d %d\n", id, 64*(1+k%97))
			live = append(live, id)
			id++
			fmt.Fprintf(&log, "a %d 4096\nf %d\n", id, id)
		}
		for k := len(live) - 1; k >= 0; k-- {
			fmt.Fprintf(&log, "f %d\n", live[k])
		}
	}
	log.WriteString("s\n")
	l, err := replay.ReadLog(strings.NewReader(log.String()))
	if err != nil {
		return err
	}
	plan, err := l.Plan(context.Background(), 10*time.Second)
	if err != nil {
		return err
	}
	var planned, sequence strings.Builder
	if err := plan.Write(&planned); err != nil {
		return err
	}
	if err := plan.WriteSequence(l, &sequence); err != nil {
		return err
	}
	for name, text := range map[string]string{"plan": planned.String(), "sequence": sequence.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	out, err := exec.Command(program, filepath.Join(dir, "plan"), filepath.Join(dir, "sequence")).Output()
	if err != nil {
		return fmt.Errorf("the allocator of plans: %w", err)
	}
	m.replay = strings.TrimSpace(string(out))
	if _, err = fmt.Sscanf(m.replay, "replay %f glibc %f", &m.ns[0], &m.ns[1]); err != nil {
		return err
	}
	m.measurePool(l)
	return nil
}

// measurePool serves the same steps, some hundred times over, from the model of the
// pool.
func (m *memoryResult) measurePool(l *replay.Log) {
	once := hot.PoolRequests(l.Lives, func(int) bool { return true })
	var all []pool.Request
	for round := range 200 {
		for _, r := range once {
			r.Block += round * len(l.Lives.Blocks)
			all = append(all, r)
		}
	}
	took, _ := spend(func() error {
		pool.Simulate(all, pool.Options{})
		return nil
	})
	m.pool = float64(took.cpu.Nanoseconds()) / float64(200*len(l.Lives.Blocks))
}

func (r *results) memoryTargets(p *figure.Page) {
	m := r.memory
	if m == nil {
		return
	}
	p.Row(fmt.Sprintf("`memory` of %d events: ≤ 5 s for 10 million", m.events), "–", m.load.String(),
		figure.Verdict(m.load.wall.Seconds() <= 5*float64(m.events)/1e7))
	p.Row(fmt.Sprintf("its page, of %d events: ≤ 2 s for a million", m.events), "–", fmt.Sprintf("%s, %d KB, no script", m.page, m.bytes/1000),
		figure.Verdict(m.page.wall.Seconds() <= 2))
	for _, s := range m.solved {
		p.Row(fmt.Sprintf("a plan of %d blocks in %s within 1 %% of the lower bound", s.blocks, s.limit), "–",
			fmt.Sprintf("%.3f %% in %s; best fit alone %.3f %% in %s", 100*s.gap, s.took, 100*s.bestGap, s.bestFit),
			figure.Verdict(s.gap <= 0.01 && s.took.wall <= s.limit))
	}
	if m.replay != "" {
		p.Row("an allocation from a plan: ≤ 30 ns", "–", fmt.Sprintf("%.1f ns; glibc %.1f ns, the pool's model %.1f ns", m.ns[0], m.ns[1],
			m.pool), figure.Verdict(m.ns[0] <= 30))
	}
}

func (r *results) memoryPlanner(p *figure.Page) {
	if r.memory != nil {
		p.Line("## The memory planner\n\n%s\n", memoryText)
	}
}
