package explain

import (
	"cmp"
	"slices"
)

// Shares divide the wall time of the thread that sets the pace: they sum to 100 %.
type Shares struct {
	PID     int32   `json:"pid"`
	TID     int32   `json:"tid"`
	WallMS  float64 `json:"wall_ms"`
	CPUMS   float64 `json:"cpu_ms"`
	WaitMS  float64 `json:"wait_ms"`
	ShortMS float64 `json:"short_waits_ms"` // below the threshold, or preempted without a record
	// OperatorsMS is the time of all threads in operators, backward passes and collectives: what estimates of these from
	// slices cannot exceed.
	OperatorsMS float64      `json:"operators_ms"`
	Phases      []PhaseShare `json:"phases"`
	HotLines    []LineShare  `json:"hot_lines"`

	// Sampled is the time of all threads by the innermost operator, ns: of backward passes and collectives outside of
	// operators by "autograd" and "collective", and on a CPU in none of them by "".
	Sampled  map[string]float64 `json:"-"`
	PeriodNS float64            `json:"-"` // of a sample on a CPU
}

// sampled adds up a row for Sampled.
func (s *Shares) sampled(row *Row) {
	switch {
	case row.Stack.op != "":
		s.Sampled[row.Stack.op] += row.NS
	case row.Stack.Has(signCollective):
		s.Sampled["collective"] += row.NS
	case row.Stack.Has(signBackward):
		s.Sampled["autograd"] += row.NS
	case row.OnCPU:
		s.Sampled[""] += row.NS
	}
}

// PhaseShare is a phase's part of the wall time.
type PhaseShare struct {
	Phase   string  `json:"phase"`
	MS      float64 `json:"ms"`
	Percent float64 `json:"percent"`
}

// LineShare is the part of a line of the user's code, in and below it; of each sample the innermost line counts.
type LineShare struct {
	Place    string  `json:"place"`
	Function string  `json:"function"`
	MS       float64 `json:"ms"`
	Percent  float64 `json:"percent"`
}

// The phases that samples show.
const (
	phaseLoading       = "loading"
	phaseForward       = "forward"
	phaseBackward      = "backward"
	phaseOptimizer     = "optimizer"
	phaseCommunication = "communication"
	phaseIO            = "io"
	phaseCompilation   = "compilation"
	phaseDevice        = "waiting for the device"
	phaseOther         = "other"
	phaseNoCPU         = "no CPU"
	phaseShort         = "short waits"
)

// phase is that of the innermost frame that has one.
func (s *Stack) phase(syscall string) string {
	if s.compiles() {
		return phaseCompilation
	}
	op := false
	for _, f := range s.Frames {
		switch {
		case f.Signs&signDeviceSync != 0:
			return phaseDevice
		case f.Signs&signCollective != 0:
			return phaseCommunication
		case f.Signs&signSave != 0:
			return phaseIO
		case f.Signs&(signLoaderNext|signLoaderStart) != 0:
			return phaseLoading
		case f.Signs&signOptimizer != 0:
			return phaseOptimizer
		case f.Signs&signBackward != 0:
			return phaseBackward
		case f.Signs&signModule != 0:
			return phaseForward
		case f.User:
			// A line of the user's own inside of a training framework's closure is not its optimizer's.
			if op {
				return phaseForward
			}
			if isFileCall(syscall) {
				return phaseIO
			}
			return phaseOther
		}
		op = op || f.Kind == "op"
	}
	if op {
		return phaseForward
	}
	return phaseOther
}

func (r *Recording) shares() *Shares {
	s := &Shares{PID: r.Pace.PID, TID: r.Pace.TID, WallMS: r.Wall() / 1e6, ShortMS: r.Short / 1e6}
	s.Sampled = map[string]float64{}
	samples := int64(0)
	for _, rows := range [][]Row{r.Rows, r.Others} {
		for i := range rows {
			s.sampled(&rows[i])
			if rows[i].OnCPU {
				s.PeriodNS, samples = s.PeriodNS+rows[i].NS, samples+rows[i].Samples
			}
			if rows[i].Stack.op != "" || rows[i].Stack.Has(signBackward|signCollective) {
				s.OperatorsMS += rows[i].NS / 1e6
			}
		}
	}
	s.PeriodNS /= float64(max(samples, 1))
	phases := map[string]float64{phaseShort: r.Short}
	known := map[*Stack]string{}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.OnCPU {
			s.CPUMS += row.NS / 1e6
		} else {
			s.WaitMS += row.NS / 1e6
		}
		phase := known[row.Stack]
		if phase == "" || isFileCall(row.Syscall) {
			phase = row.Stack.phase(row.Syscall)
			known[row.Stack] = phase
		}
		if row.Cause == causePreempted && len(row.Stack.Frames) == 0 {
			phase = phaseNoCPU
		}
		phases[phase] += row.NS
	}
	for name, ns := range phases {
		if ns > 0 {
			s.Phases = append(s.Phases, PhaseShare{name, ns / 1e6, 100 * ns / r.Wall()})
		}
	}
	slices.SortFunc(s.Phases, func(a, b PhaseShare) int { return cmp.Or(cmp.Compare(b.MS, a.MS), cmp.Compare(a.Phase, b.Phase)) })
	for _, l := range heaviest(r.Rows, nil, innermost, byPlace) {
		s.HotLines = append(s.HotLines, LineShare{l.of.place(), l.of.Function, l.ns / 1e6, 100 * l.ns / r.Wall()})
	}
	return s
}
