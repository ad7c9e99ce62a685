package source

import (
	"context"
	"errors"
)

// Shortage is memory that was not there: allocations that found no room, from one place
// and of one size, or a process that the kernel killed for want of memory.
type Shortage struct {
	Session string  `json:"session_id"`
	PID     int32   `json:"pid"`
	Command string  `json:"command"`
	Times   int64   `json:"times"`
	NS      int64   `json:"ns"`   // the last time
	At      float64 `json:"at_s"` // that, after the recording began
	Space   string  `json:"space"`
	Level   string  `json:"level"`
	Device  *int32  `json:"device_id"`

	AskedBytes     *int64 `json:"asked_bytes"`
	AllocatedBytes *int64 `json:"allocator_said_bytes"` // in use, as the allocator said
	ReservedBytes  *int64 `json:"reserved_bytes"`       // likewise what it held from the driver
	FreeBytes      *int64 `json:"device_free_bytes"`    // what the device had left, as the allocator said

	Line       string `json:"line"`             // of the user's code; "" where no stack shows one
	LastSample bool   `json:"from_last_sample"` // the line is that of the process's last sample

	// LiveBytes is what was live then of what was allocated while recording, as far as that
	// was recorded.
	LiveBytes *int64 `json:"live_bytes"`
	History

	Path, Span int64 `json:"-"`
}

// History is what the process held in the time before, as the kernel counts it.
type History struct {
	Resident       *int64   `json:"resident_bytes"`
	Virtual        *int64   `json:"virtual_bytes"`
	ResidentBefore *int64   `json:"resident_before_bytes"` // at the first look of the last half a minute
	BeforeSeconds  *float64 `json:"before_s"`              // so long before
	Limit          *int64   `json:"cgroup_limit_bytes"`    // of its control group
}

// mostShortages are listed, the last ones.
const mostShortages = 100

// Shortages are those of a dataset, the last one first.
func (d *Dataset) Shortages(ctx context.Context) (all []Shortage, err error) {
	err = d.each(ctx, `
		SELECT m.session_id, m.pid, coalesce(any_value(p.command), ''), count(*), max(m.ts_ns),
			(max(m.ts_ns) - min(s.started_ns)) / 1e9, m.space, m.level, m.device_id, m.bytes,
			arg_max(m.total_allocated_bytes, m.ts_ns), arg_max(m.total_reserved_bytes, m.ts_ns),
			coalesce(m.stack_source, '') = 'last_sample', coalesce(m.python_stack_id, m.stack_id, 0) AS path, arg_max(m.span_id, m.ts_ns)
		FROM memory m LEFT JOIN session s USING (session_id)
			LEFT JOIN (SELECT session_id, pid, arg_max(command, started_ns) AS command FROM process GROUP BY ALL) p USING (session_id, pid)
		WHERE m.action = 'out_of_memory'
		GROUP BY m.session_id, m.pid, m.space, m.level, m.device_id, m.bytes, m.stack_source, path
		ORDER BY max(m.ts_ns) DESC LIMIT ?`, []any{mostShortages}, func(row []any) error {
		s := Shortage{
			Session: text(row[0]), PID: int32(number(row[1])), Command: text(row[2]), Times: number(row[3]), NS: number(row[4]),
			Space: text(row[6]), Level: text(row[7]), AskedBytes: maybe(row[9]), AllocatedBytes: maybe(row[10]), ReservedBytes: maybe(row[11]),
			Path: number(row[13]), Span: number(row[14]),
		}
		s.At, _ = row[5].(float64)
		s.LastSample, _ = row[12].(bool)
		if id := maybe(row[8]); id != nil {
			device := int32(*id)
			s.Device = &device
		}
		all = append(all, s)
		return nil
	})
	for i := range all {
		if err == nil {
			err = errors.Join(d.history(ctx, &all[i]), d.free(ctx, &all[i]))
		}
	}
	return all, err
}

// freeMemory is the counter of what a device had left when memory ran out; it has the time of the row in memory.
const freeMemory = "gpu_memory_free"

func (d *Dataset) free(ctx context.Context, s *Shortage) error {
	if s.Device == nil {
		return nil
	}
	return d.each(ctx, `SELECT CAST(max(value) AS BIGINT) FROM counter WHERE session_id = ? AND ts_ns = ? AND device_id = ?
		AND name = '`+freeMemory+`'`,
		[]any{s.Session, s.NS, *s.Device}, func(row []any) error {
			s.FreeBytes = maybe(row[0])
			return nil
		})
}

// history reads what is known of the half a minute before.
func (d *Dataset) history(ctx context.Context, s *Shortage) error {
	const before = 31e9
	return d.each(ctx, `
		SELECT CAST(arg_max(value, ts_ns) FILTER (name = 'process_memory_resident') AS BIGINT),
			CAST(arg_max(value, ts_ns) FILTER (name = 'process_memory_virtual') AS BIGINT),
			CAST(arg_min(value, ts_ns) FILTER (name = 'process_memory_resident') AS BIGINT),
			(? - min(ts_ns) FILTER (name = 'process_memory_resident')) / 1e9,
			CAST(arg_max(value, ts_ns) FILTER (name = 'cgroup_memory_limit') AS BIGINT)
		FROM counter WHERE session_id = ? AND ts_ns BETWEEN ? AND ? AND (source = 'process' AND pid = ? OR name = 'cgroup_memory_limit'
			AND scope IN (SELECT unnest([cgroup, 'memory:' || cgroup]) FROM process WHERE session_id = ? AND pid = ?))`,
		[]any{s.NS, s.Session, s.NS - before, s.NS, s.PID, s.Session, s.PID}, func(row []any) error {
			s.Resident, s.Virtual, s.ResidentBefore, s.Limit = maybe(row[0]), maybe(row[1]), maybe(row[2]), maybe(row[4])
			if seconds, ok := row[3].(float64); ok {
				s.BeforeSeconds = &seconds
			}
			return nil
		})
}

// maybe is a number, nil where there is none.
func maybe(v any) *int64 {
	if v == nil {
		return nil
	}
	n := number(v)
	return &n
}
