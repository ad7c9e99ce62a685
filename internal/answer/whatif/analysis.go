package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Cause is what kind of thing makes the job slow.
type Cause string

// The causes, in the order in which they are tried.
const (
	// SlowWorker: the slowest 3 % of the workers explain at least half of it.
	SlowWorker Cause = "slow_worker"
	// SequenceImbalance: forward and backward times of micro-batches vary
	// together, as they do when sequences are of different length.
	SequenceImbalance Cause = "sequence_imbalance"
	// SlowStage: the last stage explains at least half of it.
	SlowStage Cause = "slow_stage"
	// Unknown: none of these.
	Unknown Cause = "unknown"
)

const (
	explains        = 0.5  // the share of the slowdown from which on something is its cause
	correlated      = 0.9  // median correlation of forward and backward times
	leastSlowdown   = 1.03 // below it nothing is asked of workers
	slowestShare    = 0.03 // of the workers
	leastCorrelated = 3    // micro-batches that a correlation needs: of two any two are perfect
)

// Analysis is what the replays say. Slowdowns are ratios to the ideal job, in
// which all operations of a type take the same time.
type Analysis struct {
	S  float64  `json:"S"`   // of the job
	MW *float64 `json:"M_W"` // share of the slowdown that the slowest workers explain; null if S < 1.03
	MS *float64 `json:"M_S"` // share that the last stage explains; null without a pipeline
	// Cause follows from S, M_W, M_S and Correlation.
	Cause Cause `json:"cause"`
	// Correlation is the median over workers and steps of the correlation of
	// forward and backward durations of micro-batches; null where it is undefined.
	Correlation *float64 `json:"forward_backward_correlation"`

	Workers []WorkerSlowdown `json:"workers"`  // the slowest first, as all lists but steps
	DPRanks []DPSlowdown     `json:"dp_ranks"` // if only this one were as measured
	Stages  []StageSlowdown  `json:"stages"`
	OpTypes []TypeSlowdown   `json:"optypes"`
	Steps   []Step           `json:"steps"`

	// MeasuredS, ReplayedS and IdealS are mean seconds of a step: as recorded, as
	// replayed without launch delays, with everything ideal.
	MeasuredS float64 `json:"measured_s"`
	ReplayedS float64 `json:"replayed_s"`
	IdealS    float64 `json:"ideal_s"`
	// Replaced is how many of the slowest workers M_W made ideal.
	Replaced int      `json:"replaced_workers"`
	Warnings []string `json:"warnings"`
}

// WorkerSlowdown is a worker's: the lesser of its dp_rank's and its stage's.
type WorkerSlowdown struct {
	Rank   int     `json:"rank"` // of the file: the first rank of the worker's tensor group
	DPRank int     `json:"dp_rank"`
	Stage  int     `json:"stage"`
	S      float64 `json:"S_w"`
}

// DPSlowdown is a dp_rank's.
type DPSlowdown struct {
	DPRank  int       `json:"dp_rank"`
	S       float64   `json:"S"`
	PerStep []float64 `json:"-"`
}

// StageSlowdown is a stage's.
type StageSlowdown struct {
	Stage   int       `json:"stage"`
	S       float64   `json:"S"`
	PerStep []float64 `json:"-"`
}

// TypeSlowdown is that of a type of operation; sends and receives of one
// direction are one type, forward-pp-comm and backward-pp-comm.
type TypeSlowdown struct {
	OpType  string    `json:"optype"`
	S       float64   `json:"S"`
	PerStep []float64 `json:"-"`
}

// Step is one step's times in seconds.
type Step struct {
	Step      int64   `json:"step"`
	S         float64 `json:"S"`
	MeasuredS float64 `json:"measured_s"`
	ReplayedS float64 `json:"replayed_s"`
	IdealS    float64 `json:"ideal_s"`
}

// Analyse replays the job. The errors are ErrBadMeta where the description is
// not the trace's, and ErrBadTrace where the trace cannot be replayed.
func Analyse(t *Trace, m Meta) (*Analysis, error) {
	if err := m.fits(t); err != nil {
		return nil, err
	}
	j, err := newJob(t)
	if err != nil {
		return nil, err
	}
	original := j.replay(func(Op) bool { return false })
	ideal := j.replay(func(Op) bool { return true })
	if slices.Min(ideal) <= 0 {
		return nil, noTime()
	}
	a := &Analysis{
		S: original.mean() / ideal.mean(), MeasuredS: j.measured().mean(), ReplayedS: original.mean(),
		IdealS: ideal.mean(), Steps: j.eachStep(original, ideal), Warnings: append([]string{}, t.Warnings...),
	}
	if j.absent > 0 {
		a.warn("%d dependencies of the first step are absent elsewhere: what needs them begins earlier in the replay",
			j.absent)
	}
	if err := a.decompose(j, ideal); err != nil {
		return nil, err
	}
	a.explain(j, m, original.mean(), ideal.mean())
	a.Correlation = j.correlation()
	a.Cause = a.cause()
	return a, nil
}

func (j *job) eachStep(original, ideal stepTimes) (steps []Step) {
	measured := j.measured()
	for n, number := range j.steps {
		steps = append(steps, Step{number, original[n] / ideal[n], measured[n], original[n], ideal[n]})
	}
	return steps
}

// decompose asks of each dp_rank, stage and type what the job would lose by it
// alone.
func (a *Analysis) decompose(j *job, ideal stepTimes) error {
	only := func(j *job, as func(Op) bool) (float64, []float64) {
		times := j.replay(func(o Op) bool { return !as(o) })
		perStep := make([]float64, len(times))
		for n := range times {
			perStep[n] = times[n] / ideal[n]
		}
		return times.mean() / ideal.mean(), perStep
	}
	byDP, byStage := map[int]float64{}, map[int]float64{}
	ranks := map[[2]int]int{}
	types := map[string]bool{}
	for _, o := range j.ops {
		byDP[o.DPRank], byStage[o.Stage] = 0, 0
		ranks[[2]int{o.DPRank, o.Stage}] = o.Rank
		types[o.Type.reported()] = true
	}
	same := newAlike(j)
	for dp := range byDP {
		part, err := j.around(dp, same)
		if err != nil {
			return err
		}
		s, perStep := only(part, func(o Op) bool { return o.DPRank == dp })
		byDP[dp] = s
		a.DPRanks = append(a.DPRanks, DPSlowdown{dp, s, perStep})
	}
	for stage := range byStage {
		s, perStep := only(j, func(o Op) bool { return o.Stage == stage })
		byStage[stage] = s
		a.Stages = append(a.Stages, StageSlowdown{stage, s, perStep})
	}
	for name := range types {
		s, perStep := only(j, func(o Op) bool { return o.Type.reported() == name })
		a.OpTypes = append(a.OpTypes, TypeSlowdown{name, s, perStep})
	}
	for w, rank := range ranks {
		a.Workers = append(a.Workers, WorkerSlowdown{rank, w[0], w[1], min(byDP[w[0]], byStage[w[1]])})
	}
	a.sort()
	return nil
}

// sort has the slowest first; among equals the lower dp_rank, then the lower stage.
func (a *Analysis) sort() {
	slices.SortFunc(a.Workers, func(x, y WorkerSlowdown) int {
		return cmp.Or(cmp.Compare(y.S, x.S), cmp.Compare(x.DPRank, y.DPRank), cmp.Compare(x.Stage, y.Stage))
	})
	slices.SortFunc(a.DPRanks, func(x, y DPSlowdown) int {
		return cmp.Or(cmp.Compare(y.S, x.S), cmp.Compare(x.DPRank, y.DPRank))
	})
	slices.SortFunc(a.Stages, func(x, y StageSlowdown) int {
		return cmp.Or(cmp.Compare(y.S, x.S), cmp.Compare(x.Stage, y.Stage))
	})
	slices.SortFunc(a.OpTypes, func(x, y TypeSlowdown) int {
		return cmp.Or(cmp.Compare(y.S, x.S), cmp.Compare(x.OpType, y.OpType))
	})
}

// explain asks how much of the slowdown goes with the slowest workers, and how
// much with the last stage.
func (a *Analysis) explain(j *job, m Meta, original, ideal float64) {
	share := func(isIdeal func(Op) bool) *float64 {
		if original == ideal {
			return nil
		}
		s := (original - j.replay(isIdeal).mean()) / (original - ideal)
		return &s
	}
	a.Replaced = int(math.Ceil(slowestShare * float64(m.Workers())))
	if a.S >= leastSlowdown {
		slowest := map[[2]int]bool{}
		for _, w := range a.Workers[:min(a.Replaced, len(a.Workers))] {
			slowest[[2]int{w.DPRank, w.Stage}] = true
		}
		a.MW = share(func(o Op) bool { return slowest[[2]int{o.DPRank, o.Stage}] })
	}
	if m.PPSize > 1 {
		a.MS = share(func(o Op) bool { return o.Stage == m.PPSize-1 })
	}
}

func (a *Analysis) cause() Cause {
	switch {
	case a.MW != nil && *a.MW >= explains:
		return SlowWorker
	case a.Correlation != nil && *a.Correlation >= correlated:
		return SequenceImbalance
	case a.MS != nil && *a.MS >= explains:
		return SlowStage
	}
	return Unknown
}

// correlation joins the forward and backward computes of a micro-batch; those of
// several model chunks are added.
func (j *job) correlation() *float64 {
	type worker struct {
		step      int64
		dp, stage int
	}
	type pair struct{ forward, backward float64 }
	batches := map[worker]map[int]*pair{}
	for _, o := range j.ops {
		if !o.Type.compute() || o.MicroBatch < 0 {
			continue
		}
		w := worker{o.Step, o.DPRank, o.Stage}
		if batches[w] == nil {
			batches[w] = map[int]*pair{}
		}
		if batches[w][o.MicroBatch] == nil {
			batches[w][o.MicroBatch] = new(pair)
		}
		if p := batches[w][o.MicroBatch]; o.Type == ForwardCompute {
			p.forward += o.Duration
		} else {
			p.backward += o.Duration
		}
	}
	var all []float64
	for _, b := range batches {
		var forward, backward []float64
		// In one order always: sums of floats depend on it.
		for _, batch := range slices.Sorted(maps.Keys(b)) {
			p := b[batch]
			if p.forward > 0 && p.backward > 0 {
				forward, backward = append(forward, p.forward), append(backward, p.backward)
			}
		}
		if len(forward) < leastCorrelated {
			continue
		}
		if r := pearson(forward, backward); !math.IsNaN(r) {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return nil
	}
	r := median(all)
	return &r
}

func (a *Analysis) warn(format string, values ...any) {
	a.Warnings = append(a.Warnings, fmt.Sprintf(format, values...))
}
