package numbers

import (
	"database/sql"
	"encoding/json"
	"math"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

func deviationPercent(x []float64) float64 {
	if mean := steps.Mean(x); mean != 0 {
		return 100 * math.Sqrt(steps.Variance(x)) / mean
	}
	return 0
}

// collatedSQL are the lists of tensors that the loader put together, in the training thread's draws or in its workers:
// how long the list is is how many samples a batch has. Before PyTorch 2 the draws have no scope, and the line
// that called aten::stack tells.
const collatedSQL = `
SELECT s.input_dims FROM span s
LEFT JOIN thread t ON t.session_id = s.session_id AND t.pid = s.pid AND t.tid = s.tid
LEFT JOIN span p ON p.session_id = s.session_id AND p.span_id = s.parent_id
WHERE s.layer = 'op' AND s.name IN ('aten::stack', 'aten::cat') AND s.input_dims IS NOT NULL
  AND (t.role = 'dataloader_worker' OR p.name LIKE 'enumerate(DataLoader)#%'
    OR coalesce(s.python_stack_id, s.stack_id) IN ` + loaderFrames + `)
GROUP BY s.input_dims ORDER BY sum(s.weight) DESC, s.input_dims LIMIT 1`

// batch is how many samples a step has, and the throughput.
func (m *measuring) batch() error {
	size, from, err := m.batchSize()
	if err != nil {
		return err
	}
	if size == 0 {
		const why = "how many samples a step has is not known: give --batch"
		m.add(missing(Batch, why))
		m.add(missing(Throughput, why))
		return nil
	}
	ranks, err := m.ranks()
	if err != nil {
		return err
	}
	all := float64(size * ranks)
	m.add(measured(Batch, all, 1, from))
	step, _ := Find(m.found, StepTime)
	m.add(step.inverse(Throughput, 1000*all))
	return nil
}

func (m *measuring) batchSize() (size int, from string, err error) {
	if m.options.Batch > 0 {
		return m.options.Batch, "--batch", nil
	}
	var dims sql.NullString
	err = m.db.Row(m.ctx, "SELECT any_value(input_dims) FROM ("+collatedSQL+")", nil, &dims)
	if err != nil || !dims.Valid {
		return 0, "", err
	}
	var shapes [][]int
	if json.Unmarshal([]byte(dims.String), &shapes) != nil || len(shapes) == 0 || len(shapes[0]) != 1 || shapes[0][0] < 1 {
		return 0, "", nil
	}
	return shapes[0][0], "what the loader puts together", nil
}

// ranks is how many processes take a step together.
func (m *measuring) ranks() (int, error) {
	var n sql.NullInt64
	err := m.db.Row(m.ctx, "SELECT max(world_size) FROM process WHERE pid = ?", []any{m.loop.PID}, &n)
	return int(max(n.Int64, 1)), err
}
