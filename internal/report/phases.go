package report

import (
	"cmp"
	"slices"
	"strings"
)

// The phases of a step.
const (
	phaseLoading       = "loading"
	phaseForward       = "forward"
	phaseBackward      = "backward"
	phaseOptimizer     = "optimizer"
	phaseCommunication = "communication"
	phaseIO            = "io"
	phaseWaiting       = "waiting for the device"
	phaseOther         = "other"
)

// phaseOf says which phase a span belongs to, "" where that of the span around
// it holds: by scope, autograd node, operator, in that order.
func phaseOf(layer, category, name string) string {
	switch layer {
	case "scope":
		switch {
		case strings.HasPrefix(name, "enumerate(DataLoader)"), strings.Contains(name, "DataLoader") && strings.Contains(name, "__next__"):
			return phaseLoading
		case strings.HasPrefix(name, "Optimizer."):
			return phaseOptimizer
		}
	case "autograd":
		return phaseBackward
	case "collective":
		return phaseCommunication
	case "op":
		return phaseForward
	case "io":
		return phaseIO
	case "runtime":
		if category == "sync" {
			return phaseWaiting
		}
	}
	return ""
}

type openSpan struct {
	end   int64
	phase string
}

// phases gives each instant of the training thread, inside steps where there are
// any, to the phase of the innermost span that has one; in a backward pass
// operators belong to it. One pass in order of time.
func (b *builder) phases() error {
	lane, ok, err := b.trainingThread()
	if err != nil || !ok {
		return err
	}
	windows := []stepRow{{beginNS: b.firstNS, untilNS: b.lastNS}}
	b.report.PhasesOf = "the whole recording"
	if chosen, which := b.looked(); len(chosen) > 0 {
		windows, b.report.PhasesOf = chosen, which
	}
	steps, total := float64(len(windows)), 0.0
	for _, w := range windows {
		total += float64(w.untilNS - w.beginNS)
	}
	begin, end := windows[0].beginNS, windows[len(windows)-1].untilNS
	sweep := phaseSweep{at: begin, windows: windows, took: map[string]int64{}}
	rows, err := b.db.Query(b.ctx, `
		SELECT layer, coalesce(category, ''), name, ts_ns, duration_ns FROM rows
		WHERE pid = ? AND tid = ? AND duration_ns IS NOT NULL
			AND (layer IN ('autograd', 'collective', 'op', 'io') OR layer = 'scope' AND (name LIKE '%DataLoader%' OR name LIKE 'Optimizer.%') OR layer = 'runtime' AND category = 'sync')
			AND ts_ns < ? AND ts_ns + duration_ns > ?
		ORDER BY ts_ns, duration_ns DESC`, lane.pid, lane.tid, end, begin)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var layer, category, name string
		var ts, duration int64
		if err := rows.Scan(&layer, &category, &name, &ts, &duration); err != nil {
			return err
		}
		sweep.open(ts, ts+duration, phaseOf(layer, category, name))
	}
	if err := rows.Err(); err != nil {
		return err
	}
	sweep.advance(end)
	for phase, ns := range sweep.took {
		b.report.Phases = append(b.report.Phases, Phase{Phase: phase, MSPerStep: ms(ns) / steps, Percent: 100 * float64(ns) / max(total, 1)})
	}
	slices.SortFunc(b.report.Phases, func(a, c Phase) int {
		return cmp.Or(cmp.Compare(c.MSPerStep, a.MSPerStep), strings.Compare(a.Phase, c.Phase))
	})
	return nil
}

type phaseSweep struct {
	at      int64
	windows []stepRow // in order; what lies between them does not count
	stack   []openSpan
	took    map[string]int64
}

// open begins a span after closing those that ended before it.
func (s *phaseSweep) open(ts, end int64, phase string) {
	s.advance(ts)
	if n := len(s.stack); n > 0 {
		top := s.stack[n-1]
		end = min(end, top.end)
		// What a backward pass or an optimizer calls is theirs; only waiting and
		// communication stand out of whatever they are in.
		inherits := top.phase == phaseBackward || top.phase == phaseOptimizer || top.phase == phaseLoading || top.phase == phaseCommunication
		if phase == "" || inherits && phase == phaseForward || top.phase == phaseCommunication {
			phase = top.phase
		}
	}
	if phase == "" {
		phase = phaseOther
	}
	s.stack = append(s.stack, openSpan{end, phase})
}

// advance gives the time up to t to what is open.
func (s *phaseSweep) advance(t int64) {
	for len(s.stack) > 0 && s.stack[len(s.stack)-1].end <= t {
		top := s.stack[len(s.stack)-1]
		s.give(top.end, top.phase)
		s.stack = s.stack[:len(s.stack)-1]
	}
	phase := phaseOther
	if n := len(s.stack); n > 0 {
		phase = s.stack[n-1].phase
	}
	s.give(t, phase)
}

func (s *phaseSweep) give(until int64, phase string) {
	for until > s.at && len(s.windows) > 0 {
		w := s.windows[0]
		from, to := max(s.at, w.beginNS), min(until, w.untilNS)
		if to > from {
			s.took[phase] += to - from
		}
		if until < w.untilNS {
			break
		}
		s.at, s.windows = w.untilNS, s.windows[1:]
	}
	s.at = max(s.at, until)
}

type lane struct{ pid, tid int }

// trainingThread is the one that the steps are on, else the one with the most
// operators.
func (b *builder) trainingThread() (l lane, ok bool, err error) {
	if chosen, _ := b.looked(); len(chosen) > 0 {
		s := chosen[0]
		return lane{s.pid, s.tid}, true, nil
	}
	err = b.each(`SELECT pid, tid FROM rows WHERE layer IN ('op', 'autograd', 'runtime') GROUP BY ALL
		ORDER BY count(*) FILTER (layer = 'op') DESC, count(*) DESC LIMIT 1`, func(scan scan) error {
		ok = true
		return scan(&l.pid, &l.tid)
	})
	return l, ok, err
}
