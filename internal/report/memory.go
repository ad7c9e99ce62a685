package report

import "database/sql"

// memoryPeaks adds up allocations and frees. Frees of what was allocated before
// the recording do not count: their bytes were never added.
const memoryPeaks = `
	CREATE OR REPLACE TEMP TABLE memory_level AS
	WITH events AS (
		SELECT session_id, pid, space, device_id, ts_ns, address, action, bytes, weight, total_allocated_bytes, total_reserved_bytes,
			lag(action) OVER w AS before, lead(ts_ns) OVER w AS until
		FROM memory WHERE action IN ('alloc', 'free') AND level = (SELECT CASE WHEN bool_or(level = 'allocator') THEN 'allocator' ELSE 'driver' END FROM memory)
		WINDOW w AS (PARTITION BY session_id, pid, space, device_id, address ORDER BY ts_ns))
	SELECT session_id, pid, space, device_id, ts_ns, total_allocated_bytes, total_reserved_bytes, weight,
		sum(CASE WHEN action = 'alloc' THEN bytes WHEN before = 'alloc' THEN -bytes ELSE 0 END) OVER (PARTITION BY session_id, pid, space, device_id ORDER BY ts_ns, action DESC ROWS UNBOUNDED PRECEDING) AS live
	FROM events`

func (b *builder) memory() error {
	var rows int64
	if err := b.db.Row(b.ctx, "SELECT count(*) FROM memory", nil, &rows); err != nil {
		return err
	}
	if rows == 0 {
		b.untold("memory: no allocation was recorded; record at --level window, or profile with profile_memory=True")
		return nil
	}
	if err := b.db.Exec(b.ctx, memoryPeaks); err != nil {
		return err
	}
	var ids []struct {
		session string
		at      int64
	}
	err := b.each(`
		SELECT session_id, pid, space, device_id, max(live)::BIGINT, arg_max(ts_ns, live), max(total_allocated_bytes), max(total_reserved_bytes), bool_or(weight > 1)
		FROM memory_level GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC`, func(scan scan) error {
		m := Memory{Owners: []Owner{}}
		var session string
		var at int64
		if err := scan(&session, &m.PID, &m.Space, &m.DeviceID, &m.PeakBytes, &at, &m.Said, &m.Reserved, &m.Estimated); err != nil {
			return err
		}
		m.AtMS = ms(at - b.firstNS)
		b.report.Memory = append(b.report.Memory, m)
		ids = append(ids, struct {
			session string
			at      int64
		}{session, at})
		return nil
	})
	if err != nil {
		return err
	}
	for i := range b.report.Memory {
		if i == 8 {
			break
		}
		if err := b.owners(&b.report.Memory[i], ids[i].session, ids[i].at); err != nil {
			return err
		}
		if err := b.curve(&b.report.Memory[i], ids[i].session); err != nil {
			return err
		}
	}
	return nil
}

// owners are the operators, or lines, whose blocks were live at the peak.
func (b *builder) owners(m *Memory, session string, at int64) error {
	rows, err := b.db.Query(b.ctx, `
		WITH events AS (
			SELECT ts_ns, address, action, bytes, span_id, stack_id, lead(ts_ns) OVER (PARTITION BY address ORDER BY ts_ns) AS until
			FROM memory WHERE session_id = ? AND pid = ? AND space = ? AND device_id IS NOT DISTINCT FROM ? AND action IN ('alloc', 'free')),
		live AS (SELECT * FROM events WHERE action = 'alloc' AND ts_ns <= ? AND (until IS NULL OR until > ?))
		SELECT coalesce(p.file || ':' || p.line, s.name, 'not told'), sum(l.bytes)::BIGINT, count(*) FROM live l
		LEFT JOIN good_span s ON s.session_id = ? AND s.span_id = l.span_id
		LEFT JOIN stack_place p ON p.session_id = ? AND p.stack_id = coalesce(l.stack_id, s.stack_id)
		GROUP BY 1 ORDER BY 2 DESC NULLS LAST LIMIT 10`, session, m.PID, m.Space, m.DeviceID, at, at, session, session)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var o Owner
		var bytes sql.NullInt64
		if err := rows.Scan(&o.Name, &bytes, &o.Blocks); err != nil {
			return err
		}
		o.Bytes = bytes.Int64
		m.Owners = append(m.Owners, o)
	}
	return rows.Err()
}

// curve is the highest level in each of 400 parts of the window, for a picture.
func (b *builder) curve(m *Memory, session string) error {
	rows, err := b.db.Query(b.ctx, `
		SELECT (ts_ns - ?) * 400 // greatest(?, 1) AS part, max(live)::DOUBLE FROM memory_level
		WHERE session_id = ? AND pid = ? AND space = ? AND device_id IS NOT DISTINCT FROM ? GROUP BY 1 ORDER BY 1`,
		b.firstNS, b.lastNS-b.firstNS, session, m.PID, m.Space, m.DeviceID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var p point
		if err := rows.Scan(&p.x, &p.y); err != nil {
			return err
		}
		m.series = append(m.series, p)
	}
	return rows.Err()
}
