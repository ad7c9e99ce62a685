package merge

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// hands is a call into a runtime, or a collective, that can have handed work to a device.
type hands struct {
	call
	tid      int32
	category string
	lo, hi   int64 // bounds of its device time, -1 where there are none
}

func (h hands) end() int64 { return h.start + max(h.duration, 0) }

// handing loads the calls that can have launched something, by their thread, with the recording's numbers of threads.
func (m *merging) handing(db *dataset.DB, where string, number func(int32) (int32, bool)) (map[int32][]hands, error) {
	calls := map[int32][]hands{}
	query := `SELECT span_id, tid, ts_ns, coalesce(duration_ns, -1), name, coalesce(category, ''), coalesce(device_time_lo_ns, -1),
		coalesce(device_time_hi_ns, -1) FROM span WHERE layer IN ('runtime', 'collective') AND ` + where + " ORDER BY ts_ns, span_id"
	err := db.Each(m.ctx, query, func(v []driver.Value) error {
		var h hands
		h.id, _ = v[0].(int64)
		h.tid, _ = v[1].(int32)
		h.start, _ = v[2].(int64)
		h.duration, _ = v[3].(int64)
		h.name, _ = v[4].(string)
		h.category, _ = v[5].(string)
		h.lo, _ = v[6].(int64)
		h.hi, _ = v[7].(int64)
		if tid, ok := number(h.tid); ok {
			h.tid = tid
			calls[tid] = append(calls[tid], h)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading launches: %w", err)
	}
	return calls, nil
}

// launches says which recorded call a call of the trace is, by their ids. A runtime's function and the driver's that it
// calls are both calls of a launch, and a recording has them by the kernel's name: what counts is the thread, the kind of
// call, the order, and that the two overlap.
func launches(recorded, traced map[int32][]hands, offset, slack int64) map[int64]hands {
	found := map[int64]hands{}
	for tid, calls := range traced {
		taken := map[int64]bool{}
		ours := recorded[tid]
		longest := int64(0)
		for _, o := range ours {
			longest = max(longest, o.duration)
		}
		for _, t := range calls {
			begin, end := t.start-offset-slack, t.end()-offset+slack
			i, _ := slices.BinarySearchFunc(ours, begin-longest, func(o hands, at int64) int { return cmp.Compare(o.start, at) })
			best, most := -1, int64(-1)
			for ; i < len(ours) && ours[i].start <= end; i++ {
				o := ours[i]
				if taken[o.id] || o.category != t.category || o.end() < begin {
					continue
				}
				// The most overlap; of equal ones the innermost, which has the kernel's name.
				if overlap := min(o.end(), end) - max(o.start, begin); overlap >= most {
					best, most = i, overlap
				}
			}
			if best >= 0 {
				taken[ours[best].id] = true
				found[t.id] = ours[best]
			}
		}
	}
	return found
}

// deviceColumns are what is kept of a row of a device. CUPTI's correlation is not: in a recording that column has numbers
// of spans.
const deviceColumns = `ts_ns, coalesce(duration_ns, -1), coalesce(category, ''), name, launch_id, device_id, stream, context, bytes,
	coalesce(direction, ''), work_x, work_y, work_z, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, wait_stream,
	coalesce(runtime, '')`

// devices makes the rows of devices, and counts them.
func (m *merging) devices() ([]event.Span, error) {
	slack := max(m.pairing.hi-m.pairing.lo, least)
	byLaunch, err := m.launched(slack)
	if err != nil {
		return nil, err
	}
	var last int64
	if err := m.recording.Row(m.ctx, "SELECT coalesce(max(span_id), 0) FROM span", nil, &last); err != nil {
		return nil, fmt.Errorf("reading the recording's last number: %w", err)
	}
	var rows []event.Span
	took := map[int64]int64{} // by the recorded launch
	bounds := map[int64]hands{}
	query := fmt.Sprintf("SELECT %s FROM span WHERE layer = 'device' AND pid = %d ORDER BY ts_ns, span_id", deviceColumns, m.tracePID)
	err = m.trace.Each(m.ctx, query, func(v []driver.Value) error {
		s := deviceRow(v)
		last++
		s.ID, s.PID = last, m.pid
		s.StartNS -= m.pairing.offset
		s.Detail.DeviceTimeMethod = m.options.Method
		launch, _ := v[4].(int64)
		if h, ok := byLaunch[launch]; ok && v[4] != nil {
			s.Detail.LaunchID = &h.id
			m.merged.Launched++
			if h.lo >= 0 && h.hi >= 0 && s.Call.Category != "annotation" && s.Call.Category != "sync" {
				took[h.id] += max(s.DurationNS, 0)
				bounds[h.id] = h
			}
		}
		rows = append(rows, s)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the trace's rows of devices: %w", err)
	}
	m.merged.DeviceRows = int64(len(rows))
	m.merged.BoundsChecked = int64(len(bounds))
	for id, h := range bounds {
		if h.lo <= took[id] && took[id] <= h.hi {
			m.merged.BoundsHeld++
		}
	}
	return rows, nil
}

// launched are the recorded calls that the trace's rows of devices name as their launch: calls of a runtime, or
// operators.
func (m *merging) launched(slack int64) (map[int64]hands, error) {
	where := fmt.Sprintf("pid = %d AND ts_ns BETWEEN %d AND %d", m.pid, m.merged.StartNS-around, m.merged.EndNS+around)
	recorded, err := m.handing(m.recording, where,
		func(tid int32) (int32, bool) { return tid, true })
	if err != nil {
		return nil, err
	}
	where = fmt.Sprintf("pid = %d AND span_id IN (SELECT launch_id FROM span WHERE layer = 'device')", m.tracePID)
	traced, err := m.handing(m.trace, where, func(tid int32) (int32, bool) {
		number, ok := m.numbers[tid]
		if !ok && m.pid == m.tracePID { // a thread without operators, of a graph's launches say
			return tid, true
		}
		return number, ok
	})
	if err != nil {
		return nil, err
	}
	found := launches(recorded, traced, m.pairing.offset, slack)
	for _, p := range m.pairing.pairs {
		if _, known := found[p.traced.id]; !known {
			found[p.traced.id] = hands{call: p.recorded, lo: -1, hi: -1}
		}
	}
	return found, nil
}

// deviceRow is a row of deviceColumns.
func deviceRow(v []driver.Value) event.Span {
	text := func(i int) string { s, _ := v[i].(string); return s }
	number := func(i int) *int64 {
		if n, ok := v[i].(int64); ok {
			return &n
		}
		return nil
	}
	three := func(i int) *[3]int64 {
		x, y, z := number(i), number(i+1), number(i+2)
		if x == nil || y == nil || z == nil {
			return nil
		}
		return &[3]int64{*x, *y, *z}
	}
	d := &event.Detail{
		Stream: number(6), Context: number(7), Bytes: number(8), Direction: text(9),
		Work: three(10), Grid: three(13), Block: three(16), SharedBytes: number(19),
	}
	if id, ok := v[5].(int32); ok {
		d.DeviceID = &id
	}
	if v[20] != nil {
		d.MakeWait().Stream = number(20)
	}
	start, duration := number(0), number(1)
	return event.Span{
		StartNS: *start, DurationNS: *duration,
		Call: &event.Call{Layer: "device", Category: text(2), Runtime: text(21), Name: text(3)},
		End:  event.EndImported, Weight: 1, SequenceNumber: -1, Detail: d,
	}
}
