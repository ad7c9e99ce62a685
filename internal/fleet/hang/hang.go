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
	Ended      bool   `json:"ended"` // its process has
	// Place is the innermost line of its own code: where it waits, or where a rank that is
	// missing was seen last. "" is not known.
	Place   string `json:"place,omitempty"`
	Sampled bool   `json:"sampled"` // Place is of its last sample
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

// Analyse reads a dataset.
func Analyse(ctx context.Context, db *dataset.DB) (*Report, error) {
	groups := map[int64][]known{}
	var order []int64
	if err := each(ctx, db, ranksQuery, func(rows *sql.Rows) error {
		var k known
		if err := rows.Scan(&k.group, &k.name, &k.pid, &k.rank, &k.ranks, &k.number, &k.call, &k.ended); err != nil {
			return err
		}
		if groups[k.group] == nil {
			order = append(order, k.group)
		}
		groups[k.group] = append(groups[k.group], k)
		return nil
	}); err != nil {
		return nil, err
	}
	waits := map[[2]int64]open{}
	if err := each(ctx, db, openQuery, func(rows *sql.Rows) error {
		var group, pid int64
		var o open
		if err := rows.Scan(&group, &pid, &o.number, &o.seconds, &o.stack, &o.name); err != nil {
			return err
		}
		waits[[2]int64{group, pid}] = o
		return nil
	}); err != nil {
		return nil, err
	}
	report := &Report{Groups: []Group{}}
	for _, id := range order {
		g, ok := judge(groups[id], func(pid int64) (open, bool) { o, ok := waits[[2]int64{id, pid}]; return o, ok })
		if !ok {
			continue
		}
		for i := range g.Waiting {
			g.Waiting[i].Place = place(ctx, db, "SELECT frames FROM stack WHERE stack_id = ? LIMIT 1", waits[[2]int64{id, *g.Waiting[i].PID}].stack)
		}
		for i := range g.Missing {
			if m := &g.Missing[i]; m.PID != nil {
				m.Place = place(ctx, db, "SELECT frames FROM sample JOIN stack USING (stack_id) WHERE pid = ? AND tid = pid ORDER BY ts_ns DESC LIMIT 1", *m.PID)
				m.Sampled = m.Place != ""
			}
		}
		report.Groups = append(report.Groups, *g)
	}
	sort.SliceStable(report.Groups, func(i, j int) bool { return report.Groups[i].Seconds > report.Groups[j].Seconds })
	return report, nil
}

// mostMissing bounds how many ranks without a row are listed.
const mostMissing = 1 << 12

// judge tells those who wait in the group's first open collective from those who have not
// come to it; false where nobody waits.
func judge(ranks []known, waits func(pid int64) (open, bool)) (*Group, bool) {
	g := &Group{Name: ranks[0].name, Ranks: int(ranks[0].ranks), Waiting: []Rank{}, Missing: []Rank{}}
	first := true
	for _, k := range ranks {
		if o, ok := waits(k.pid); ok && !k.ended && (first || o.number < g.Number) {
			g.Number, first = o.number, false
		}
	}
	if first {
		return nil, false
	}
	here := map[int64]Rank{}
	for _, k := range ranks { // of a rank that has had several processes, the one that came furthest is last
		pid := k.pid
		r := Rank{Rank: int(k.rank), PID: &pid, Collective: k.call, Ended: k.ended}
		if k.number.Valid {
			number := k.number.Int64
			r.LastNumber = &number
		}
		here[k.rank] = r
		o, waiting := waits(k.pid)
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
			if o, waiting := waits(*r.PID); waiting && o.number == g.Number {
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
