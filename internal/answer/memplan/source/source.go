// Package source reads what the memory planner needs from a dataset: events,
// the stacks and operators behind them, and where steps begin. It is the only
// room of the planner that knows datasets.
package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/holders"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// Dataset is an opened dataset.
type Dataset struct {
	db *dataset.DB
}

// ErrNoEvents is returned for a dataset in which nothing of memory was recorded.
var ErrNoEvents = errors.New("the dataset has no allocator events: record with --probe memory, or at the default level")

// Open opens a dataset.
func Open(path string) (*Dataset, error) {
	db, err := dataset.Open(path)
	if err != nil {
		return nil, err
	}
	return &Dataset{db}, nil
}

// Of is a dataset that is open already.
func Of(db *dataset.DB) *Dataset { return &Dataset{db} }

// Close releases it.
func (d *Dataset) Close() error { return d.db.Close() }

// Warnings name files that were left out.
func (d *Dataset) Warnings() []string { return d.db.Warnings() }

// Lost is what the recording itself says it lost, by reason.
func (d *Dataset) Lost(ctx context.Context) (lost []string, err error) {
	err = d.each(ctx, `SELECT source, CAST(sum("count") AS BIGINT) FROM warning WHERE kind = 'lost' GROUP BY 1 ORDER BY 1`,
		nil, func(row []any) error {
			lost = append(lost, fmt.Sprintf("%v %v", number(row[1]), row[0]))
			return nil
		})
	return lost, err
}

// Paths are the stacks of a session with some ids.
func (d *Dataset) Paths(ctx context.Context, session string, ids []int64) (map[int64]holders.Path, error) {
	paths := map[int64]holders.Path{}
	err := inBatches(ids, func(list string) error {
		return d.each(ctx, `SELECT stack_id, list_transform(frames, f -> f.kind), list_transform(frames, f -> f.function),
			list_transform(frames, f -> f.file), list_transform(frames, f -> f.line) FROM stack WHERE session_id = ? AND stack_id IN (`+list+`)`,
			[]any{session}, func(row []any) error {
				kinds, functions, files, lines := listOf(row[1]), listOf(row[2]), listOf(row[3]), listOf(row[4])
				var p holders.Path
				for i := range kinds {
					p = append(p, holders.Frame{Kind: text(kinds[i]), Function: text(functions[i]), File: text(files[i]),
						Line: number(lines[i])})
				}
				paths[number(row[0])] = p
				return nil
			})
	})
	return paths, err
}

// Spans are some spans of a session, those around them, and the forward operators of backward
// nodes among them, by id.
func (d *Dataset) Spans(ctx context.Context, session string, ids []int64) (map[int64]holders.Span, error) {
	spans := map[int64]holders.Span{}
	for wanted := ids; len(wanted) > 0; {
		var more, nodes []int64
		err := inBatches(wanted, func(list string) error {
			return d.each(ctx, `SELECT span_id, parent_id, layer, name, coalesce(python_stack_id, stack_id) FROM span WHERE session_id = ?
				AND span_id IN (`+
				list+`)`, []any{session}, func(row []any) error {
				id := number(row[0])
				s := holders.Span{Parent: number(row[1]), Layer: text(row[2]), Name: text(row[3]), Path: number(row[4])}
				spans[id] = s
				if s.Layer == "autograd" {
					nodes = append(nodes, id)
				}
				more = append(more, s.Parent)
				return nil
			})
		})
		if err == nil {
			err = inBatches(nodes, func(list string) error {
				return d.each(ctx, `SELECT to_span_id, from_span_id FROM flow WHERE kind = 'forward_backward' AND session_id = ?
					AND to_span_id IN (`+list+`)`, []any{session}, func(row []any) error {
					s := spans[number(row[0])]
					s.Forward = number(row[1])
					spans[number(row[0])] = s
					more = append(more, s.Forward)
					return nil
				})
			})
		}
		if err != nil {
			return nil, err
		}
		wanted = slices.DeleteFunc(more, func(id int64) bool {
			_, is := spans[id]
			return is || id == 0
		})
	}
	return spans, nil
}

// Anchors are times at which a step of each process may begin, and what tells
// them: the steps that internal/model/steps finds.
func (d *Dataset) Anchors(ctx context.Context) (byPID map[int32][]int64, method string, err error) {
	threads, err := timeline.Steps(ctx, d.db)
	if err != nil {
		return nil, "", err
	}
	byPID = map[int32][]int64{}
	for _, t := range threads {
		for _, s := range t.Of(steps.Warmup, steps.Train, steps.Evaluate) {
			byPID[int32(t.PID)] = append(byPID[int32(t.PID)], s.Begin)
		}
	}
	return byPID, "the training loop", nil
}

// each calls do with each row of a query.
func (d *Dataset) each(ctx context.Context, sql string, arguments []any, do func([]any) error) error {
	rows, err := d.db.Query(ctx, sql, arguments...)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	row, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range row {
		to[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// inBatches calls do with lists for IN.
func inBatches(ids []int64, do func(list string) error) error {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for batch := range slices.Chunk(ids, 10_000) {
		var list strings.Builder
		for i, id := range batch {
			if i > 0 {
				list.WriteByte(',')
			}
			fmt.Fprint(&list, id)
		}
		if err := do(list.String()); err != nil {
			return err
		}
	}
	return nil
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func number(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	case float64:
		return int64(n)
	}
	return 0
}
