package analysis

import (
	"context"
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/draw"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/hot"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/pool"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
)

// Plan is the answer of `ebpfprof memory plan`: for one arena, the one with the
// largest peak.
type Plan struct {
	Dataset string `json:"dataset"`
	PID     int32  `json:"pid"`
	Space   string `json:"space"`
	Device  *int32 `json:"device_id"`
	// Scope is what is planned: "step" (the hot part of a step) or "recording",
	// where nothing recurs and the plan is of all blocks, once.
	Scope     string `json:"scope"`
	Alignment int64  `json:"alignment_bytes"`

	Steps          int     `json:"steps"`
	StepsFrom      string  `json:"steps_from"`
	WholeAlike     int     `json:"steps_with_the_whole_hot_part"`
	Warmup         int     `json:"warmup_steps"` // at the beginning, left out of the comparison with the pool
	HotRequests    int     `json:"hot_requests"`
	RecurringShare float64 `json:"recurring_share"` // of the bytes requested in whole steps

	LiveToday      int64        `json:"live_peak_bytes"`
	NoReuse        int64        `json:"no_reuse_bytes"` // of the planned blocks
	LowerBound     int64        `json:"lower_bound_bytes"`
	Peak           int64        `json:"plan_bytes"`
	Gap            float64      `json:"gap"`
	Solver         string       `json:"solver"`
	Solvers        []SolverPeak `json:"solvers"`
	Rest           int64        `json:"rest_pool_bytes"` // the pool for what is not planned
	WithPlan       int64        `json:"with_plan_bytes"` // plan and rest
	PoolSimulated  int64        `json:"pool_simulated_bytes"`
	PoolExpandable int64        `json:"pool_expandable_simulated_bytes"`
	PoolRecorded   *int64       `json:"pool_recorded_bytes"`
	SavingBytes    int64        `json:"saving_bytes"` // pool, as recorded if that is known, less with_plan
	SavingPercent  float64      `json:"saving_percent"`
	SavingAgainst  string       `json:"saving_against"`       // pool_recorded or pool_simulated
	LeastCapacity  int64        `json:"least_capacity_bytes"` // found: plan and rest
	// HotPool is what the pool holds for the hot part alone, and the plan's saving
	// there: what the paper's figures are of.
	HotPool        int64   `json:"hot_pool_simulated_bytes"`
	HotSavePercent float64 `json:"hot_saving_percent"`

	Replanned *hot.Replanned `json:"replanned"`
	Partial   bool           `json:"partial"`
	Notes     []string       `json:"notes"`
	Requests  []Placed       `json:"requests"`

	seconds  float64
	blocks   []solve.Block
	arena    *Arena
	template *hot.Template
}

// SolverPeak is what one solver reached.
type SolverPeak struct {
	Solver  string  `json:"solver"`
	Peak    int64   `json:"peak_bytes"` // 0 if it did not finish
	Seconds float64 `json:"seconds"`
	Outcome string  `json:"outcome"`
}

// Placed is a request with its place in the plan.
type Placed struct {
	Ordinal    int    `json:"ordinal"`
	StackID    int64  `json:"stack_id"`
	Occurrence int    `json:"occurrence"`
	Bytes      int64  `json:"bytes"`
	Lower      int64  `json:"lower"`
	Upper      int64  `json:"upper"`
	Offset     int64  `json:"offset"`
	WholeStep  bool   `json:"whole_step"`
	Line       string `json:"line"`
}

// PlanOptions of MakePlan.
type PlanOptions struct {
	Time     time.Duration // for the solvers
	Progress func(solve.Attempt)
}

// MakePlan plans the hot part of an arena's steps. If ctx ends it is the best plan
// so far.
func (m *Memory) MakePlan(ctx context.Context, a *Arena, o PlanOptions) (*Plan, error) {
	p := &Plan{Dataset: m.Dataset, PID: a.PID, Space: a.Space, Device: a.Device, Alignment: a.Alignment(), Steps: a.Steps,
		StepsFrom: a.StepsFrom, LiveToday: a.PeakBytes, PoolRecorded: a.Fragmentation.RecordedReserved, Partial: a.Partial,
		Notes: []string{}, arena: a, template: hot.NewTemplate(a.lives, a.steps)}
	if err := p.note(ctx, m.origin); err != nil {
		return nil, err
	}
	p.choose()
	if err := p.solve(ctx, o); err != nil {
		return nil, err
	}
	p.compare()
	if p.template != nil {
		r, err := hot.Replan(context.WithoutCancel(ctx), a.lives, a.steps, p.Alignment)
		if err != nil {
			return nil, err
		}
		p.Replanned = &r
	}
	if a.SlicedEvents > 0 {
		p.Notes = append(p.Notes, "only slices of the run were recorded: the plan is of what was seen; record with --budget off")
	}
	return p, nil
}

// note reads where the blocks that are planned come from.
func (p *Plan) note(ctx context.Context, d origin) error {
	var positions []int
	if p.template != nil {
		for _, r := range p.template.Requests {
			positions = append(positions, r.Example)
		}
	} else {
		for i := range p.arena.lives.Blocks {
			positions = append(positions, i)
		}
	}
	return p.arena.note(ctx, d, positions)
}

// choose takes the hot part, or everything.
func (p *Plan) choose() {
	l := p.arena.lives
	if p.template != nil {
		p.Scope, p.WholeAlike, p.HotRequests = "step", p.template.Steps, len(p.template.Requests)
		p.RecurringShare = p.template.Share()
		p.blocks = p.template.Blocks()
		for i, r := range p.template.Requests {
			p.Requests = append(p.Requests, Placed{Ordinal: i, StackID: r.Path, Occurrence: r.Occurrence, Bytes: r.Bytes,
				Lower: r.Lower, Upper: r.Upper, WholeStep: r.Whole, Line: p.arena.context.Line(&l.Blocks[r.Example])})
		}
		return
	}
	p.Scope = "recording"
	p.Notes = append(p.Notes, "no three consecutive steps are alike: the plan is of the whole recording, as if it would run again")
	for i := range l.Blocks {
		b := &l.Blocks[i]
		p.blocks = append(p.blocks, solve.Block{Lower: b.Born, Upper: min(b.Died, l.Ticks+1), Size: b.Bytes})
		p.Requests = append(p.Requests, Placed{Ordinal: i, StackID: b.Path, Bytes: b.Bytes, Lower: b.Born,
			Upper: min(b.Died, l.Ticks+1), Line: p.arena.context.Line(b)})
	}
}

func (p *Plan) solve(ctx context.Context, o PlanOptions) error {
	p.NoReuse = solve.Total(p.blocks)
	aligned, err := solve.Align(p.blocks, p.Alignment)
	if err != nil {
		return err
	}
	p.blocks = aligned
	timed, cancel := context.WithTimeout(ctx, o.Time)
	defer cancel()
	begun := time.Now()
	plan, err := solve.Solve(timed, solve.Problem{Blocks: aligned, Progress: o.Progress})
	if err != nil {
		return err
	}
	p.seconds = time.Since(begun).Seconds()
	p.LowerBound, p.Peak, p.Gap, p.Solver = plan.LowerBound, plan.Peak, plan.Gap(), plan.Solver
	for _, a := range plan.Attempts {
		p.Solvers = append(p.Solvers, SolverPeak{a.Solver, a.Peak, a.Took.Seconds(), a.Outcome})
	}
	for i := range p.Requests {
		p.Requests[i].Offset = plan.Offsets[i]
	}
	return nil
}

// compare holds the plan against the pool, over the whole steps but those of the
// warm-up: what was there when the first began, and what came until the last ended.
func (p *Plan) compare() {
	l := p.arena.lives
	inSteps, planned := everything, everything
	if p.template != nil {
		if p.Warmup = p.template.Warmup(p.Steps); p.Warmup > 0 {
			p.Notes = append(p.Notes, fmt.Sprintf("the first %d of %d steps are left out of the comparison with the pool: "+
				"they are not like those that follow, and the last of them is what a plan would be learned from", p.Warmup, p.Steps))
		}
		cuts := p.arena.steps.Cuts[p.Warmup:]
		first, last := cuts[0], cuts[len(cuts)-1]
		inSteps = func(i int) bool { return l.Blocks[i].Born <= last && l.Blocks[i].Died > first }
		planned = func(i int) bool { return p.template.Hot[i] }
		rest := func(i int) bool { return inSteps(i) && !planned(i) }
		p.Rest = pool.Simulate(hot.PoolRequests(l, rest), pool.Options{}).Reserved
	}
	p.HotPool = pool.Simulate(hot.PoolRequests(l, planned), pool.Options{}).Reserved
	p.PoolSimulated = pool.Simulate(hot.PoolRequests(l, inSteps), pool.Options{}).Reserved
	p.PoolExpandable = pool.Simulate(hot.PoolRequests(l, inSteps), pool.Options{Expandable: true}).Reserved
	p.WithPlan = p.Peak + p.Rest
	p.LeastCapacity = p.WithPlan
	today := p.PoolSimulated
	p.SavingAgainst = "pool_simulated"
	if p.PoolRecorded != nil {
		today, p.SavingAgainst = *p.PoolRecorded, "pool_recorded"
	}
	p.SavingBytes = today - p.WithPlan
	p.SavingPercent = percent(p.SavingBytes, today)
	p.HotSavePercent = percent(p.HotPool-p.Peak, p.HotPool)
}

func percent(part, whole int64) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// Seconds that the solvers took.
func (p *Plan) Seconds() float64 { return p.seconds }

// Picture is the plan as rectangles.
func (p *Plan) Picture() draw.Plan {
	d := draw.Plan{Title: fmt.Sprintf("plan of a %s, pid %d: %s by %s", p.Scope, p.PID, amount.Bytes(p.Peak), p.Solver), Peak: p.Peak,
		Bound: p.LowerBound}
	for _, r := range p.Requests {
		d.Rectangles = append(d.Rectangles, draw.Rectangle{Lower: r.Lower, Upper: r.Upper, Offset: r.Offset, Size: r.Bytes, Label: r.Line})
	}
	return d
}
