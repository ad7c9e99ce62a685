package source

import (
	"database/sql"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// device reads the launches and copies whose time on a device is known or bounded.
func (r reader) device(from, until int64) error {
	known := map[event.Call]*event.Call{}
	return r.each("work on devices", `SELECT ts_ns, coalesce(duration_ns, -1), pid, tid, layer, coalesce(category, ''), coalesce(runtime, ''),
		name,
			device_id, stream, device_time_lo_ns, device_time_hi_ns, coalesce(slice_id, 0)
		FROM span WHERE (layer = 'runtime' AND device_time_hi_ns IS NOT NULL OR layer = 'device') AND ts_ns >= ? AND ts_ns < ? ORDER BY ts_ns`,
		func(rows *sql.Rows) error {
			var s event.Span
			var call event.Call
			var device sql.NullInt32
			var stream, least, most sql.NullInt64
			if err := rows.Scan(&s.StartNS, &s.DurationNS, &s.PID, &s.TID, &call.Layer, &call.Category, &call.Runtime, &call.Name,
				&device, &stream, &least, &most, &s.SliceID); err != nil {
				return err
			}
			if known[call] == nil {
				known[call] = &call
			}
			s.Call = known[call]
			d := s.MakeDetail()
			if device.Valid {
				d.DeviceID = &device.Int32
			}
			if stream.Valid {
				d.Stream = &stream.Int64
			}
			if least.Valid && most.Valid {
				d.DeviceTimeLoNS, d.DeviceTimeHiNS = &least.Int64, &most.Int64
			}
			return r.c.Write(&event.Batch{Spans: []event.Span{s}})
		}, from, until)
}
