package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// phases divides the training thread's time, inside steps where there are any.
func (b *builder) phases() error {
	lane, ok, err := b.trainingThread()
	if err != nil || !ok {
		return err
	}
	windows := []timeline.Stretch{{Begin: b.firstNS, Until: b.lastNS}}
	b.report.PhasesOf = "the whole recording"
	chosen, which := b.looked()
	if len(chosen) > 0 {
		b.report.PhasesOf = which
		windows = windows[:0]
		for _, s := range chosen {
			windows = append(windows, timeline.Stretch{Begin: s.beginNS, Until: s.untilNS})
		}
	}
	took, err := timeline.Phases(b.ctx, b.db, b.part, lane.pid, lane.tid, windows, !strings.HasPrefix(b.report.worker, "training"))
	if err != nil {
		return err
	}
	b.phasesOfInference(took, chosen)
	total := 0.0
	for _, w := range windows {
		total += float64(w.Until - w.Begin)
	}
	// Of all steps some were recorded whole: what holds for them is an estimate of the rest.
	estimated := len(chosen) > 1 && len(chosen) < len(b.stepRows)
	factor, off := b.lengthened(chosen)
	if factor != 1 {
		b.report.PhasesOf += fmt.Sprintf(", which took %s with the probes of detail in them; ms are estimated: their shares of the %s that the "+
			"%d steps between slices take",
			msText(total/float64(len(windows))/1e6), msText(b.stretched.BetweenMS), b.stretched.Between)
	}
	for phase, each := range byPhase(took) {
		mean := steps.Mean(each)
		p := Phase{Phase: phase, MSPerStep: factor * mean / 1e6, Percent: 100 * mean * float64(len(each)) / max(total, 1), Estimated: estimated ||
			factor != 1}
		if p.Estimated {
			_, hi := steps.Interval(each)
			half := factor * math.Hypot(hi-mean, off*mean)
			lo, hi := max(factor*mean-half, 0)/1e6, (factor*mean+half)/1e6
			p.LoMS, p.HiMS = &lo, &hi
		}
		b.report.Phases = append(b.report.Phases, p)
	}
	slices.SortFunc(b.report.Phases, func(a, c Phase) int {
		return cmp.Or(cmp.Compare(c.MSPerStep, a.MSPerStep), strings.Compare(a.Phase, c.Phase))
	})
	return nil
}

// lengthened is what times of the steps are multiplied with to be of steps without the
// probes of detail, and how far off that may be, as a share: 1 where the steps are not
// those of slices, or nothing tells it.
func (b *builder) lengthened(chosen []stepRow) (factor, off float64) {
	if b.stretched == nil || len(chosen) == 0 || !slices.ContainsFunc(chosen, func(s stepRow) bool { return s.sliced }) {
		return 1, 0
	}
	sum := 0.0
	for _, s := range chosen {
		sum += float64(s.untilNS - s.beginNS)
	}
	return b.stretched.BetweenMS / (sum / float64(len(chosen)) / 1e6), (b.stretched.HighMS - b.stretched.BetweenMS) / b.stretched.BetweenMS
}

// byPhase turns maps by stretch into lists by phase, with zero where a stretch has none.
func byPhase(took []map[string]int64) map[string][]float64 {
	all := map[string][]float64{}
	for i, m := range took {
		for phase, ns := range m {
			if all[phase] == nil {
				all[phase] = make([]float64, len(took))
			}
			all[phase][i] = float64(ns)
		}
	}
	return all
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
