package hang

// Recording is what is known of the ranks of one node.
type Recording struct {
	Host      string
	Members   []Member // of a rank that has had several processes, the one that came furthest last
	Waits     map[Of]Wait
	Threads   map[int64][]Thread // by pid, the main one first, where a rank stood still
	Processes []Known            // those with a framework that have not ended
	Others    []Known            // those without one
	// PlaceOf is the innermost line of the job's own code in a stack, and LastPlace where a
	// process's main thread was sampled last; "" is not known. Either may be nil.
	PlaceOf   func(stack int64) string
	LastPlace func(pid int64) string
}

// Member is a rank of a group, as one process knows it.
type Member struct {
	Group      int64 // the same on every node
	Name       string
	PID        int64
	Rank       int64
	Ranks      int64
	Number     *int64 // of the last collective that it asked for; nil before the first
	Collective string // and which one that was
	Ended      bool   // its process has

	in int // which recording
}

// Of is a process in a group.
type Of struct{ Group, PID int64 }

// Wait is what a process waits in.
type Wait struct {
	Number     int64
	Seconds    float64
	Stack      int64  // of Python; 0 is not known
	Collective string // "" is not known
	Place      string // the line at which it waits, where that is known by itself
}

// Known is a process with a framework.
type Known struct {
	PID  int64
	Rank *int64 // of the job; nil: it says none
}

// find says where a rank is that is missing.
func (r *Recording) find(m *Rank) {
	m.Host, m.Threads, m.Stopped = r.Host, r.Threads[*m.PID], haltOf(r.Threads[*m.PID])
	if len(m.Threads) > 0 && m.Threads[0].Main {
		m.Place = m.Threads[0].place()
	}
	if m.Place == "" && r.LastPlace != nil {
		m.Place = r.LastPlace(*m.PID)
		m.Sampled = m.Place != ""
	}
}

// waitsAt is the line at which a process waits.
func (r *Recording) waitsAt(of Of) string {
	w := r.Waits[of]
	if w.Stack != 0 && r.PlaceOf != nil {
		if place := r.PlaceOf(w.Stack); place != "" {
			return place
		}
	}
	if w.Place != "" {
		return w.Place
	}
	for _, t := range r.Threads[of.PID] { // a call that began in a recording at level anchor has no stack
		if (t.Main || t.RunsPython()) && t.Collective() != "" {
			return t.place()
		}
	}
	return ""
}

// Place is the innermost line of a process's own code: where it waits in a group, else
// where its main thread stands, or was sampled last; "" is not known.
func (r *Recording) Place(of Of) string {
	if _, waits := r.Waits[of]; waits {
		if place := r.waitsAt(of); place != "" {
			return place
		}
	}
	m := Rank{PID: &of.PID}
	r.find(&m)
	return m.Place
}
