// Package hang says who keeps whom waiting: which rank of a group has not come to the
// collective in which the others are. It owns the verdict; what is open, and how far each
// rank has come, it reads from a dataset, which may still be written.
package hang

import (
	"context"
	"database/sql"
	"fmt"
	"sort"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// Report is what waits in a dataset, one entry for each group of ranks.
type Report struct {
	Groups []Group `json:"groups"`
	// Unseen is what waits in collectives whose begin was not recorded; nil: nothing.
	Unseen *Unseen `json:"unseen,omitempty"`
}

// Group is a group of ranks of which some wait.
type Group struct {
	Name       string  `json:"name"` // what the job calls it, or PyTorch; "" without a name
	Ranks      int     `json:"ranks"`
	Number     int64   `json:"sequence_number"` // of the collective in which the first of them wait
	Collective string  `json:"collective"`
	Seconds    float64 `json:"seconds"` // since the first rank asked for it, when the table was written
	Waiting    []Rank  `json:"waiting"`
	Missing    []Rank  `json:"missing"`
	// Mismatch: ranks have asked for different collectives under the same number.
	Mismatch bool `json:"mismatch"`
}

// Rank is one rank of such a group.
type Rank struct {
	Rank       int    `json:"rank"`
	PID        *int64 `json:"pid"`         // null: not in the recording
	LastNumber *int64 `json:"last_number"` // the last collective that it asked for
	Collective string `json:"collective,omitempty"`
	Ended      bool   `json:"ended"`             // its process has
	Stopped    string `json:"stopped,omitempty"` // by what, where its process can't run
	// Place is the innermost line of its own code: where it waits, or where a rank that is
	// missing was seen last. "" is not known.
	Place   string `json:"place,omitempty"`
	Sampled bool   `json:"sampled"` // Place is of its last sample
	// Threads are where its threads stood when one of the ranks stood still.
	Threads []Thread `json:"threads,omitempty"`
	Host    string   `json:"host,omitempty"`

	in int // which recording
}

const ranksQuery = `SELECT c.communicator, coalesce(nullif(c.description, ''), c.name, ''), c.pid, c.rank, c.ranks, c.issued_number,
	coalesce(c.issued_name, ''), p.ended_ns IS NOT NULL
FROM communicator c LEFT JOIN (SELECT pid, max(ended_ns) AS ended_ns FROM process GROUP BY pid) p USING (pid)
WHERE c.communicator IS NOT NULL AND c.rank IS NOT NULL AND c.ranks IS NOT NULL
ORDER BY c.communicator, c.rank, c.issued_number NULLS FIRST`

const openQuery = `SELECT communicator, pid, min(sequence_number), max(seen_ns - ts_ns) / 1e9, max(coalesce(python_stack_id, 0)),
	coalesce(arg_min(name, sequence_number) FILTER (category = 'work'), min(name))
FROM open_call WHERE communicator IS NOT NULL AND sequence_number IS NOT NULL GROUP BY ALL`

// known is a rank as its row of communicator has it.
type known struct {
	group     int64
	name      string
	in        int // which recording
	pid, rank int64
	ranks     int64
	number    sql.NullInt64
	call      string
	ended     bool
}

type open struct {
	number  int64
	seconds float64
	stack   int64
	name    string // of the collective
}

// recording is what was read of one dataset.
type recording struct {
	db      *dataset.DB
	host    string
	ranks   []known
	waits   map[[2]int64]open // by group and pid
	threads map[int64][]Thread
}

// Analyse reads the datasets of one job, of several nodes perhaps: a group of ranks has
// the same name on all of them.
func Analyse(ctx context.Context, dbs ...*dataset.DB) (*Report, error) {
	groups := map[int64][]known{}
	var order []int64
	var all []*recording
	for i, db := range dbs {
		r, err := read(ctx, i, db)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		for _, k := range r.ranks {
			if groups[k.group] == nil {
				order = append(order, k.group)
			}
			groups[k.group] = append(groups[k.group], k)
		}
	}
	report := &Report{Groups: []Group{}}
	for _, id := range order {
		ranks := groups[id]
		sort.SliceStable(ranks, func(i, j int) bool { return ranks[i].rank < ranks[j].rank })
		wait := func(k *known) (open, bool) { o, ok := all[k.in].waits[[2]int64{id, k.pid}]; return o, ok }
		g, ok := judge(ranks, wait)
		if !ok {
			continue
		}
		for i := range g.Waiting {
			w := &g.Waiting[i]
			r := all[w.in]
			w.Host, w.Threads, w.Stopped = r.host, r.threads[*w.PID], haltOf(r.threads[*w.PID])
			w.Place = place(ctx, r.db, "SELECT frames FROM stack WHERE stack_id = ? LIMIT 1", r.waits[[2]int64{id, *w.PID}].stack)
		}
		if !g.byThreads() {
			continue
		}
		for i := range g.Missing {
			if m := &g.Missing[i]; m.PID != nil {
				all[m.in].find(ctx, m)
			}
		}
		report.Groups = append(report.Groups, *g)
	}
	sort.SliceStable(report.Groups, func(i, j int) bool { return report.Groups[i].Seconds > report.Groups[j].Seconds })
	for i, r := range all {
		if err := r.unseen(ctx, i, report); err != nil {
			return nil, err
		}
	}
	if u := report.Unseen; u != nil && len(u.Waiting) == 0 {
		report.Unseen = nil
	}
	return report, nil
}

// find says where a rank is that is missing.
func (r *recording) find(ctx context.Context, m *Rank) {
	m.Host, m.Threads, m.Stopped = r.host, r.threads[*m.PID], haltOf(r.threads[*m.PID])
	if len(m.Threads) > 0 && m.Threads[0].Main {
		m.Place = m.Threads[0].place()
	}
	if m.Place == "" {
		m.Place = place(ctx, r.db, "SELECT frames FROM sample JOIN stack USING (stack_id) WHERE pid = ? AND tid = pid ORDER BY ts_ns DESC LIMIT 1", *m.PID)
		m.Sampled = m.Place != ""
	}
}

// read reads what a dataset has of groups, waits and threads that stood still.
func read(ctx context.Context, number int, db *dataset.DB) (*recording, error) {
	r := &recording{db: db, waits: map[[2]int64]open{}}
	if err := each(ctx, db, "SELECT coalesce(any_value(host), '') FROM session", func(rows *sql.Rows) error { return rows.Scan(&r.host) }); err != nil {
		return nil, err
	}
	if err := each(ctx, db, ranksQuery, func(rows *sql.Rows) error {
		k := known{in: number}
		if err := rows.Scan(&k.group, &k.name, &k.pid, &k.rank, &k.ranks, &k.number, &k.call, &k.ended); err != nil {
			return err
		}
		r.ranks = append(r.ranks, k)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := each(ctx, db, openQuery, func(rows *sql.Rows) error {
		var group, pid int64
		var o open
		if err := rows.Scan(&group, &pid, &o.number, &o.seconds, &o.stack, &o.name); err != nil {
			return err
		}
		r.waits[[2]int64{group, pid}] = o
		return nil
	}); err != nil {
		return nil, err
	}
	var err error
	r.threads, err = readThreads(ctx, db)
	return r, err
}

// mostMissing bounds how many ranks without a row are listed.
const mostMissing = 1 << 12

// judge tells those who wait in the group's first open collective from those who have not
// come to it; false where none waits.
func judge(ranks []known, waits func(*known) (open, bool)) (*Group, bool) {
	g := &Group{Name: ranks[0].name, Ranks: int(ranks[0].ranks), Waiting: []Rank{}, Missing: []Rank{}}
	first := true
	for i := range ranks {
		k := &ranks[i]
		if o, ok := waits(k); ok && !k.ended && (first || o.number < g.Number) {
			g.Number, first = o.number, false
		}
	}
	if first {
		return nil, false
	}
	here, rows := map[int64]Rank{}, map[int64]*known{}
	for i := range ranks { // of a rank that has had several processes, the one that came furthest is last
		k := &ranks[i]
		pid := k.pid
		r := Rank{in: k.in, Rank: int(k.rank), PID: &pid, Collective: k.call, Ended: k.ended}
		if k.number.Valid {
			number := k.number.Int64
			r.LastNumber = &number
		}
		here[k.rank], rows[k.rank] = r, k
		o, waiting := waits(k)
		if !waiting || o.number != g.Number || k.ended {
			continue
		}
		g.Seconds = max(g.Seconds, o.seconds)
		g.Mismatch = g.Mismatch || g.Collective != "" && g.Collective != o.name
		g.Collective = o.name
	}
	for rank := range min(g.Ranks, mostMissing) {
		r, ok := here[int64(rank)]
		switch {
		case !ok:
			g.Missing = append(g.Missing, Rank{Rank: rank})
		case r.Ended || r.LastNumber == nil || *r.LastNumber < g.Number:
			g.Missing = append(g.Missing, r)
		default:
			if o, waiting := waits(rows[int64(rank)]); waiting && o.number == g.Number {
				r.Collective = o.name
				g.Waiting = append(g.Waiting, r)
			}
		}
	}
	return g, true
}

func each(ctx context.Context, db *dataset.DB, query string, scan func(*sql.Rows) error) error {
	rows, err := db.Query(ctx, query)
	if err != nil {
		return fmt.Errorf("reading what is open: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("reading what is open: %w", err)
		}
	}
	return rows.Err()
}

// place is the innermost frame of the job's own code in the stack that a query finds.
func place(ctx context.Context, db *dataset.DB, query string, argument int64) string {
	var text sql.NullString
	err := db.Row(ctx, `SELECT f.file || coalesce(':' || f.line, '') || ' ' || coalesce(f."function", '') FROM (SELECT unnest(frames) AS f, generate_subscripts(frames, 1) AS depth FROM (`+query+`))
WHERE f.kind = 'python' ORDER BY f.file LIKE '%-packages/%' OR f.file LIKE '%/lib/python3%' OR f.file LIKE '<%', depth LIMIT 1`, []any{argument}, &text)
	if err != nil {
		return "" // no such stack yet
	}
	return text.String
}
