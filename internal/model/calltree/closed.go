package calltree

import "fmt"

// A row in a slice stands for calls that nobody saw. Where the calls in slices were longer than the others, the probes
// made them longer or the machine was busy, what a thread's rows stand for adds up to more time than there was: such a
// thread's times are shortened together, so that its sum is no longer than the recording, and a child no longer than
// its parent.

// readWalls reads how long the sessions lasted, of a dataset that was recorded in slices.
func (l *loader) readWalls() error {
	if l.root.slices == nil {
		return nil
	}
	rows, err := l.db.Query(l.ctx, "SELECT session_id, max(ended_ns) - min(started_ns) FROM session WHERE ended_ns IS NOT NULL GROUP BY ALL")
	if err != nil {
		return fmt.Errorf("reading how long the recording lasted: %w", err)
	}
	defer rows.Close()
	l.wall = map[string]float64{}
	for rows.Next() {
		var session string
		var ns float64
		if err := rows.Scan(&session, &ns); err != nil {
			return err
		}
		l.wall[session] = ns
	}
	return rows.Err()
}

// holds counts a row's own time of the thread.
func (t *thread) holds(m *Metric, ns float64) {
	if t.of == nil {
		t.of = map[*Metric]float64{}
	}
	t.of[m] += ns
	t.sum += ns
}

// closeThreads shortens the times of threads that have more of it than the recording lasted.
func (l *loader) closeThreads() error {
	over := map[*Metric]float64{}
	for key, t := range l.threads {
		wall, known := l.wall[key.session]
		if !known || t.sum <= wall {
			continue
		}
		for m, ns := range t.of {
			over[m] += ns * (1 - wall/t.sum)
		}
		l.root.Shortened = max(l.root.Shortened, t.sum/wall)
	}
	for m, ns := range over {
		if m.Sum <= 0 {
			continue
		}
		m.shorten(max(0, 1-ns/m.Sum))
	}
	return nil
}

// shorten multiplies the sum, and what tells how sure it is; the shortest and the longest call are what was seen.
func (m *Metric) shorten(by float64) {
	m.Sum, m.Mean, m.M2 = m.Sum*by, m.Mean*by, m.M2*by*by
	for i := range m.seen {
		m.seen[i].sum, m.seen[i].weighted = m.seen[i].sum*by, m.seen[i].weighted*by
	}
}
