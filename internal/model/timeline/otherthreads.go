package timeline

// The backward pass of a job on an accelerator runs on a thread of autograd's own, and the training
// thread waits for it: without a span that says so its time there is of no phase.

// backwardElsewhere are the nodes of the backward pass on other threads of the process.
type backwardElsewhere struct {
	threads map[int64]*nodeThread
	nodes   []interval // in order of their begins, those that are not over
}

type interval struct{ begin, end int64 }

// nodeThread is another thread: one of autograd's runs operators in nodes alone.
type nodeThread struct {
	until    int64 // of the last node
	forwards bool  // it runs operators of its own, so that it is no thread of autograd's
}

// see takes the next row of another thread.
func (b *backwardElsewhere) see(tid int64, layer, category string, begin, end int64) {
	if layer != "op" && (layer != "autograd" || category != "node") {
		return
	}
	if b.threads == nil {
		b.threads = map[int64]*nodeThread{}
	}
	t := b.threads[tid]
	if t == nil {
		t = &nodeThread{}
		b.threads[tid] = t
	}
	switch {
	case layer == "op":
		t.forwards = t.forwards || begin >= t.until
	case !t.forwards:
		t.until = max(t.until, end)
		b.nodes = append(b.nodes, interval{begin, end})
	}
}

// during is the part of a time in which the training thread does nothing of its own that belongs to the
// backward pass: from the first node in it to the end of the last. Times are asked for in order.
func (b *backwardElsewhere) during(from, until int64) (begin, end int64) {
	begin, end = until, until
	kept := b.nodes[:0]
	for _, n := range b.nodes {
		if n.end > until {
			kept = append(kept, n)
		}
		if n.end <= from || n.begin >= until {
			continue
		}
		if begin == until {
			begin, end = max(n.begin, from), from
		}
		end = max(end, min(n.end, until))
	}
	b.nodes = kept
	return begin, end
}
