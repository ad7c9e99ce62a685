package timeline

import (
	"math"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// batches settles which loads brought a batch: the one with which a loader ends
// does not. The seed of the next iterator tells; where its operator was not
// recorded (called for the first time, or between slices), the loads around it and
// the time that it took do. Without recorded operators there it stays as the order of anchors
// has it.
func batches(threads []Thread, counts []stepOperators) {
	for i := range threads {
		var found []int64
		for _, s := range threads[i].Steps {
			if n := counts[s.ID].followed; n > 0 {
				found = append(found, int64(n))
			}
		}
		usual := steps.Median(found)
		if usual == 0 {
			continue
		}
		all := threads[i].Steps
		// recorded reports whether a load's batch has its operators: those around a
		// load without any were recorded, so it had none to record.
		recorded := func(k int) bool {
			return k >= 0 && k < len(all) && float64(counts[all[k].ID].followed) >= usual/2
		}
		// quickest is the shortest load that certainly brought a batch. Where loads take
		// alike long, one that took not half as long brought none.
		quickest := int64(math.MaxInt64)
		for k := range all {
			if recorded(k) {
				quickest = min(quickest, all[k].End-all[k].Begin)
			}
		}
		for k := range all {
			s := &all[k]
			f, alone := counts[s.ID], s.Anchors == "L"
			last := k == len(all)-1
			switch n := float64(f.followed); {
			case !alone:
			case n < usual/4 && (f.iterators > 0 || last || recorded(k-1) && recorded(k+1) || s.End-s.Begin < quickest/2):
				s.Kind, s.Method = steps.Other, steps.Unmatched
			case n >= usual/2:
				s.Kind = steps.Evaluate
				if s.Method == steps.Unmatched {
					s.Method = steps.Learnt
				}
			}
		}
		renumber(threads[i].Steps)
	}
}

// renumber counts the steps of each kind again; warm-up counts as training.
func renumber(all []Step) {
	numbers := map[steps.Kind]int{}
	for i := range all {
		kind := all[i].Kind
		if kind == steps.Warmup {
			kind = steps.Train
		}
		all[i].Number = numbers[kind]
		numbers[kind]++
	}
}
