package timeline

import (
	"context"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/usercode"
)

// codeSQL are the stacks of a process's calls that lead through PyTorch's optimizers or
// its data loader. Where scopes say it they need not be asked.
var codeSQL = `WITH scoped AS (SELECT count(*) AS n FROM span WHERE pid = ? AND layer = 'scope'
	AND (name LIKE 'Optimizer.%%' OR name LIKE 'enumerate(DataLoader)%%')),
called AS (SELECT DISTINCT coalesce(python_stack_id, stack_id) AS stack_id FROM span WHERE pid = ? AND layer = 'op'),
frame AS (SELECT stack_id, unnest(frames) AS f FROM stack WHERE stack_id IN (SELECT stack_id FROM called) AND (SELECT n FROM scoped) = 0),
part AS (SELECT stack_id, bool_or(` + usercode.OptimizerSQL("f.file") + `) AS optimizer, bool_or(` + usercode.LoaderSQL("f.file") +
	`) AS loader
	FROM frame WHERE f.kind = 'python' GROUP BY stack_id)
SELECT stack_id, optimizer FROM part WHERE optimizer OR loader`

// phasesOfCode are the phases of calls by the Python code that they are made from, by
// stack: for what has no scopes, as PyTorch 1.13 has none that can be probed.
func phasesOfCode(ctx context.Context, db *dataset.DB, pid int) (map[int64]string, error) {
	rows, err := db.Query(ctx, codeSQL, pid, pid)
	if err != nil {
		return nil, fmt.Errorf("looking for optimizers: %w", err)
	}
	defer rows.Close()
	phases := map[int64]string{}
	for rows.Next() {
		var id int64
		var optimizer bool
		if err := rows.Scan(&id, &optimizer); err != nil {
			return nil, err
		}
		phases[id] = Loading
		if optimizer {
			phases[id] = Optimizer
		}
	}
	return phases, rows.Err()
}

// between is how much may lie between two calls from one code and still be that code's own,
// ns: a loop over parameters goes on within microseconds.
const between = 1_000_000

// called opens a call whose code says its phase. What lies between two such, with nothing
// around them, is that code's own.
func (s *phaseSweep) called(ts, end int64, phase string) {
	s.close(ts)
	if len(s.stack) == 0 && s.code.phase == phase && ts-s.code.end <= between {
		s.give(ts, phase)
	}
	s.open(ts, end, phase)
	if len(s.stack) == 1 {
		s.code = s.stack[0]
	}
}
