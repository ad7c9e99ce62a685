package numbers

import (
	"database/sql"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// communication is what collectives take, and what of it the training thread spends in them.
func (m *measuring) communication() error {
	if m.noSteps != "" {
		m.add(missing(Communication, m.noSteps))
		m.add(missing(Exposed, m.noSteps))
		return nil
	}
	var works, calls sql.NullFloat64
	var seen int64
	// Threads of the library run the work (gloo); where none do, the calls are the work.
	err := m.db.Row(m.ctx, `SELECT sum(weight * duration_ns) FILTER (category = 'work'),
		sum(weight * duration_ns) FILTER (category IN ('collective', 'issue')), count(*)
		FROM span WHERE layer = 'collective' AND pid = ? AND ts_ns BETWEEN ? AND ? AND category <> 'communicator'`,
		[]any{m.loop.PID, m.from, m.until}, &works, &calls, &seen)
	if err != nil {
		return err
	}
	if seen == 0 {
		for _, name := range []string{Communication, Exposed} {
			n := measured(name, 0, len(m.settled), "steps")
			n.Why = "no collective was called"
			m.add(n)
		}
		return nil
	}
	took := works
	if !took.Valid {
		took = calls
	}
	m.add(measured(Communication, took.Float64/1e6/float64(len(m.settled)), len(m.settled), "steps"))
	return m.exposedCommunication()
}

// exposedCommunication is by the phases of the steps that have all their rows.
func (m *measuring) exposedCommunication() error {
	var stretches []timeline.Stretch
	for _, s := range m.settled {
		if s.Whole {
			stretches = append(stretches, timeline.Stretch{Begin: s.Begin, Until: s.Until()})
		}
	}
	if len(stretches) == 0 {
		m.add(missing(Exposed, "no step has all its rows: record with a larger --budget"))
		return nil
	}
	phases, err := timeline.Phases(m.ctx, m.db, dataset.Scan{}, m.loop.PID, m.loop.TID, stretches, false)
	if err != nil {
		return err
	}
	var each []float64
	for _, took := range phases {
		each = append(each, float64(took[timeline.Communication])/1e6)
	}
	m.add(meanOf(Exposed, each, "whole steps"))
	return nil
}
