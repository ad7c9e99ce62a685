package timeline

import "slices"

// moveBackward takes the thread that runs the backward pass for the training
// thread where nothing there says that it waits for it, as in traces of
// torch.profiler: the pass begins when the forward pass is done, and what follows
// waits for it. Of several such threads it is the one with the most nodes.
func (b *builder) moveBackward() {
	nodes := map[int]int{}
	for _, s := range b.Spans {
		if s.Layer != "autograd" {
			continue
		}
		if s.TID == b.main && s.Category == "backward" {
			return // backwardThreads has the pass itself
		}
		if s.TID != b.main && s.Category == "node" {
			nodes[s.TID]++
		}
	}
	for _, tid := range slices.Sorted(keys(nodes)) {
		if b.moved == 0 || nodes[tid] > nodes[b.moved] {
			b.moved = tid
		}
	}
	if b.moved == 0 {
		return
	}
	for i, s := range b.Spans {
		if s.TID == b.moved && s.Layer != "device" {
			b.onLane[i] = b.main
		}
	}
}

// otherThreads cuts the threads that are not cut yet and that launch work: from
// their first call to the end of the last one, with nothing before them.
func (b *builder) otherThreads() {
	from, to, launches := map[int]int64{}, map[int]int64{}, map[int]bool{}
	for i, s := range b.Spans {
		if s.OnDevice() {
			if l, ok := b.byID[s.Launch]; ok && s.Launch != 0 {
				launches[b.onLane[l]] = true
			}
			continue
		}
		tid := b.onLane[i]
		if s.Layer == "device" || tid == b.main || b.threads[tid] || s.runsCollective() {
			continue
		}
		if _, ok := from[tid]; !ok {
			from[tid] = s.Begin - b.begin
		}
		to[tid] = max(to[tid], s.End-b.begin)
	}
	for _, tid := range slices.Sorted(keys(from)) {
		if launches[tid] {
			b.cut(tid, from[tid], to[tid], -1)
		}
	}
}

// backwardThreads are those that run nodes while the training thread waits in
// its backward pass.
func (b *builder) backwardThreads(main int) {
	for i, s := range b.Spans {
		if s.TID != main || s.Layer != "autograd" || s.Category != "backward" || len(b.owned[i]) == 0 {
			continue
		}
		from, to := map[int]int64{}, map[int]int64{}
		for _, other := range b.Spans {
			if other.TID == main || other.TID == b.moved || other.Layer == "device" || other.runsCollective() || other.Begin < s.Begin ||
				other.End > s.End {
				continue
			}
			if _, ok := from[other.TID]; !ok {
				from[other.TID] = other.Begin - b.begin
			}
			to[other.TID] = max(to[other.TID], other.End-b.begin)
		}
		waits := b.owned[i][len(b.owned[i])-1]
		for _, tid := range slices.Sorted(keys(from)) {
			b.threads[tid] = true
			if last := b.cut(tid, from[tid], to[tid], b.before[i]); last >= 0 && last != b.before[i] {
				b.nodes.Waits(waits, last)
			}
		}
	}
}

func keys[V any](m map[int]V) func(func(int) bool) {
	return func(yield func(int) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
