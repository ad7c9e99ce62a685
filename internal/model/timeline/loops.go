package timeline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// mostCalls bounds what is kept of a thread's outermost calls, in number.
const mostCalls = 3_000_000

// loops reports whether anchors made steps of a loop: calls in no step are none.
func loops(found []steps.Step) bool {
	return slices.ContainsFunc(found, func(s steps.Step) bool { return s.Kind != steps.Other })
}

// callsOf is what a thread did that may repeat.
type callsOf struct {
	pid, tid int
	calls    []steps.Call  // outermost ones
	ranges   []steps.Range // the user's own
	nodes    int           // outermost calls that are nodes of a backward pass
	until    int64         // end of the last outermost call
	around   int64         // end of what lies around: calls and ranges
	busy     int64         // of the union of both
	first    int64
	cut      bool // it has more calls than are kept
}

// anyLoops adds the processes whose steps neither marks of a profiler nor the calls of a training loop tell: by ranges of
// the user's, else by the outermost calls of the thread that makes the most.
func anyLoops(ctx context.Context, db *dataset.DB, known []Thread) ([]Thread, error) {
	byProcess, err := repeatable(ctx, db, known)
	if err != nil {
		return nil, err
	}
	pids := slices.Sorted(maps.Keys(byProcess))
	for _, t := range known {
		pids = append(pids, t.PID)
	}
	if pids, err = working(ctx, db, pids); err != nil {
		return nil, err
	}
	for _, pid := range pids {
		if len(byProcess[pid]) == 0 {
			continue
		}
		thread, loop := loopOf(byProcess[pid])
		if loop == nil {
			continue
		}
		loop.Describe(thread.calls)
		loop.Beside = besideOf(byProcess[pid], thread, loop)
		t := Thread{PID: pid, TID: thread.tid, Loop: loop}
		if err := t.takeLoop(ctx, db); err != nil {
			return nil, err
		}
		if len(t.Steps) > 0 {
			known = append(known, t)
		}
	}
	return known, nil
}

// takeLoop takes the steps of the loop: of one that no mark tells, those that lie in one slice each.
func (t *Thread) takeLoop(ctx context.Context, db *dataset.DB) error {
	found, stands := t.Loop.Steps, []Slice(nil)
	if found[0].Method == steps.Period {
		recorded, err := slicesOf(ctx, db, t.PID)
		if err != nil {
			return err
		}
		if stands, err = SlicesOf(ctx, db, t.PID); err != nil {
			return err
		}
		found = inOneSlice(found, recorded)
	}
	for _, s := range found {
		t.Steps = append(t.Steps, Step{Step: s, Whole: true, Weight: 1})
	}
	t.weigh(stands)
	return nil
}

// weigh has the steps of a slice stand for those of its stretch: as many as began in the slice, by what the slice stands
// for. The last one that begins in a slice is not among its steps, since it is cut.
func (t *Thread) weigh(stands []Slice) {
	begun, kept := 0, 0
	for _, s := range stands {
		for begun < len(t.Loop.Steps) && t.Loop.Steps[begun].Begin < s.Begin {
			begun++
		}
		first := begun
		for begun < len(t.Loop.Steps) && t.Loop.Steps[begun].Begin <= s.End {
			begun++
		}
		for kept < len(t.Steps) && t.Steps[kept].Begin < s.Begin {
			kept++
		}
		own := kept
		for kept < len(t.Steps) && t.Steps[kept].Begin <= s.End {
			kept++
		}
		for i := own; i < kept; i++ {
			t.Steps[i].Weight = max(1, s.Represented/s.Recorded*float64(begun-first)/float64(kept-own))
		}
	}
}

// besideOf counts the anchor's calls on the other threads, in steps.
func besideOf(threads []*callsOf, of *callsOf, l *steps.Loop) (n int) {
	if l.Steps[0].Method != steps.Period {
		return 0
	}
	for _, t := range threads {
		if t == of {
			continue
		}
		for _, c := range t.calls {
			if c.Name == l.Anchor {
				n++
			}
		}
	}
	return n / max(l.Parts, 1)
}

// loopOf is the loop of the thread that does the most, by its ranges if it has any that repeat. A thread with ranges that
// does a tenth as much goes first: an engine's loop may hand its work to another thread.
func loopOf(threads []*callsOf) (*callsOf, *steps.Loop) {
	work := func(t *callsOf) int { return len(t.calls) - t.nodes }
	slices.SortFunc(threads, func(a, b *callsOf) int {
		return cmp.Or(cmp.Compare(work(b), work(a)), cmp.Compare(b.busy, a.busy), cmp.Compare(a.tid, b.tid))
	})
	for _, t := range threads {
		if 10*work(t) < work(threads[0]) {
			break
		}
		if l, ok := steps.Marked(t.ranges, t.busy, max(t.until, t.around)-t.first); ok {
			return t, &l
		}
	}
	for _, t := range threads {
		if 10*work(t) < work(threads[0]) {
			break
		}
		if l, ok := steps.Repeating(t.calls); ok {
			return t, &l
		}
	}
	return nil, nil
}

// repeatable reads the outermost calls and the ranges of threads, of processes that are not known yet.
func repeatable(ctx context.Context, db *dataset.DB, known []Thread) (map[int][]*callsOf, error) {
	const time, duration, pid, tid, layer, category, name = 0, 1, 2, 3, 4, 5, 6
	skip := map[int]bool{}
	for _, t := range known {
		skip[t.PID] = true
	}
	byThread := map[[2]int]*callsOf{}
	byProcess := map[int][]*callsOf{}
	scan := dataset.Scan{Table: "span", Columns: []string{"ts_ns", "duration_ns", "pid", "tid", "layer", "category", "name"},
		Before: func(b *dataset.Batch, i, k int) bool { return b.Columns[duration][i] > b.Columns[duration][k] }}
	err := db.Scan(ctx, scan, func(b *dataset.Batch) error {
		c := b.Columns
		for i := range b.Rows {
			who := [2]int{int(c[pid][i]), int(c[tid][i])}
			if skip[who[0]] || c[duration][i] < 0 || c[time][i] <= 0 {
				continue
			}
			kind := callKind(b.Text(c[layer][i]), b.Text(c[category][i]), b.Text(c[name][i]))
			if kind == noCall {
				continue
			}
			t := byThread[who]
			if t == nil {
				t = &callsOf{pid: who[0], tid: who[1], first: c[time][i]}
				byThread[who] = t
				byProcess[who[0]] = append(byProcess[who[0]], t)
			}
			t.add(kind, b.Text(c[name][i]), c[time][i], c[time][i]+c[duration][i])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for what repeats: %w", err)
	}
	return byProcess, nil
}

// The kinds of rows that loops are looked for in.
const (
	noCall = iota
	plainCall
	aloneCall // a step may consist of it alone
	nodeCall
	rangeCall
)

func callKind(layer, category, name string) int {
	switch layer {
	case "scope":
		if category == "function" {
			return aloneCall
		}
		if strings.HasPrefix(name, "Optimizer.") || strings.HasPrefix(name, "enumerate(DataLoader)#") {
			return plainCall
		}
		return rangeCall
	case "op", "collective":
		return plainCall
	case "autograd":
		if category == "node" {
			return nodeCall
		}
		return aloneCall
	case "runtime":
		if strings.Contains(strings.ToLower(name), "graphlaunch") || category == "execution" {
			return aloneCall
		}
		if category == "launch" || category == "copy" || category == "sync" || category == "set" {
			return plainCall
		}
	}
	return noCall
}

func (t *callsOf) add(kind int, name string, begin, end int64) {
	if begin >= t.around {
		t.busy += end - begin
	} else {
		t.busy += max(0, end-t.around)
	}
	t.around = max(t.around, end)
	if kind == rangeCall {
		t.ranges = append(t.ranges, steps.Range{Name: name, Begin: begin, End: end})
		return
	}
	if begin < t.until {
		return
	}
	t.until = end
	if len(t.calls) >= mostCalls {
		t.cut = true
		return
	}
	if kind == nodeCall {
		t.nodes++
	}
	t.calls = append(t.calls, steps.Call{Name: name, Begin: begin, End: end, Alone: kind == aloneCall})
}

// inOneSlice are the steps that lie in one slice each. Of the last one in a slice the period is not known.
func inOneSlice(found []steps.Step, recorded []Stretch) []steps.Step {
	if len(recorded) == 0 {
		return found
	}
	var kept []steps.Step
	for _, s := range found {
		until := s.End
		if s.Period >= 0 {
			until = max(until, s.Begin+s.Period)
		}
		for _, r := range recorded {
			if s.Begin >= r.Begin && s.End <= r.Until {
				if until > r.Until {
					s.Period = -1
				}
				kept = append(kept, s)
				break
			}
		}
	}
	return kept
}
