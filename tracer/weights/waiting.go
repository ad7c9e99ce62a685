package weights

import (
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// keepTraining is how long a slice of steps waits for the next that sees some: where others, of an
// evaluation, lie between and the recording ends before it comes, the slice stands for all steps to
// the end. Pauses within 1 % last for some ten seconds.
const keepTraining = 2 * time.Minute

// waiting is a slice that was the last of the steps, when so many were over.
type waiting struct {
	j    *interval
	over int
}

// still reports whether the oldest slice was the last that saw steps, and no other has ended since.
func (w *waiting) still(l *Ledger, now time.Time) bool {
	return *w == waiting{l.pending[0], over(l.pending)} && l.pending[0].mayWait(l, now)
}

// waits reports whether the oldest slice saw steps of a process, and none of the later ones did as yet.
func (w *waiting) waits(l *Ledger, now time.Time, lines map[int32]*progress.Timeline) bool {
	j := l.pending[0]
	if !j.mayWait(l, now) {
		return false
	}
	for _, pid := range j.processes {
		t := lines[int32(pid)]
		if t == nil {
			continue
		}
		saw := func(i *interval) bool {
			if !i.over {
				return false
			}
			_, enough := i.saw(t, event.PhaseTraining)
			return enough
		}
		if saw(j) && !slices.ContainsFunc(l.pending[1:], saw) {
			*w = waiting{j, over(l.pending)}
			return true
		}
	}
	return false
}

// mayWait reports whether there is time and room for a slice to wait for the next of steps.
func (i *interval) mayWait(l *Ledger, now time.Time) bool {
	return now.Sub(i.off.At) < keepTraining && fewRows(l.pending) && !l.gauge.Steps.Crowded()
}

// over is how many slices are over.
func over(pending []*interval) (n int) {
	for _, i := range pending {
		if i.over {
			n++
		}
	}
	return n
}

// fewRows reports whether slices have few enough rows to wait.
func fewRows(pending []*interval) bool {
	rows := uint64(0)
	for _, i := range pending {
		for _, calls := range i.seen {
			rows += calls
		}
	}
	return rows <= keepRows
}
