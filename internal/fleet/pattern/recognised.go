package pattern

import "github.com/ebpfprof/ebpfprof/tracer/event"

// The limits of the stacks that are recognised at the same time. A stack comes once in a
// recording, which may last for months.
const (
	mostStacks = 131_072
	mostNames  = 32 << 20 // bytes of the functions' names and stacks
)

// recognised are the stacks that samples may refer to: of each what it is taken for, not
// its frames, which are a hundred times that. Those that samples have not referred to again
// since they were looked at last go first.
type recognised struct {
	stacks    map[int64]*stack
	order     []int64 // of stacks, the next to be looked at first
	functions map[function]*shared
	names     int // bytes
}

type stack struct {
	plain, collecting *shared // the latter while garbage is collected
	seen, again       bool    // by samples; again: since it was looked at last
}

// shared is a function that several stacks are taken for.
type shared struct {
	function
	stacks int
}

func newRecognised() recognised {
	return recognised{stacks: map[int64]*stack{}, functions: map[function]*shared{}}
}

func (r *recognised) add(s *event.Stack) {
	if _, ok := r.stacks[s.ID]; ok {
		return
	}
	for len(r.order) >= mostStacks || r.names > mostNames {
		r.makeRoom()
	}
	seen := sight(s.Frames)
	r.stacks[s.ID] = &stack{plain: r.share(seen.classify(false)), collecting: r.share(seen.classify(true))}
	r.order = append(r.order, s.ID)
}

// makeRoom looks at the stack whose turn it is: one that was seen again has another.
func (r *recognised) makeRoom() {
	id := r.order[0]
	r.order = r.order[1:]
	s := r.stacks[id]
	if s.again {
		s.again = false
		r.order = append(r.order, id)
		return
	}
	delete(r.stacks, id)
	r.release(s.plain)
	r.release(s.collecting)
}

func (r *recognised) share(f function) *shared {
	known := r.functions[f]
	if known == nil {
		known = &shared{function: f}
		r.functions[f] = known
		r.names += f.bytes()
	}
	known.stacks++
	return known
}

func (r *recognised) release(f *shared) {
	if f.stacks--; f.stacks == 0 {
		delete(r.functions, f.function)
		r.names -= f.bytes()
	}
}

func (f *function) bytes() int { return len(f.name) + len(f.stack) + len(f.file) }

// of is what a stack is taken for, nil if it is not there any more.
func (r *recognised) of(id int64, collecting bool) *function {
	s := r.stacks[id]
	if s == nil {
		return nil
	}
	s.again, s.seen = s.seen, true
	if collecting {
		return &s.collecting.function
	}
	return &s.plain.function
}
