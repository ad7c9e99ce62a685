package dataset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNoRank is returned for a rank that the dataset has not.
var ErrNoRank = errors.New("no rank")

// Part is what of a dataset is looked at: the rows of calls, samples and memory that begin in a
// window, of one rank. The zero Part is everything.
type Part struct {
	Rank        *int
	From, Until int64 // since the Unix epoch, ns; 0 is no end
}

// partTables are those that a part leaves rows out of.
var partTables = []string{"span", "sample", "memory"}

// partStacks leaves out the stacks that no row of the part has.
const partStacks = `CREATE OR REPLACE TEMP VIEW stack AS SELECT * FROM memory.main.stack WHERE (session_id, stack_id) IN (
	SELECT (session_id, stack_id) FROM span UNION SELECT (session_id, python_stack_id) FROM span UNION SELECT (session_id, stack_id)
	FROM sample
	UNION SELECT (session_id, stack_id) FROM memory UNION SELECT (session_id, python_stack_id) FROM memory)`

// Windowed says whether the part is less than the whole time.
func (p Part) Windowed() bool { return p.From != 0 || p.Until != 0 }

// Part is what Restrict was called with.
func (db *DB) Part() Part { return db.part }

// Restrict leaves all other rows out of what is asked from here on, by SQL and by Scan. The
// error is ErrNoRank where nothing of the rank was recorded.
func (db *DB) Restrict(ctx context.Context, p Part) error {
	var conditions []string
	of := map[Process]bool(nil)
	if p.Rank != nil {
		var err error
		if of, err = db.OfRank(ctx, *p.Rank); err != nil {
			return err
		}
		conditions = append(conditions, fmt.Sprintf("(session_id, pid) IN (SELECT (session_id, pid) FROM process WHERE rank = %d)", *p.Rank))
	}
	if p.From != 0 {
		conditions = append(conditions, fmt.Sprintf("ts_ns >= %d", p.From))
	}
	if p.Until != 0 {
		conditions = append(conditions, fmt.Sprintf("ts_ns < %d", p.Until))
	}
	for _, table := range partTables {
		source := "memory.main." + table
		if len(conditions) > 0 {
			source += " WHERE " + strings.Join(conditions, " AND ")
		}
		// A temporary view stands before the dataset's own of that name.
		if err := db.Exec(ctx, fmt.Sprintf("CREATE OR REPLACE TEMP VIEW %s AS SELECT * FROM %s", table, source)); err != nil {
			return fmt.Errorf("choosing rows of %s: %w", table, err)
		}
	}
	if err := db.Exec(ctx, partStacks); err != nil {
		return fmt.Errorf("choosing rows of stack: %w", err)
	}
	db.part, db.partOf = p, of
	return nil
}

// OfRank are the processes of a rank. The error is ErrNoRank where there is none.
func (db *DB) OfRank(ctx context.Context, rank int) (map[Process]bool, error) {
	rows, err := db.Query(ctx, "SELECT session_id, pid, rank FROM process WHERE rank IS NOT NULL ORDER BY rank")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	of := map[Process]bool{}
	var there []string
	for rows.Next() {
		var p Process
		var r int
		if err := rows.Scan(&p.Session, &p.PID, &r); err != nil {
			return nil, err
		}
		if said := fmt.Sprint(r); len(there) == 0 || there[len(there)-1] != said {
			there = append(there, said)
		}
		if r == rank {
			of[p] = true
		}
	}
	switch {
	case rows.Err() != nil:
		return nil, rows.Err()
	case len(of) > 0:
		return of, nil
	case len(there) == 0:
		return nil, fmt.Errorf("there is %w %d: no process of the dataset has one", ErrNoRank, rank)
	case len(there) > 16:
		there = append(there[:15:15], "…", there[len(there)-1])
	}
	return nil, fmt.Errorf("there is %w %d: the dataset has %s", ErrNoRank, rank, strings.Join(there, ", "))
}

// part narrows a scan to what Restrict chose.
func (s Scan) part(db *DB) Scan {
	if !slices.Contains(partTables, s.Table) {
		return s
	}
	s.From = max(s.From, db.part.From)
	if until := db.part.Until; until != 0 && (s.Until == 0 || until < s.Until) {
		s.Until = until
	}
	if s.Of == nil {
		s.Of = db.partOf
	}
	return s
}
