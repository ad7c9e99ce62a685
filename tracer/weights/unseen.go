package weights

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// tellUnseen writes a slice that saw nothing for each stretch that no slice saw.
func (l *Ledger) tellUnseen(lines map[int32]*progress.Timeline, end int64, groups []string) {
	if lines == nil {
		lines = l.timelines(time.Unix(0, end), end)
	}
	var rows []event.Slice
	for pid, t := range lines {
		for _, phase := range phases {
			from := l.from(stratum{pid, phase})
			row := event.Slice{PID: pid, BeginNS: from, EndNS: from, FromNS: from, ToNS: end, Phase: phase, Unit: event.UnitTime,
				Represented: float64(l.spent(stratum{pid, phase}, t, from, end))}
			if phase == event.PhaseTraining {
				row.Unit, row.Represented = event.UnitSteps, float64(t.Steps(from, end))
				if row.Represented <= unseenShare*float64(t.Count()) {
					continue
				}
			} else if row.Represented <= unseenShare*float64(end-l.first) {
				continue
			}
			for _, group := range groups {
				l.ids++
				row.ID, row.Group = l.ids, group
				rows = append(rows, row)
			}
		}
	}
	for _, pid := range l.traced {
		if lines[int32(pid)] != nil {
			continue
		}
		// Neither steps nor a slice: what is known is that time has passed.
		from := l.from(stratum{int32(pid), anyPhase})
		if end-from <= int64(unseenShare*float64(end-l.first)) {
			continue
		}
		row := event.Slice{PID: int32(pid), BeginNS: from, EndNS: from, FromNS: from, ToNS: end, Phase: event.PhaseOther, Unit: event.UnitTime,
			Represented: float64(end - from)}
		for _, group := range groups {
			l.ids++
			row.ID, row.Group = l.ids, group
			rows = append(rows, row)
		}
	}
	if len(rows) > 0 {
		l.rows.Weigh(0, 0, rows, nil, nil)
	}
}
