package timeline

import (
	"context"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// workSQL are the processes that run operators or launch work.
const workSQL = `SELECT DISTINCT pid FROM span
WHERE layer IN ('op', 'autograd', 'device') OR layer = 'runtime' AND category IN ('launch', 'graph', 'copy')`

// working leaves out the processes that only mark ranges beside others that work: a server or a logger
// of the same file annotates something short very often, and its ranges are nobody's steps.
func working(ctx context.Context, db *dataset.DB, pids []int) ([]int, error) {
	if len(pids) < 2 {
		return pids, nil
	}
	rows, err := db.Query(ctx, workSQL)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	works := map[int]bool{}
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			return nil, err
		}
		works[pid] = true
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(pids, func(pid int) bool { return works[pid] }) {
		return pids, nil
	}
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !works[pid] }), nil
}
